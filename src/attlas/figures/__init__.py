"""Figures: numbers in, matplotlib figures out. Nothing here touches pyplot or a global state."""

from attlas.figures.bars import bars
from attlas.figures.drawing import drawing
from attlas.figures.fonts import MissingGlyphs
from attlas.figures.grid import MOST_CELLS
from attlas.figures.heatmap import heatmap, side_by_side
from attlas.figures.map import Map
from attlas.figures.readings import UnfitTokens, figure_of, maps_of
from attlas.figures.saving import save

__all__ = [
    "MOST_CELLS",
    "Map",
    "MissingGlyphs",
    "UnfitTokens",
    "bars",
    "drawing",
    "figure_of",
    "heatmap",
    "maps_of",
    "save",
    "side_by_side",
]
