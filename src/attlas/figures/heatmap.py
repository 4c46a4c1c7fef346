"""The annotated heatmap, alone or beside others on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.figures.fonts import TextLayout
from attlas.figures.layout import (
    COLOURS,
    INK,
    QUIET,
    SMALL,
    TITLE,
    area_of,
    axes_at,
    extent_of,
    fit,
    level_titles,
    move_axes,
    name_queries,
    name_slots,
    put_title,
    sheet,
)
from attlas.recording import AttentionMap, DenseAttentionMap, Trace

# What a figure draws: weights with the tokens of both axes.


Weights: TypeAlias = AttentionMap | Tensor | ArrayLike

ACROSS = ("source", "target")  # slots and queries of what looks from one text at another
WITHIN = ("key", "query")  # of self-attention, and of what has no second text


@dataclass(frozen=True, eq=False, slots=True)
class HeadMap:
    """The weights of one batch row and one head, and the tokens of both axes.

    `source` names the slots, `target` the queries; `axes` names these two themselves. Weights are
    read when they are drawn, so that a long attention map is never held whole.
    """

    attention_map: AttentionMap
    row: int
    head: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    axes: tuple[str, str] = ACROSS

    @classmethod
    def of(
        cls,
        weights: Weights,
        source: Sequence[str],
        target: Sequence[str],
        *,
        row: int | None = None,
        head: int | None = None,
    ) -> "HeadMap":
        """From an attention map, tensor or array: (batch, heads, queries, keys), or the last of
        these.

        row, head: which batch row and which head; None = the only one there is.
        Errors: `AttlasError` for another shape, and for tokens that are not one to a query and one
        to a slot.
        """
        attention_map = (
            weights if isinstance(weights, AttentionMap) else DenseAttentionMap(_as_tensor(weights))
        )
        batch, heads, queries, num_keys = attention_map.shape
        if not queries or not num_keys:
            raise AttlasError(
                "a map of at least one query and one slot",
                f"shape {attention_map.shape}",
                "there is nothing to draw",
            )
        row, head = _choice("row", "batch rows", batch, row), _choice("head", "heads", heads, head)
        _check_tokens("target", "query", queries, target)
        _check_tokens("source", "slot", num_keys, source)
        own = attention_map.at(row).select_heads(
            torch.tensor([head])
        )  # so that no other is computed
        return cls(own, 0, 0, tuple(source), tuple(target))

    def rows(self, start: int, stop: int) -> Float[np.ndarray, "rows keys"]:
        """The weights of queries start … stop − 1.

        Errors: `AttlasError` for weights that are negative or not finite.
        """
        block = self.attention_map.rows(start, stop)[self.row, self.head]
        values = block.detach().to("cpu", torch.float64).numpy()
        wrong = values[~(np.isfinite(values) & (values >= 0))]
        if wrong.size:
            raise AttlasError(
                "weights that are finite and ≥ 0",
                f"{wrong[0]} among them",
                "pass attention weights, after the softmax",
            )
        return values


def _as_tensor(weights: Tensor | ArrayLike) -> Float[Tensor, "batch heads queries keys"]:
    if isinstance(weights, Trace):
        raise AttlasError(
            "the weights of one map",
            "a whole trace",
            "draw all of it with attlas.figures.plot_trace(trace), or choose an attention map from "
            "it: "
            f"trace[{next(iter(weights), 'layer')!r}], with row= and head=",
        )
    if not isinstance(weights, Tensor):
        try:
            weights = torch.from_numpy(np.array(weights, dtype=np.float64))
        except (TypeError, ValueError):
            raise AttlasError(
                "weights as numbers, shaped (queries, keys)",
                f"a {type(weights).__name__} that is no such array",
                "pass an attention map, a tensor or an array",
            ) from None
    if not 1 <= weights.ndim <= 4 or weights.is_complex():
        raise AttlasError(
            "weights shaped (queries, keys), or (batch, heads, queries, keys)",
            f"shape {tuple(weights.shape)} of {weights.dtype}",
            "pass the weights of one layer",
        )
    missing = (1,) * (4 - weights.ndim)
    return weights.detach().to("cpu", torch.float64).reshape(missing + tuple(weights.shape))


def _choice(name: str, of: str, count: int, choice: int | None) -> int:
    if choice is None and count != 1:
        raise AttlasError(
            f"the weights of one map, or `{name}` to choose it by",
            f"weights of {count} {of}",
            f"pass {name}=0 … {count - 1}" if count else "there is nothing to draw",
        )
    if not 0 <= (chosen := choice or 0) < count:
        raise AttlasError(f"a {name} from 0 to {count - 1}", str(choice), "choose one of these")
    return chosen


def _check_tokens(axis: str, one: str, count: int, tokens: Sequence[str]) -> None:
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise AttlasError(
            f"the {axis} tokens as a list of strings", quoted(tokens), "pass one string a token"
        )
    if len(tokens) != count:
        raise AttlasError(
            f"{count} {axis} tokens, one to each {one}",
            f"{len(tokens)} tokens",
            "pass the tokens of this very map, special ones included",
        )


# The cells in which a map is drawn: its weights, or what is left of them when it is long.


MOST_CELLS = 1024  # a side; more could not be told apart on paper
_BLOCK = 4_000_000  # weights held at once while a longer map is pooled


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Each cell is the largest of tall × wide weights, 1 × 1 up to `MOST_CELLS` tokens a side.

    The last row and the last column may stand for fewer.
    """

    cells: Float[np.ndarray, "rows columns"]
    tall: int = 1
    wide: int = 1

    @classmethod
    def of(cls, map_: HeadMap) -> "Grid":
        """Read in blocks of queries. Errors: as `HeadMap.rows`."""
        queries, num_keys = len(map_.target), len(map_.source)
        tall, wide = -(-queries // MOST_CELLS), -(-num_keys // MOST_CELLS)
        batch, heads, _, _ = map_.attention_map.shape
        size = max(1, _BLOCK // (batch * heads * num_keys))
        columns = np.arange(0, num_keys, wide)
        cells = np.zeros((-(-queries // tall), len(columns)))  # weights are ≥ 0
        for start in range(0, queries, size):
            stop = min(start + size, queries)
            is_pooled = np.maximum.reduceat(map_.rows(start, stop), columns, axis=1)
            np.maximum.at(cells, np.arange(start, stop) // tall, is_pooled)
        return cls(cells, tall, wide)

    @property
    def is_pooled(self) -> bool:
        """Whether a cell stands for more than one weight."""
        return (self.tall, self.wide) != (1, 1)

    @property
    def max_weight(self) -> float:
        """The largest weight."""
        return float(self.cells.max())


# Weights as a reader meets them: short, and with the name of what they measure.


LEAST = 0.005  # a weight below this is written as a bare 0


def number(weight: float) -> str:
    """Two digits: .07, 1.0; a bare 0 for what rounds to it."""
    if weight < LEAST:
        return "0"
    return f"{weight:.1f}" if weight >= 0.995 else f"{weight:.2f}"[1:]


def scale_label(grids: Sequence[Grid]) -> str:
    """What a cell or a bar of these stands for."""
    sizes = {(grid.tall, grid.wide) for grid in grids}
    if not any(grid.is_pooled for grid in grids):
        return "attention weight"
    if len(sizes) > 1:
        return "largest attention weight of a cell"
    tall, wide = sizes.pop()
    return f"largest attention weight of {tall} × {wide} tokens"


# One map on a sheet: its cells, its numbers, its tokens.


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
    def fitting(cls, map_: HeadMap, side: float, largest: float = _LARGEST) -> "Cell":
        """As large as is comfortable, with the map within side × side inches; square if it can."""
        queries, num_keys = len(map_.target), len(map_.source)
        width, height = min(largest, side / num_keys), min(largest, side / queries)
        if max(queries, num_keys) <= _SQUARE * min(queries, num_keys):
            width = height = min(width, height)
        return cls(width, height)


def draw_panel(
    figure: Figure,
    map_: HeadMap,
    grid: Grid,
    cell: Cell,
    scale: Normalize,
    text_layout: TextLayout,
    *,
    queries_named: bool = True,
    numbered: bool = True,
) -> Axes:
    """Draw a map on the sheet, its first cell hanging from the corner (0, 0)."""
    of_slots, of_queries = map_.axes
    queries, num_keys = len(map_.target), len(map_.source)
    axes = axes_at(figure, Bbox.from_extents(0, -queries * cell.height, num_keys * cell.width, 0))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    _fill(axes, map_, grid, cell, scale)
    if numbered and not grid.is_pooled:
        _write_numbers(axes, grid.cells, cell, scale)
    name_slots(axes, map_.source, cell.width, text_layout, of_slots, grid.wide)
    if queries_named:
        name_queries(axes, map_.target, cell.height, text_layout, of_queries, grid.tall)
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


def _fill(axes: Axes, map_: HeadMap, grid: Grid, cell: Cell, scale: Normalize) -> None:
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

    weights, row, head: as `HeadMap.of`. The scale goes from 0 to the largest weight. A map of more
    than `MOST_CELLS` tokens a side is pooled: a cell shows the largest of its weights, and the
    colour bar says of how many.
    Bahdanau, Cho & Bengio, 2015, figure 3.

    Errors: `AttlasError` as `HeadMap.of`, and where no font draws the tokens.
    """
    map_ = HeadMap.of(weights, source, target, row=row, head=head)
    return _drawn([(title, map_)], columns=1, side=_SIDE)


def heatmaps(maps: Mapping[str, HeadMap], *, columns: int = 4) -> Figure:
    """Several maps, each under its name, in rows of `columns`, on one scale with one colour bar.

    Maps need not share their tokens: two mechanisms may translate differently. Neighbours that
    share their queries name them once.

    Errors: `AttlasError` for no map, or fewer columns than one; and as `heatmap`.
    """
    if not maps:
        raise AttlasError("at least one map to draw", "none", "pass {name: HeadMap.of(…)}")
    if columns < 1:
        raise AttlasError("at least one column", str(columns), "leave `columns` at 4")
    columns = min(columns, len(maps))
    return _drawn(list(maps.items()), columns, side=min(_SIDE, max(2.5, _WIDE / columns)))


def _drawn(maps: list[tuple[str, HeadMap]], columns: int, side: float) -> Figure:
    figure = sheet()
    text_layout = TextLayout.of(*((name, *map_.source, *map_.target) for name, map_ in maps))
    grids = [Grid.of(map_) for _, map_ in maps]
    scale = Normalize(0.0, max(grid.max_weight for grid in grids) or 1.0)
    panels: list[Axes] = []
    top = 0.0
    for start in range(0, len(maps), columns):
        some = slice(start, start + columns)
        row = _row(figure, maps[some], grids[some], side, scale, text_layout)
        above = max(extent_of(axes).y1 for axes in row)
        for axes in row:
            move_axes(axes, up=top - above)
        top = min(extent_of(axes).y0 for axes in row) - _GAP
        panels += row
    draw_scale(figure, scale, panels[:columns], scale_label(grids))
    fit(figure)
    return figure


def _row(
    figure: Figure,
    maps: Sequence[tuple[str, HeadMap]],
    grids: Sequence[Grid],
    side: float,
    scale: Normalize,
    text_layout: TextLayout,
) -> list[Axes]:
    """Panels from left to right, their first cells on one line, and their titles on another."""
    panels: list[Axes] = []
    before, left = None, 0.0
    for (name, map_), grid in zip(maps, grids, strict=True):
        cell = Cell.fitting(map_, side)
        named = before is None or (map_.target, map_.axes) != before
        axes = draw_panel(figure, map_, grid, cell, scale, text_layout, queries_named=named)
        if name:
            put_title(axes, text_layout.line(name), text_layout.style(TITLE))
        move_axes(axes, right=left - extent_of(axes).x0)
        before, left = (map_.target, map_.axes), extent_of(axes).x1 + _GAP
        panels.append(axes)
    level_titles(panels)
    return panels
