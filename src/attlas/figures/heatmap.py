"""The annotated heatmap, alone or beside others, on a common scale or each on its own."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.figures.arguments import check_count, check_named, check_strings
from attlas.figures.fonts import TextLayout
from attlas.figures.layout import (
    DOTS,
    GAP,
    HEADLINE,
    QUIET,
    SMALL,
    TITLE,
    area_of,
    arrange,
    axes_at,
    extent_of,
    fit,
    name_keys,
    name_queries,
    put_title,
    sheet,
)
from attlas.figures.scale import (
    LEAST,
    Ramp,
    Scale,
    check_format,
    luminance_of,
    most_characters,
    number,
    readable_on,
)
from attlas.recording import AttentionMap, DenseAttentionMap, Trace
from attlas.recording.labels import spelled_bytes

# What a figure draws: a matrix, of weights in most cases, with the labels of both axes.


Weights: TypeAlias = AttentionMap | Tensor | ArrayLike

ACROSS = ("source", "target")  # keys and queries of what looks from one text at another
WITHIN = ("key", "query")  # of self-attention, and of what has no second text


@dataclass(frozen=True, eq=False, slots=True)
class HeadMap:
    """The weights of one batch row and one head, or any other matrix, and the labels of both axes.

    `source` labels the columns, `target` the rows; `axes` names these two themselves. Numbers are
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
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
        *,
        row: int | None = None,
        head: int | None = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
    ) -> "HeadMap":
        """Build from an attention map, a tensor or an array: (batch, heads, queries, keys), or its
        last axes.

        Args:
            source, target: A label for each column and for each row; None = their positions, from
                0.
            row, head: Which batch row and which head; None = the only one there is.
            xlabel, ylabel: What the axes are called. None: "key" and "query" where both have the
                same labels, as in self-attention, else "source" and "target".

        Raises:
            AttlasError: For another shape, and unless there is one label for each column and each
                row.
        """
        attention_map = (
            weights if isinstance(weights, AttentionMap) else DenseAttentionMap(_as_tensor(weights))
        )
        batch, heads, queries, num_keys = attention_map.shape
        if not queries or not num_keys:
            raise AttlasError(
                "a map of at least one query and one key",
                f"shape {attention_map.shape}",
                "there is nothing to draw",
            )
        row, head = _choice("row", "batch rows", batch, row), _choice("head", "heads", heads, head)
        names = (
            _labels("source", "key", num_keys, source),
            _labels("target", "query", queries, target),
        )
        across, query_label = (
            WITHIN if names[0] == names[1] or (source is None and target is None) else ACROSS
        )
        row_map = attention_map.at(row).select_heads(
            torch.tensor([head])
        )  # so that no other is computed
        axes = (across if xlabel is None else xlabel, query_label if ylabel is None else ylabel)
        return cls(row_map, 0, 0, *names, axes)

    def rows(self, start: int, stop: int) -> Float[np.ndarray, "rows keys"]:
        """The numbers of rows start … stop − 1.

        Raises:
            AttlasError: For numbers that are not finite.
        """
        block = self.attention_map.rows(start, stop)[self.row, self.head]
        values = block.detach().to("cpu", torch.float64).numpy()
        _check_finite(values)
        return values

    def extremes(
        self, cuts: Sequence[int]
    ) -> tuple[Float[np.ndarray, "groups keys"], Float[np.ndarray, "groups keys"]]:
        """The least and the greatest number of each key in each group of rows, which are cut here.

        Raises:
            AttlasError: As `rows`.
        """
        start, stop = cuts[0], cuts[-1]
        if stop - start == len(cuts) - 1:  # groups of one
            values = self.rows(start, stop)
            return values, values
        block = self.attention_map.rows(start, stop)[self.row, self.head].detach()
        # By torch, and in the type that they have: that leaves few numbers for what comes next.
        parts = torch.split(block, [after - before for before, after in pairwise(cuts)])
        least, most = (
            torch.stack([of(part, 0) for part in parts]).to("cpu", torch.float64).numpy()
            for of in (torch.amin, torch.amax)
        )
        for values in (least, most):
            _check_finite(values)  # NaN is the least and the greatest of its group
        return least, most


def _check_finite(values: Float[np.ndarray, "rows keys"]) -> None:
    not_finite = values[~np.isfinite(values)]
    if not_finite.size:
        raise AttlasError(
            "numbers that are finite",
            f"{not_finite[0]} among them",
            "pass attention weights after the softmax, or replace such numbers",
        )


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
                f"a {type(weights).__name__}, which is no such array",
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


def _choice(name: str, owner: str, count: int, choice: int | None) -> int:
    if choice is not None and (isinstance(choice, bool) or not isinstance(choice, Integral)):
        raise AttlasError(f"a {name} as a whole number", quoted(choice), "count from 0")
    if choice is None and count != 1:
        raise AttlasError(
            f"the weights of one map, or `{name}` to choose it by",
            f"weights of {count} {owner}",
            f"pass {name}=0 … {count - 1}" if count else "there is nothing to draw",
        )
    if not 0 <= (index := choice or 0) < count:
        raise AttlasError(f"a {name} from 0 to {count - 1}", str(choice), "choose one of these")
    return index


def _labels(axis: str, cell: str, count: int, tokens: Sequence[str] | None) -> tuple[str, ...]:
    if tokens is None:
        return tuple(map(str, range(count)))
    is_list = isinstance(tokens, Iterable) and not isinstance(tokens, str)
    if not is_list or not all(isinstance(token, str) for token in tokens):
        raise AttlasError(
            f"the {axis} tokens as a list of strings", quoted(tokens), "pass one string a token"
        )
    if len(tokens) != count:
        raise AttlasError(
            f"{count} {axis} tokens, one to each {cell}",
            f"{len(tokens)} tokens",
            "pass the tokens of this very map, special ones included",
        )
    return spelled_bytes(tuple(tokens))


# The cells in which a map is drawn: its weights, or what is left of them when it is long.


MOST_CELLS = 1024  # a side; more could not be distinguished on paper
MOST_READ = 1 << 29  # weights of a figure, as in the explorer; of more, only some queries are read
_BLOCK = 4_000_000  # weights held at once while a longer map is pooled
_ROUNDING = 1e-2  # by which a weight in half precision may be above 1


class SampledMaps(UserWarning):
    """The maps of a figure have so many weights that only some queries were read."""


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Each cell is the number farthest from 0 of tall × wide, which are 1 × 1 up to `MOST_CELLS`
    labels a side. Of weights that is the largest.

    The last row and the last column may stand for fewer.

    Args:
        sampled: Of the tall queries of a cell, the one in the middle alone was read.
    """

    cells: Float[np.ndarray, "rows columns"]
    tall: int = 1
    wide: int = 1
    sampled: bool = False

    @classmethod
    def of(cls, map_: HeadMap, *, sampled: bool = False) -> "Grid":
        """Read in blocks of queries.

        Args:
            sampled: Read of each row of cells the query in its middle alone. A map of up to
                `MOST_CELLS` queries is read whole all the same.

        Raises:
            AttlasError: As `HeadMap.rows`.
        """
        queries, num_keys = len(map_.target), len(map_.source)
        tall, wide = -(-queries // MOST_CELLS), -(-num_keys // MOST_CELLS)
        sampled = sampled and tall > 1
        edges = [*range(0, queries, tall), queries]
        if sampled:
            middles = [(low + high) // 2 for low, high in pairwise(edges)]
            blocks = [(middle, middle + 1) for middle in middles]
        else:
            size = max(1, _BLOCK // num_keys)
            blocks = [(start, min(start + size, queries)) for start in range(0, queries, size)]
        columns = np.arange(0, num_keys, wide)
        most = np.full((len(edges) - 1, len(columns)), -np.inf)
        least = -most
        for start, stop in blocks:
            first, last = start // tall, (stop - 1) // tall + 1
            cuts = [start, *edges[first + 1 : last], stop]
            low, high = map_.extremes(cuts)
            cells = slice(first, last)
            np.minimum(least[cells], np.minimum.reduceat(low, columns, axis=1), out=least[cells])
            np.maximum(most[cells], np.maximum.reduceat(high, columns, axis=1), out=most[cells])
        return cls(np.where(-least > most, least, most), tall, wide, sampled)

    @property
    def is_pooled(self) -> bool:
        """Return True if a cell stands for more than one number."""
        return (self.tall, self.wide) != (1, 1)

    @property
    def max_weight(self) -> float:
        """The largest number."""
        return float(self.cells.max())

    @property
    def min_weight(self) -> float:
        """The smallest number."""
        return float(self.cells.min())


def limits_of(grids: Sequence[Grid]) -> tuple[float, float]:
    """The smallest and the largest number of all."""
    return min(grid.min_weight for grid in grids), max(grid.max_weight for grid in grids)


def scale_label(grids: Sequence[Grid], label: str | None = None) -> str:
    """What a cell or a bar of these stands for.

    Args:
        label: Of one number; None = an attention weight, or a value where one is below 0 or above
            1.
    """
    least, vmax = limits_of(grids)
    extends_below = least < 0
    weights = not extends_below and vmax <= 1 + _ROUNDING
    colour_label = ("attention weight" if weights else "value") if label is None else label
    sizes = {(grid.tall, grid.wide, grid.sampled) for grid in grids}
    if not any(grid.is_pooled for grid in grids):
        return colour_label
    pooled = f"{colour_label} farthest from 0" if extends_below else f"largest {colour_label}"
    if len(sizes) > 1:
        is_sample = any(grid.sampled for grid in grids)
        return f"a sample: {pooled} read of a cell" if is_sample else f"{pooled} of a cell"
    queries_per_cell, keys_per_cell, sampled = sizes.pop()
    if sampled:
        axis = f"1 of {queries_per_cell} queries × {keys_per_cell} keys"
        return f"a sample: {pooled} of {axis}"
    return f"{pooled} of {queries_per_cell} × {keys_per_cell} tokens"


def _warn_of_sample(grids: Sequence[Grid]) -> None:
    """Warn with `SampledMaps` if some grids are samples."""
    talls = {grid.tall for grid in grids if grid.sampled}
    if not talls:
        return
    keys = max(grid.wide for grid in grids if grid.sampled)
    most = f"one query of {max(talls)}" if len(talls) == 1 else "one of its queries"
    warnings.warn(
        f"this figure is a sample: each cell shows {most}, and its largest weight of up to "
        f"{keys:,} keys; all weights take longer (exact=True, --exact)",
        SampledMaps,
        stacklevel=4,  # of whoever calls `heatmap` or `heatmaps`
    )


# One map on a sheet: its cells, its numbers, its tokens.


_LARGEST = 0.42  # inches of a cell's side
_SMALLEST_NUMBER = 5.0  # points
_CHARACTER = 0.8  # of a number's size: the width of a character, and some white
_LIGHT = 0.6  # luminance of a cell on which grey can be read
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
        """At most `largest`, with the map within side × side inches; square if it can."""
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
    scale: Scale,
    text_layout: TextLayout,
    *,
    queries_named: bool = True,
    with_numbers: bool = True,
    fmt: str | None = None,
) -> Axes:
    """Draw a map on the sheet, its first cell hanging from the corner (0, 0)."""
    key_axis, query_axis = map_.axes
    queries, num_keys = len(map_.target), len(map_.source)
    axes = axes_at(figure, Bbox.from_extents(0, -queries * cell.height, num_keys * cell.width, 0))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    _fill(axes, map_, grid, cell, scale)
    if with_numbers and (size := _size_of_numbers(grid, cell, fmt)):
        _write_numbers(axes, grid.cells, scale, size, fmt)
    name_keys(axes, map_.source, cell.width, text_layout, key_axis, grid.wide)
    if queries_named:
        name_queries(axes, map_.target, cell.height, text_layout, query_axis, grid.tall)
    else:
        axes.set_yticks([])
    return axes


def draw_scale(
    figure: Figure, scale: Scale, row: Sequence[Axes], name: str, text_layout: TextLayout
) -> Axes:
    """The colour bar of these panels, to the right of the last."""
    area = area_of(row[-1])
    lower = min(area.y0, area.y1 - _SHORTEST_BAR)
    # Leaning labels reach to the right above the cells, where a short bar's name may stand.
    free = area if area.height >= _LONGEST_NAME else extent_of(row[-1])
    left_edge = free.x1 + 0.2
    axes = axes_at(figure, Bbox.from_extents(left_edge, lower, left_edge + 0.12, area.y1))
    axes.set_label("<colorbar>")  # as matplotlib calls those it places itself
    bar = figure.colorbar(ScalarMappable(scale.norm, scale.cmap), cax=axes, extend=scale.extend)
    bar.outline.set(color=QUIET, linewidth=0.5)
    bar.set_label(text_layout.line(name), color=QUIET, **text_layout.style(SMALL))
    axes.tick_params(labelsize=SMALL, length=2, width=0.5, color=QUIET)
    return axes


def _fill(axes: Axes, map_: HeadMap, grid: Grid, cell: Cell, scale: Scale) -> None:
    rows, columns = grid.cells.shape
    if min(cell.width, cell.height) >= _LINED:  # as shapes: sharp at any size
        edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
        axes.pcolormesh(
            *edges,
            grid.cells,
            cmap=scale.cmap,
            norm=scale.norm,
            edgecolors="white",
            linewidth=0.6,
        )
    else:
        axes.imshow(
            grid.cells,
            cmap=scale.cmap,
            norm=scale.norm,
            interpolation="nearest",
            aspect="auto",
        )
    # A last cell that pools fewer tokens than the others is drawn in proportion.
    axes.set_xlim(-0.5, len(map_.source) / grid.wide - 0.5)
    axes.set_ylim(len(map_.target) / grid.tall - 0.5, -0.5)


def _size_of_numbers(grid: Grid, cell: Cell, fmt: str | None) -> float | None:
    """In points; None where the numbers do not fit into their cells."""
    if grid.is_pooled:
        return None
    characters = most_characters(grid.cells.flat, fmt)
    size = min(7.5, 72 * min(cell.width / (_CHARACTER * max(characters, 3)), cell.height / 1.5))
    return size if size >= _SMALLEST_NUMBER else None


def _write_numbers(
    axes: Axes,
    cells: Float[np.ndarray, "rows columns"],
    scale: Scale,
    size: float,
    fmt: str | None,
) -> None:
    colours = scale.cmap(scale.norm(cells))
    for (row, column), weight in np.ndenumerate(cells):
        colour = colours[row, column]
        is_faint = fmt is None and abs(weight) < LEAST and luminance_of(colour) > _LIGHT
        axes.text(
            column,
            row,
            number(float(weight), fmt),
            size=size,
            ha="center",
            va="center_baseline",
            color=QUIET if is_faint else readable_on(colour),
        )


# The figures.


_SIDE = 9.0  # inches that the cells of one map may take, across and down
_WIDE = 14.0  # inches that the cells of maps side by side may take
_NAMED = 0.6  # inches that the title and the labels of a map take at least
MOST_PIXELS = 8192  # a side of a figure of several maps: more would be slow, and hard to open


def heatmap(
    weights: Weights,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    *,
    row: int | None = None,
    head: int | None = None,
    title: str = "",
    xlabel: str | None = None,
    ylabel: str | None = None,
    cmap: Ramp | None = None,
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    label: str | None = None,
    exact: bool = False,
) -> Figure:
    """A matrix as colours and, where they fit, as numbers: keys across the top, queries down.

    Bahdanau, Cho & Bengio, 2015, figure 3.

    Args:
        weights, source, target, row, head, xlabel, ylabel: As `HeadMap.of`, of any matrix. A map of
            more than `MOST_CELLS` tokens a side is pooled: a cell shows the largest of its weights,
            or the number farthest from 0, and the colour bar says of how many.
        cmap, vmin, vmax: As `Scale.of`; the scale goes from 0 to the largest weight, and around 0
            where a number is below 0.
        fmt: Of the numbers, such as ".3f".
        label: What the numbers are.
        exact: Read all weights. False = of more than `MOST_READ`, read only the query in the middle
            of each cell; the colour bar and a `SampledMaps` warning say so.

    Raises:
        AttlasError: As `HeadMap.of` and `Scale.of`, if no font draws the labels, and for a format
            that is none or whose numbers do not fit into the cells.

    Example:
        >>> import attlas
        >>> positions = attlas.reference.sinusoidal(20, 16)
        >>> figure = attlas.figures.heatmap(positions, xlabel="dimension", ylabel="position")
        >>> figure.axes[0].get_xlabel()
        'dimension'
    """
    check_strings(title=title, xlabel=xlabel, ylabel=ylabel, label=label)
    map_ = HeadMap.of(weights, source, target, row=row, head=head, xlabel=xlabel, ylabel=ylabel)
    style = _Style([cmap], vmin, vmax, fmt, label, shared=True, exact=exact)
    return _draw([(title, map_)], 1, _SIDE, style)


def heatmaps(
    maps: Mapping[str, HeadMap | Weights],
    *,
    columns: int = 4,
    title: str = "",
    cmap: Ramp | Sequence[Ramp | None] | None = None,
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    label: str | None = None,
    exact: bool = False,
) -> Figure:
    """Several maps, each with its name, in rows of `columns`, and a common title.

    They have one scale with one colour bar.

    Maps may have different tokens: two mechanisms may translate differently. Neighbours with the
    same queries label them once. A matrix is labelled with its positions.

    Args:
        cmap: A colormap; or a list of one for each map, and then each map has its own scale and
            colour bar.
        fmt, vmin, vmax, label: As of `heatmap`.
        exact: As of `heatmap`; `MOST_READ` counts the weights of all maps.

    Raises:
        AttlasError: For no map, fewer columns than one, another number of ramps than of maps, and a
            figure of more than `MOST_PIXELS` pixels a side; and as `heatmap`.
    """
    if isinstance(maps, Trace):
        raise AttlasError(
            "maps by name",
            "a whole trace",
            "draw it with attlas.figures.plot_trace(trace), or pass attlas.figures.maps_of(trace)",
        )
    check_named("map", "maps", maps, '{"head 0": weights[0], "head 1": weights[1]}')
    check_count("column", columns, "leave `columns` at 4")
    check_strings(title=title, label=label)
    shared = cmap is None or isinstance(cmap, str | Colormap)
    if not shared and not isinstance(cmap, Iterable):
        raise AttlasError(
            "a colormap of matplotlib, or a list of one for each map",
            quoted(cmap),
            "choose e.g. viridis, YlOrRd, RdBu_r",
        )
    ramps = [cmap] if cmap is None or isinstance(cmap, str | Colormap) else list(cmap)
    if not shared and len(ramps) != len(maps):
        raise AttlasError(
            f"{len(maps)} ramps, one for each map",
            str(len(ramps)),
            "pass as many, or one for all",
        )
    head_maps = {name: m if isinstance(m, HeadMap) else HeadMap.of(m) for name, m in maps.items()}
    width, height = pixels_of(list(head_maps.values()), columns)
    if max(width, height) > MOST_PIXELS:
        raise AttlasError(
            f"a figure of at most {MOST_PIXELS:,} pixels a side",
            f"{len(maps)} maps, about {width:,} × {height:,} pixels",
            "draw fewer maps at once, or choose other `columns`",
        )
    columns = min(columns, len(maps))
    style = _Style(
        cmaps=ramps, vmin=vmin, vmax=vmax, fmt=fmt, label=label, shared=shared, exact=exact
    )
    return _draw(list(head_maps.items()), columns, _side(columns), style, title)


def pixels_of(maps: Sequence[HeadMap], columns: int = 4) -> tuple[int, int]:
    """About how wide and high a figure of these maps is, before it is drawn."""
    columns = min(columns, len(maps))
    wide, high = 0.0, 0.0
    for start in range(0, len(maps), columns):
        row = maps[start : start + columns]
        cells = [Cell.fitting(map_, _side(columns)) for map_ in row]
        sizes = [
            (cell.width * len(map_.source), cell.height * len(map_.target))
            for cell, map_ in zip(cells, row, strict=True)
        ]
        wide = max(wide, sum(width + GAP for width, _ in sizes) + _NAMED)
        high += max(height for _, height in sizes) + _NAMED + GAP
    return round(wide * DOTS), round(high * DOTS)


def _side(columns: int) -> float:
    return min(_SIDE, max(2.5, _WIDE / columns))


@dataclass(frozen=True, slots=True)
class _Style:
    """How numbers are drawn as colours and text.

    Args:
        cmaps: One for all maps where they share a scale.
        exact: Whether all weights are read, however many there are.
    """

    cmaps: Sequence[Ramp | None]
    vmin: float | None
    vmax: float | None
    fmt: str | None
    label: str | None
    shared: bool
    exact: bool

    def scales(self, grids: Sequence[Grid]) -> list[Scale]:
        """The scale of each map."""
        if self.shared:
            return [Scale.of(*limits_of(grids), self.cmaps[0], self.vmin, self.vmax)] * len(grids)
        return [
            Scale.of(*limits_of([grid]), cmap, self.vmin, self.vmax)
            for grid, cmap in zip(grids, self.cmaps, strict=True)
        ]


def _draw(
    maps: list[tuple[str, HeadMap]], columns: int, side: float, style: _Style, title: str = ""
) -> Figure:
    check_format(style.fmt)
    figure = sheet()
    label = "" if style.label is None else style.label
    text_layout = TextLayout.of(
        [title, label], *((name, *map_.source, *map_.target, *map_.axes) for name, map_ in maps)
    )
    num_weights = sum(len(map_.target) * len(map_.source) for _, map_ in maps)
    sampled = not style.exact and num_weights > MOST_READ
    grids = [Grid.of(map_, sampled=sampled) for _, map_ in maps]
    _warn_of_sample(grids)
    scales = style.scales(grids)
    groups: list[list[Axes]] = []
    previous = None
    for number_, ((name, map_), grid, scale) in enumerate(zip(maps, grids, scales, strict=True)):
        cell = _cell(map_, grid, side, style.fmt)
        labels = (map_.target, map_.axes)
        draws_names = labels != previous or number_ % columns == 0 or not style.shared
        previous = labels
        axes = draw_panel(
            figure, map_, grid, cell, scale, text_layout, queries_named=draws_names, fmt=style.fmt
        )
        if name:
            put_title(axes, text_layout.line(name), text_layout.style(TITLE))
        groups.append([axes])
        if not style.shared:
            name_ = scale_label([grid], style.label)
            groups[-1].append(draw_scale(figure, scale, [axes], name_, text_layout))
    arrange(groups, columns)
    if style.shared:
        first = [axes for (axes,) in groups[:columns]]
        draw_scale(figure, scales[0], first, scale_label(grids, style.label), text_layout)
    fit(figure, text_layout.line(title), text_layout.style(HEADLINE))
    return figure


def _cell(map_: HeadMap, grid: Grid, side: float, fmt: str | None) -> Cell:
    """The size of a cell; with a format, large enough for its numbers."""
    if fmt is None:
        return Cell.fitting(map_, side)
    characters = most_characters(grid.cells.flat, fmt)
    cell = Cell.fitting(map_, side, max(_LARGEST, _CHARACTER * characters * _SMALLEST_NUMBER / 72))
    if _size_of_numbers(grid, cell, fmt) is None:
        raise AttlasError(
            f"numbers of the format {fmt!r} that fit into the cells of the figure",
            f"{characters} characters in each of {len(map_.target):,} × {len(map_.source):,} cells",
            "choose a shorter format, leave `fmt` out, or draw a part of the matrix",
        )
    return cell
