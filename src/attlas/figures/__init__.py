"""Figures: numbers in, matplotlib figures out. Nothing here touches pyplot or a global state."""

from attlas.figures.bars import bars, drawing
from attlas.figures.fonts import MissingGlyphs
from attlas.figures.heatmap import MOST_CELLS, Map, heatmap, side_by_side
from attlas.figures.saving import save
from attlas.figures.trace import UnfitTokens, figure_of, maps_of

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
