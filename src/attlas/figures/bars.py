"""Bar charts of one query, its distribution over the keys; and drawings of patterns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attlas.errors import AttlasError, quoted
from attlas.figures.arguments import (
    check_color,
    check_count,
    check_limits,
    check_named,
    check_strings,
    limits_between,
)
from attlas.figures.fonts import TextLayout
from attlas.figures.heatmap import (
    ACROSS,
    WITHIN,
    Cell,
    Grid,
    HeadMap,
    Weights,
    draw_panel,
    limits_of,
    scale_label,
)
from attlas.figures.layout import (
    HEADLINE,
    INK,
    QUIET,
    SMALL,
    TITLE,
    arrange,
    axes_at,
    fit,
    name_keys,
    put_title,
    sheet,
)
from attlas.figures.scale import SEQUENTIAL, Scale, check_format, most_characters, number
from attlas.patterns import Pattern
from attlas.recording import FactoredAttentionMap

_WIDEST, _ACROSS, _HEIGHT = 0.45, 9.0, 2.2  # inches: of one key, of all, of the bars
_LINED = 0.05  # width of a key in inches from which on bars have gaps
_CHARACTER = 0.07  # inches of a character of a number, some white between two of them counted in
_BAR = "#2a6fb0"


def bars(
    weights: Weights,
    source: Sequence[str] | None = None,
    query: str = "",
    *,
    title: str = "",
    axis: str = ACROSS[0],
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    label: str | None = None,
    color: str | None = None,
) -> Figure:
    """One bar for each key, with its weight above it if there is room.

    Args:
        weights: Shaped (keys,), or (1, keys) after any axes of size 1, such as
            `attention_map.rows(3, 4)`.
        source: A label for each key; None = their positions, from 0.
        query: The token that looks, which the figure is about.
        axis: What its keys are called.
        fmt: Of the numbers, such as ".3f".
        vmin, vmax: The limits of their axis; None: from 0 to the largest, and to the smallest where
            one is below 0.
        label: What the numbers are, beside their axis.
        color: Of the bars, as matplotlib takes it.

    Raises:
        AttlasError: As `HeadMap.of`; for several queries; if no font draws the tokens; for an
            invalid format, and one whose numbers have no room; for limits without numbers between
            them, and an unknown colour.
    """
    check_strings(query=query, title=title)
    name = title or (f"“{query}”" if query else "")
    style = _BarStyle(axis=axis, fmt=fmt, vmin=vmin, vmax=vmax, label=label, color=color)
    return _bars({name: weights}, source, [query], "", 1, style)


def bar_panels(
    panels: Mapping[str, Weights],
    source: Sequence[str] | None = None,
    *,
    title: str = "",
    axis: str = ACROSS[0],
    columns: int = 3,
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    label: str | None = None,
    color: str | None = None,
) -> Figure:
    """Bar charts side by side on one scale, each with its name, and a common title.

    Args:
        panels: The weights of one query by name, each as for `bars`: several mechanisms, or several
            queries. Further arguments are those of `bars`.

    Raises:
        AttlasError: For no panel, fewer columns than one, and as `bars`.

    Example:
        >>> import attlas
        >>> panels = {"additive": [0.2, 0.7, 0.1], "general": [0.3, 0.4, 0.3]}
        >>> figure = attlas.figures.bar_panels(panels, ["the", "cat", "sleeps"])
        >>> [axes.get_title() for axes in figure.axes]
        ['additive', 'general']
    """
    check_named("panel", "panels", panels, '{"additive": weights}')
    check_count("column", columns, "leave `columns` at 3")
    style = _BarStyle(axis=axis, fmt=fmt, vmin=vmin, vmax=vmax, label=label, color=color)
    return _bars(panels, source, None, title, columns, style)


@dataclass(frozen=True, slots=True)
class _BarStyle:
    """How bars are drawn; the arguments of `bars`."""

    axis: str
    fmt: str | None
    vmin: float | None
    vmax: float | None
    label: str | None
    color: str | None

    def check(self) -> None:
        check_format(self.fmt)
        check_limits(self.vmin, self.vmax)
        check_color(self.color)
        check_strings(axis=self.axis, label=self.label)


def _bars(
    panels: Mapping[str, Weights],
    source: Sequence[str] | None,
    query: Sequence[str] | None,
    title: str,
    columns: int,
    style: _BarStyle,
) -> Figure:
    style.check()
    check_strings(title=title)
    fmt, axis, label = style.fmt, style.axis, style.label
    maps = [HeadMap.of(weights, source, query) for weights in panels.values()]
    for map_ in maps:
        if len(map_.target) != 1:
            raise AttlasError(
                "the weights of one query in each panel",
                f"{len(map_.target)} queries",
                "choose a row of them, such as weights[0]",
            )
    grids = [Grid.of(map_) for map_ in maps]
    columns = min(columns, len(maps))
    bar_width = max(
        _bar_width(grid, len(map_.source), fmt) for grid, map_ in zip(grids, maps, strict=True)
    )
    text_layout = TextLayout.of(
        [title, axis, label or "", *panels], query or (), *(map_.source for map_ in maps)
    )
    low, high = limits_of(grids)
    low, high = min(low, 0.0), max(high, 0.0)
    room_for_numbers = 0.12 * (high - low)
    if low == high:  # all are 0
        high = 1.0
    limits = limits_between(
        low - room_for_numbers * (low < 0),
        high + room_for_numbers * (high > 0),
        style.vmin,
        style.vmax,
    )
    figure, panels_drawn = sheet(), list[Axes]()
    for index, (name, grid, map_) in enumerate(zip(panels, grids, maps, strict=True)):
        width = min(bar_width, _ACROSS / len(map_.source))
        axes = _panel(figure, grid, len(map_.source), width, style)
        axes.set_ylim(*limits)
        if index % columns:
            axes.tick_params(labelleft=False)
        else:
            text = text_layout.line(scale_label(grids, label))
            axes.set_ylabel(text, color=QUIET, **text_layout.style(SMALL))
        if name:
            put_title(axes, text_layout.line(name), text_layout.style(TITLE))
        name_keys(axes, map_.source, width, text_layout, axis, grid.wide)
        panels_drawn.append(axes)
    arrange([[axes] for axes in panels_drawn], columns)
    fit(figure, text_layout.line(title), text_layout.style(HEADLINE))
    return figure


def _bar_width(grid: Grid, keys: int, fmt: str | None) -> float:
    """Inches for each key: as many as is comfortable, and as the numbers of a format need."""
    max_width = _ACROSS / keys
    if fmt is None:
        return min(_WIDEST, max_width)
    min_width = _CHARACTER * most_characters(grid.cells[0], fmt)
    if grid.is_pooled or min_width > max_width:
        raise AttlasError(
            f"numbers of the format {fmt!r} that fit above their bars",
            f"{keys:,} bars in {_ACROSS:g} inches",
            "choose a shorter format, leave `fmt` out, or draw fewer bars",
        )
    return max(min_width, min(_WIDEST, max_width))


def _panel(figure: Figure, grid: Grid, keys: int, bar_width: float, style: _BarStyle) -> Axes:
    axes = axes_at(figure, Bbox.from_extents(0, -_HEIGHT, bar_width * keys, 0))
    heights = grid.cells[0]
    bar_share = 0.8 if bar_width >= _LINED else 1.0
    color, fmt = style.color or _BAR, style.fmt
    axes.bar(range(len(heights)), heights, width=bar_share, color=color)
    axes.set_xlim(-0.5, keys / grid.wide - 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", labelsize=SMALL, length=2, width=0.5, color=QUIET)
    if heights.min() < 0:
        axes.axhline(0.0, color=QUIET, linewidth=0.5)
    if not grid.is_pooled and bar_width >= _CHARACTER * max(3, most_characters(heights, fmt)):
        for index, weight in enumerate(heights):
            axes.annotate(
                number(float(weight), fmt),
                (index, weight),
                (0, -2 if weight < 0 else 2),
                textcoords="offset points",
                ha="center",
                va="top" if weight < 0 else "bottom",
                size=SMALL,
                color=INK,
            )
    return axes


# The drawing of a pattern: which query may see which key.


_SIDE, _LARGEST = 5.0, 0.22  # inches: of the drawing, of a cell
_SEEN_AND_HIDDEN = Scale(colormaps[SEQUENTIAL], Normalize(0.0, 1.4))  # dark, and not black


def plot_pattern(
    pattern: Pattern,
    queries: int,
    num_keys: int | None = None,
    *,
    query_offset: int | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a pattern: dark where a query may look, light elsewhere; positions count from 0.

    Args:
        num_keys: None = as many as queries.
        query_offset: The position of the first query; None = the queries are the newest positions.
        title: None = the pattern's own text. With more than `MOST_CELLS` positions a side cells are
            pooled; a cell is dark if any of its pairs is allowed.

    Raises:
        AttlasError: For fewer queries or keys than one.
    """
    if not isinstance(pattern, Pattern):
        raise AttlasError(
            "a pattern, such as causal or window(3)",
            quoted(pattern),
            "take one from attlas.patterns; heatmap draws an array",
        )
    num_keys = queries if num_keys is None else num_keys
    check_count("query", queries, "draw a longer pattern")
    check_count("key", num_keys, "draw a longer pattern")
    check_strings(title=title)
    start = num_keys - queries if query_offset is None else query_offset
    # Equal scores: each query weighs what it may see alike, and the rest not at all.
    uniform_map = FactoredAttentionMap(
        torch.zeros(1, 1, queries, 1), torch.zeros(1, 1, num_keys, 1), 1.0, pattern, start
    )
    map_ = HeadMap.of(
        uniform_map, [str(i) for i in range(num_keys)], [str(start + i) for i in range(queries)]
    )
    map_ = replace(map_, axes=WITHIN)
    grid = Grid.of(map_)
    visible = replace(grid, cells=(grid.cells > 0).astype(float))
    title = str(pattern) if title is None else title
    figure = sheet()
    text_layout = TextLayout.of([title, *map_.source, *map_.target, *map_.axes])
    cell = Cell.fitting(map_, _SIDE, _LARGEST)
    axes = draw_panel(
        figure,
        map_,
        visible,
        cell,
        _SEEN_AND_HIDDEN,
        text_layout,
        with_numbers=False,
    )
    if title:
        put_title(axes, text_layout.line(title), text_layout.style(TITLE))
    fit(figure)
    return figure
