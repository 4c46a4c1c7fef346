"""Faithfulness: do attention weights explain an output? Experiments on one layer."""
