"""Attention maps and their statistics, computed block by block: only a few rows are held at a
time.
"""
