"""What reaches the top of several layers: rollout and flow."""
