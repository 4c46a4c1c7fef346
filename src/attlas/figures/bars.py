"""The bar chart of one query: its distribution over the slots."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attlas.errors import AttlasError
from attlas.figures.fonts import TextLayout
from attlas.figures.heatmap import (
    ACROSS,
    WITHIN,
    Cell,
    Grid,
    HeadMap,
    Weights,
    draw_panel,
    number,
    scale_label,
)
from attlas.figures.layout import (
    INK,
    QUIET,
    SMALL,
    TITLE,
    axes_at,
    fit,
    name_slots,
    put_title,
    sheet,
)
from attlas.patterns import Pattern
from attlas.recording import FactoredAttentionMap

_WIDEST, _ACROSS, _HEIGHT = 0.45, 9.0, 2.2  # inches: of one slot, of all, of the bars
_LINED, _NUMBERED = 0.05, 0.22  # inches of a slot from which bars stand apart, and have numbers
_BAR = "#2a6fb0"


def bars(
    weights: Weights,
    source: Sequence[str],
    query: str,
    *,
    title: str = "",
    axis: str = ACROSS[0],
) -> Figure:
    """One bar to a slot, its weight above it where there is room.

    weights: shaped (keys,), or (1, keys) after any axes of size 1, such as `attention_map.rows(3,
    4)`. query: the token that looks, which the figure is about. axis: what its slots are called.

    Errors: `AttlasError` as `HeadMap.of`, for more queries than one, and where no font draws the
    tokens.
    """
    grid = Grid.of(HeadMap.of(weights, source, [query]))
    text_layout = TextLayout.of(source, [query, title])
    room = min(_WIDEST, _ACROSS / len(source))
    figure = sheet()
    axes = axes_at(figure, Bbox.from_extents(0, 0, room * len(source), _HEIGHT))
    heights = grid.cells[0]
    axes.bar(range(len(heights)), heights, width=0.8 if room >= _LINED else 1.0, color=_BAR)
    axes.set_xlim(-0.5, len(source) / grid.wide - 0.5)
    axes.set_ylim(0.0, 1.12 * (grid.max_weight or 1.0))  # room for the numbers
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", labelsize=SMALL, length=2, width=0.5, color=QUIET)
    axes.set_ylabel(scale_label([grid]), color=QUIET, size=SMALL)
    put_title(axes, text_layout.line(title or f"“{query}”"), text_layout.style(TITLE))
    if room >= _NUMBERED and grid.max_weight < 10:
        for place, weight in enumerate(heights):
            axes.annotate(
                number(float(weight)),
                (place, weight),
                (0, 2),
                textcoords="offset points",
                ha="center",
                size=SMALL,
                color=INK,
            )
    name_slots(axes, source, room, text_layout, axis, grid.wide)
    fit(figure)
    return figure


# The drawing of a pattern: which query may see which slot.


_SIDE, _LARGEST = 5.0, 0.22  # inches: of the drawing, of a cell
_SEEN_AND_HIDDEN = Normalize(0.0, 1.4)  # seen is dark, but leaves the text its place


def plot_pattern(
    pattern: Pattern,
    queries: int,
    num_keys: int | None = None,
    *,
    query_offset: int | None = None,
    title: str | None = None,
) -> Figure:
    """Dark where a query may look, light where it may not; positions count from 0.

    slots: None = as many as queries. first: the position of the first query; None = the queries
    are the newest positions. title: None = the pattern's own text. A cell of a drawing that is
    pooled, for more than `MOST_CELLS` positions a side, is dark where any of its pairs is seen.

    Errors: `AttlasError` for fewer queries or slots than one.
    """
    num_keys = queries if num_keys is None else num_keys
    if queries < 1 or num_keys < 1:
        raise AttlasError(
            "at least one query and one slot", f"{queries} and {num_keys}", "draw a longer pattern"
        )
    start = num_keys - queries if query_offset is None else query_offset
    # Equal scores: each query weighs what it may see alike, and the rest not at all.
    alike = FactoredAttentionMap(
        torch.zeros(1, 1, queries, 1), torch.zeros(1, 1, num_keys, 1), 1.0, pattern, start
    )
    map_ = HeadMap.of(
        alike, [str(i) for i in range(num_keys)], [str(start + i) for i in range(queries)]
    )
    map_ = replace(map_, axes=WITHIN)
    grid = Grid.of(map_)
    seen = replace(grid, cells=(grid.cells > 0).astype(float))
    title = str(pattern) if title is None else title
    figure = sheet()
    text_layout = TextLayout.of([title, *map_.source, *map_.target])
    cell = Cell.fitting(map_, _SIDE, _LARGEST)
    axes = draw_panel(
        figure,
        map_,
        seen,
        cell,
        _SEEN_AND_HIDDEN,
        text_layout,
        numbered=False,
    )
    if title:
        put_title(axes, text_layout.line(title), text_layout.style(TITLE))
    fit(figure)
    return figure
