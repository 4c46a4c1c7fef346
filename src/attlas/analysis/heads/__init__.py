"""What single heads are worth: gates, ablation, pruning."""
