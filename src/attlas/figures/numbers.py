"""Weights as a reader meets them: short, and with the name of what they measure."""

from collections.abc import Sequence

from attlas.figures.map import Map


LEAST = 0.005  # a weight below this is written as a bare 0


def number(weight: float) -> str:
    """Two digits: .07, 1.0; a bare 0 for what rounds to it."""
    if weight < LEAST:
        return "0"
    return f"{weight:.1f}" if weight >= 0.995 else f"{weight:.2f}"[1:]


def weight_of(maps: Sequence[Map]) -> str:
    """What the colour of a cell stands for."""
    sizes = {(map_.queries_per_cell, map_.slots_per_cell) for map_ in maps}
    if sizes == {(1, 1)}:
        return "attention weight"
    if len(sizes) > 1:
        return "largest attention weight of a cell"
    tall, wide = sizes.pop()
    return f"largest attention weight of {tall} × {wide} tokens"
