"""Figures: numbers in, matplotlib figures out. Nothing here touches pyplot or a global state."""

from attlas.figures.bars import bars, plot_pattern
from attlas.figures.fonts import MissingGlyphs
from attlas.figures.heatmap import MOST_CELLS, HeadMap, heatmap, heatmaps
from attlas.figures.saving import save
from attlas.figures.trace import UnmatchedTokens, maps_of, plot_trace

__all__ = [
    "MOST_CELLS",
    "HeadMap",
    "MissingGlyphs",
    "UnmatchedTokens",
    "bars",
    "heatmap",
    "heatmaps",
    "maps_of",
    "plot_pattern",
    "plot_trace",
    "save",
]
