"""The annotated heatmap, alone or beside others on one scale."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attlas.errors import AttlasError
from attlas.figures.grid import Grid
from attlas.figures.lettering import Lettering
from attlas.figures.map import Map, Weights
from attlas.figures.numbers import weight_of
from attlas.figures.panel import Cell, draw_panel, draw_scale
from attlas.figures.paper import TITLE, extent_of, fit, level_titles, move, put_title, sheet

_SIDE = 9.0  # inches that the cells of one map may take, across and down
_WIDE = 14.0  # inches that the cells of maps side by side may take
_GAP = 0.25


def heatmap(
    weights: Weights,
    source: Sequence[str],
    target: Sequence[str],
    *,
    row: int | None = None,
    head: int | None = None,
    title: str = "",
) -> Figure:
    """Weights as colours and, where they fit, as numbers: slots across the top, queries down.

    weights, row, head: as `Map.of`. The scale goes from 0 to the largest weight. A map of more than
    `MOST_CELLS` tokens a side is pooled: a cell shows the largest of its weights, and the colour
    bar says of how many.
    Bahdanau, Cho & Bengio, 2015, figure 3.

    Errors: `AttlasError` as `Map.of`, and where no font draws the tokens.
    """
    map_ = Map.of(weights, source, target, row=row, head=head)
    return _drawn([(title, map_)], columns=1, side=_SIDE)


def side_by_side(maps: Mapping[str, Map], *, columns: int = 4) -> Figure:
    """Several maps, each under its name, in rows of `columns`, on one scale with one colour bar.

    Maps need not share their tokens: two mechanisms may translate differently. Neighbours that
    share their queries name them once.

    Errors: `AttlasError` for no map, or fewer columns than one; and as `heatmap`.
    """
    if not maps:
        raise AttlasError("at least one map to draw", "none", "pass {name: Map.of(…)}")
    if columns < 1:
        raise AttlasError("at least one column", str(columns), "leave `columns` at 4")
    columns = min(columns, len(maps))
    return _drawn(list(maps.items()), columns, side=min(_SIDE, max(2.5, _WIDE / columns)))


def _drawn(maps: list[tuple[str, Map]], columns: int, side: float) -> Figure:
    figure = sheet()
    lettering = Lettering.of(*((name, *map_.source, *map_.target) for name, map_ in maps))
    grids = [Grid.of(map_) for _, map_ in maps]
    scale = Normalize(0.0, max(grid.peak for grid in grids) or 1.0)
    panels: list[Axes] = []
    top = 0.0
    for start in range(0, len(maps), columns):
        some = slice(start, start + columns)
        row = _row(figure, maps[some], grids[some], side, scale, lettering)
        above = max(extent_of(axes).y1 for axes in row)
        for axes in row:
            move(axes, up=top - above)
        top = min(extent_of(axes).y0 for axes in row) - _GAP
        panels += row
    draw_scale(figure, scale, panels[:columns], weight_of(grids))
    fit(figure)
    return figure


def _row(
    figure: Figure,
    maps: Sequence[tuple[str, Map]],
    grids: Sequence[Grid],
    side: float,
    scale: Normalize,
    lettering: Lettering,
) -> list[Axes]:
    """Panels from left to right, their first cells on one line, and their titles on another."""
    panels: list[Axes] = []
    before, left = None, 0.0
    for (name, map_), grid in zip(maps, grids, strict=True):
        cell = Cell.fitting(map_, side)
        named = before is None or (map_.target, map_.axes) != before
        axes = draw_panel(figure, map_, grid, cell, scale, lettering, queries_named=named)
        if name:
            put_title(axes, lettering.line(name), lettering.style(TITLE))
        move(axes, right=left - extent_of(axes).x0)
        before, left = (map_.target, map_.axes), extent_of(axes).x1 + _GAP
        panels.append(axes)
    level_titles(panels)
    return panels
