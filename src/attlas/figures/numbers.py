"""Weights as a reader meets them: short, and with the name of what they measure."""

from collections.abc import Sequence

from attlas.figures.grid import Grid

LEAST = 0.005  # a weight below this is written as a bare 0


def number(weight: float) -> str:
    """Two digits: .07, 1.0; a bare 0 for what rounds to it."""
    if weight < LEAST:
        return "0"
    return f"{weight:.1f}" if weight >= 0.995 else f"{weight:.2f}"[1:]


def weight_of(grids: Sequence[Grid]) -> str:
    """What a cell or a bar of these stands for."""
    sizes = {(grid.tall, grid.wide) for grid in grids}
    if not any(grid.pooled for grid in grids):
        return "attention weight"
    if len(sizes) > 1:
        return "largest attention weight of a cell"
    tall, wide = sizes.pop()
    return f"largest attention weight of {tall} × {wide} tokens"
