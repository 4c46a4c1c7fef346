"""The drawing of a pattern: which query may see which slot."""

from dataclasses import replace

import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attlas.errors import AttlasError
from attlas.figures.grid import Grid
from attlas.figures.lettering import Lettering
from attlas.figures.map import WITHIN, Map
from attlas.figures.panel import Cell, draw_panel
from attlas.figures.paper import TITLE, fit, put_title, sheet
from attlas.patterns import Pattern
from attlas.recording import FactoredReading

_SIDE, _LARGEST = 5.0, 0.22  # inches: of the drawing, of a cell
_SEEN_AND_HIDDEN = Normalize(0.0, 1.4)  # seen is dark, but leaves the text its place


def drawing(
    pattern: Pattern,
    queries: int,
    slots: int | None = None,
    *,
    first: int | None = None,
    title: str | None = None,
) -> Figure:
    """Dark where a query may look, light where it may not; positions count from 0.

    slots: None = as many as queries. first: the position of the first query; None = the queries
    are the newest positions. title: None = the pattern's own text. A cell of a drawing that is
    pooled, for more than `MOST_CELLS` positions a side, is dark where any of its pairs is seen.

    Errors: `AttlasError` for fewer queries or slots than one.
    """
    slots = queries if slots is None else slots
    if queries < 1 or slots < 1:
        raise AttlasError(
            "at least one query and one slot", f"{queries} and {slots}", "draw a longer pattern"
        )
    start = slots - queries if first is None else first
    # Equal scores: each query weighs what it may see alike, and the rest not at all.
    alike = FactoredReading(
        torch.zeros(1, 1, queries, 1), torch.zeros(1, 1, slots, 1), 1.0, pattern, start
    )
    map_ = Map.of(alike, [str(i) for i in range(slots)], [str(start + i) for i in range(queries)])
    map_ = replace(map_, axes=WITHIN)
    grid = Grid.of(map_)
    seen = replace(grid, cells=(grid.cells > 0).astype(float))
    title = str(pattern) if title is None else title
    figure = sheet()
    lettering = Lettering.of([title, *map_.source, *map_.target])
    cell = Cell.fitting(map_, _SIDE, _LARGEST)
    axes = draw_panel(
        figure,
        map_,
        seen,
        cell,
        _SEEN_AND_HIDDEN,
        lettering,
        numbered=False,
    )
    if title:
        put_title(axes, lettering.line(title), lettering.style(TITLE))
    fit(figure)
    return figure
