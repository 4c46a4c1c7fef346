"""Figures: numbers in, matplotlib figures out. Nothing here touches pyplot or a global state."""

from attlas.figures.bars import bars
from attlas.figures.drawing import drawing
from attlas.figures.fonts import MissingGlyphs
from attlas.figures.heatmap import heatmap, side_by_side
from attlas.figures.map import MOST_CELLS, Map
from attlas.figures.saving import save

__all__ = [
    "MOST_CELLS",
    "Map",
    "MissingGlyphs",
    "bars",
    "drawing",
    "heatmap",
    "save",
    "side_by_side",
]
