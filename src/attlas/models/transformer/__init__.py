"""What the layers of a Transformer and of a classifier are made of."""
