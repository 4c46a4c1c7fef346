"""Attention that is not ours, seen where PyTorch computes it."""
