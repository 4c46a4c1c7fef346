"""One map on a sheet: its cells, its numbers, its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attlas.figures.grid import Grid
from attlas.figures.lettering import Lettering
from attlas.figures.map import Map
from attlas.figures.numbers import LEAST, number
from attlas.figures.paper import COLOURS, INK, QUIET, SMALL, area_of, axes_at, extent_of
from attlas.figures.ticks import name_queries, name_slots

_LARGEST = 0.42  # inches of a cell's side
_SMALLEST_NUMBER = 5.0  # points
_SHORTEST_BAR, _LONGEST_NAME = 0.9, 2.2  # inches
_LINED = 0.15  # cells from this side on are set apart by a line
_SQUARE = 3.0  # longer against broader than this, and cells need not be square


@dataclass(frozen=True, slots=True)
class Cell:
    """The size of a token's cell in inches."""

    width: float
    height: float

    @classmethod
    def fitting(cls, map_: Map, side: float, largest: float = _LARGEST) -> "Cell":
        """As large as is comfortable, with the map within side × side inches; square if it can."""
        queries, slots = len(map_.target), len(map_.source)
        width, height = min(largest, side / slots), min(largest, side / queries)
        if max(queries, slots) <= _SQUARE * min(queries, slots):
            width = height = min(width, height)
        return cls(width, height)


def draw_panel(
    figure: Figure,
    map_: Map,
    grid: Grid,
    cell: Cell,
    scale: Normalize,
    lettering: Lettering,
    *,
    queries_named: bool = True,
    numbered: bool = True,
) -> Axes:
    """Draw a map on the sheet, its first cell hanging from the corner (0, 0)."""
    of_slots, of_queries = map_.axes
    queries, slots = len(map_.target), len(map_.source)
    axes = axes_at(figure, Bbox.from_extents(0, -queries * cell.height, slots * cell.width, 0))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    _fill(axes, map_, grid, cell, scale)
    if numbered and not grid.pooled:
        _write_numbers(axes, grid.cells, cell, scale)
    name_slots(axes, map_.source, cell.width, lettering, of_slots, grid.wide)
    if queries_named:
        name_queries(axes, map_.target, cell.height, lettering, of_queries, grid.tall)
    else:
        axes.set_yticks([])
    return axes


def draw_scale(figure: Figure, scale: Normalize, row: Sequence[Axes], name: str) -> None:
    """The colour bar of the whole figure, to the right of this row of panels."""
    area = area_of(row[-1])
    lower = min(area.y0, area.y1 - _SHORTEST_BAR)
    # Leaning labels reach to the right above the cells, where a short bar's name may stand.
    free = area if area.height >= _LONGEST_NAME else extent_of(row[-1])
    left = free.x1 + 0.2
    axes = axes_at(figure, Bbox.from_extents(left, lower, left + 0.12, area.y1))
    bar = figure.colorbar(ScalarMappable(scale, colormaps[COLOURS]), cax=axes)
    bar.outline.set(color=QUIET, linewidth=0.5)
    bar.set_label(name, color=QUIET, size=SMALL)
    axes.tick_params(labelsize=SMALL, length=2, width=0.5, color=QUIET)


def _fill(axes: Axes, map_: Map, grid: Grid, cell: Cell, scale: Normalize) -> None:
    rows, columns = grid.cells.shape
    lined = min(cell.width, cell.height) >= _LINED
    if lined:  # as shapes: sharp at any size
        edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
        axes.pcolormesh(
            *edges, grid.cells, cmap=COLOURS, norm=scale, edgecolors="white", linewidth=0.6
        )
    else:
        axes.imshow(grid.cells, cmap=COLOURS, norm=scale, interpolation="nearest", aspect="auto")
    # A last cell that pools fewer tokens than the others is drawn in proportion.
    axes.set_xlim(-0.5, len(map_.source) / grid.wide - 0.5)
    axes.set_ylim(len(map_.target) / grid.tall - 0.5, -0.5)


def _write_numbers(
    axes: Axes, cells: Float[np.ndarray, "rows columns"], cell: Cell, scale: Normalize
) -> None:
    size = min(7.5, 72 * min(cell.width / 2.4, cell.height / 1.5))
    if size < _SMALLEST_NUMBER or cells.max() >= 10:
        return
    colours = colormaps[COLOURS](scale(cells))
    for (row, column), weight in np.ndenumerate(cells):
        axes.text(
            column,
            row,
            number(float(weight)),
            size=size,
            ha="center",
            va="center_baseline",
            color=_readable_on(colours[row, column]) if weight >= LEAST else QUIET,
        )


def _readable_on(colour: Float[np.ndarray, " rgba"]) -> str:
    """Dark or white, whichever has more contrast by the WCAG's relative luminance."""
    linear = np.where(
        colour[:3] <= 0.04045, colour[:3] / 12.92, ((colour[:3] + 0.055) / 1.055) ** 2.4
    )
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    # (1 + .05) / (L + .05) > (L + .05) / (0 + .05)  ⇔  L < √.0525 − .05
    return "white" if luminance < 0.179 else INK
