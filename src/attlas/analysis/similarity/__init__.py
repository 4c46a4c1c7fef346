"""How alike heads, layers and models look."""
