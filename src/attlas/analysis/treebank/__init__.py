"""Heads beside the dependencies of a treebank."""
