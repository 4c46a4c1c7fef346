"""Weights times what they weigh."""
