"""Kernels: linear maps, attention, dropout, caches, top-k. They know tensors, and no layer."""
