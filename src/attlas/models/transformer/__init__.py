"""Blocks of the Transformer and of the classifier."""
