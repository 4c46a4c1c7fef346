"""Figures: numbers in, matplotlib figures out. Nothing here touches pyplot or a global state."""

from attlas.figures.architecture import plot_architecture
from attlas.figures.bars import bar_panels, bars, plot_pattern
from attlas.figures.fonts import MissingGlyphs
from attlas.figures.heatmap import (
    MOST_CELLS,
    MOST_PIXELS,
    MOST_READ,
    HeadMap,
    SampledMaps,
    heatmap,
    heatmaps,
)
from attlas.figures.history import plot_history
from attlas.figures.image import plot_image
from attlas.figures.lines import lines, plot_statistics
from attlas.figures.saving import save
from attlas.figures.trace import UnmatchedTokens, maps_of, plot_trace

__all__ = [
    "MOST_CELLS",
    "MOST_PIXELS",
    "MOST_READ",
    "HeadMap",
    "MissingGlyphs",
    "SampledMaps",
    "UnmatchedTokens",
    "bar_panels",
    "bars",
    "heatmap",
    "heatmaps",
    "lines",
    "maps_of",
    "plot_architecture",
    "plot_history",
    "plot_image",
    "plot_pattern",
    "plot_statistics",
    "plot_trace",
    "save",
]
