"""Line plots, and the statistics of a map, query by query."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.figures.arguments import check_limits, check_named, check_strings, limits_between
from attlas.figures.fonts import TextLayout
from attlas.figures.heatmap import HeadMap, Weights
from attlas.figures.layout import (
    HEADLINE,
    LABEL,
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
from attlas.figures.scale import check_format

_WIDTH, _HEIGHT = 4.5, 2.6  # inches of a line plot
# Okabe & Ito's colours, distinguished by every eye; with the dashes four times as many series are.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_DASHES = ("-", "--", ":", "-.")
_MARKED = 60  # points up to which each has a mark


Numbers = Tensor | ArrayLike | Sequence[float | int]


def lines(
    series: Mapping[str, Numbers],
    x: Numbers | Sequence[str] | None = None,
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
) -> Figure:
    """One line for each series, on common axes, with a legend if there are several.

    Args:
        series: Numbers by name, one for each place on the x axis.
        x: These places, as numbers or as labels; None = 0, 1, 2, …
        fmt: Of the numbers beside the y axis, such as ".0%".
        vmin, vmax: The limits of the y axis; None = as the numbers need.

    Raises:
        AttlasError: For no series, for an invalid format or limits, for a series that is not a row
            of finite numbers or of another length than `x` or its neighbours, and if no font draws
            the labels.

    Example:
        >>> import attlas
        >>> loss = {"training": [3.1, 2.0, 1.4], "validation": [3.0, 2.2, 1.9]}
        >>> figure = attlas.figures.lines(loss, [1, 2, 3], xlabel="epoch", ylabel="loss")
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['training', 'validation']
    """
    check_named("series", "series", series, '{"loss": [3.1, 2.0, 1.4]}')
    check_strings(title=title, xlabel=xlabel, ylabel=ylabel)
    check_format(fmt)
    check_limits(vmin, vmax)
    rows = {name: _row(quoted(name), values) for name, values in series.items()}
    labels = _labels(x)
    if x is None:
        x_values = np.arange(float(len(next(iter(rows.values())))))
    else:
        x_values = _row("x", x) if labels is None else np.arange(float(len(labels)))
    for name, row in rows.items():
        if len(row) != len(x_values):
            raise AttlasError(
                f"{len(x_values)} numbers in each series, one to each place on the x axis",
                f"{len(row)} in {quoted(name)}",
                "pass series of one length, and an `x` as long",
            )
    text_layout = TextLayout.of([title, xlabel, ylabel, *rows, *(labels or ())])
    figure = sheet()
    axes = _axes(figure, _WIDTH)
    for number, (name, row) in enumerate(rows.items()):
        _line(axes, x_values, row, number, text_layout.line(name))
    if vmin is not None or vmax is not None:
        axes.set_ylim(*limits_between(*axes.get_ylim(), vmin, vmax))
    if fmt is not None:
        axes.yaxis.set_major_formatter(lambda value, _: format(value, fmt))
    axes.grid(color="#e6e6e6", linewidth=0.5)
    axes.tick_params(axis="x", labelsize=SMALL, length=2, width=0.5, color=QUIET)
    if labels is None:
        axes.set_xlabel(text_layout.line(xlabel), color=QUIET, **text_layout.style(SMALL))
    else:
        axes.set_xlim(-0.5, len(x_values) - 0.5)
        tick_width = _WIDTH / len(x_values)
        name_keys(axes, labels, tick_width, text_layout, xlabel)
    axes.set_ylabel(text_layout.line(ylabel), color=QUIET, **text_layout.style(SMALL))
    if len(rows) > 1:
        legend = axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=LABEL
        )
        for text in legend.get_texts():
            text.set(**text_layout.style(LABEL))
    if title:
        put_title(axes, text_layout.line(title), text_layout.style(TITLE))
    fit(figure)
    return figure


def _labels(x: Numbers | Sequence[str] | None) -> list[str] | None:
    """The places as labels, where all of them are."""
    if isinstance(x, str) or not isinstance(x, Sequence) or not len(x):
        return None
    labels = [x_value for x_value in x if isinstance(x_value, str)]
    return labels if len(labels) == len(x) else None


def _row(name: str, values: Numbers | Sequence[str]) -> Float[np.ndarray, " places"]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().double().numpy()
    try:
        row = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise AttlasError(
            f"numbers in {name}", quoted(values), "pass one number to each place"
        ) from None
    if row.ndim != 1 or not len(row):
        raise AttlasError(
            f"a row of numbers in {name}", f"shape {row.shape}", "pass a series as a list"
        )
    if not np.isfinite(row).all():
        raise AttlasError(
            f"finite numbers in {name}",
            f"{row[~np.isfinite(row)][0]} among them",
            "leave out the places where there is no number",
        )
    return row


def _axes(figure: Figure, width: float) -> Axes:
    axes = axes_at(figure, Bbox.from_extents(0, -_HEIGHT, width, 0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", labelsize=SMALL, length=2, width=0.5, color=QUIET)
    axes.set_axisbelow(True)
    return axes


def _line(
    axes: Axes,
    x: Float[np.ndarray, " places"],
    y: Float[np.ndarray, " places"],
    number: int,
    name: str,
) -> None:
    dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
    colour = _COLOURS[number % len(_COLOURS)]
    mark = "o" if len(x) <= _MARKED else ""
    axes.plot(x, y, color=colour, linestyle=dash, marker=mark, markersize=3, label=name)


# The statistics of a map.


_ROOM, _BROAD, _NARROW = 0.4, 3.6, 1.8  # inches: of a query, of a panel at most and at least
_BARS = 400  # queries up to which each has a bar


def plot_statistics(
    weights: HeadMap | Weights,
    target: Sequence[str] | None = None,
    *,
    row: int | None = None,
    head: int | None = None,
    threshold: float = 0.1,
    title: str = "",
    axis: str | None = None,
) -> Figure:
    """Three panels, query by query: entropy, largest weight, and the number of weights above
    `threshold`. Each title has the mean over the queries and the standard deviation.

    The entropy −Σ w log w is in nats.

    Args:
        weights, row, head: As `HeadMap.of`, or a `HeadMap`, such as `maps_of` gives.
        target: A label for each query; None = their positions, from 0.
        axis: The name of the query axis.

    Raises:
        AttlasError: As `HeadMap.of`, for a weight below 0, and a threshold that is no weight.

    Example:
        >>> import attlas
        >>> figure = attlas.figures.plot_statistics([[0.9, 0.1], [0.5, 0.5]], target=["my", "cat"])
        >>> len(figure.axes)
        3
    """
    if isinstance(weights, HeadMap):
        if target is not None or row is not None or head is not None:
            raise AttlasError(
                "a `HeadMap` alone, which has its labels, row and head",
                "target, row or head beside it",
                "leave these out",
            )
        map_ = weights
    else:
        map_ = HeadMap.of(weights, None, target, row=row, head=head)
    queries = len(map_.target)
    _check_weights(map_)
    statistics = ("entropy", "max_weight", "count_above")
    summary = map_.attention_map.summary(*statistics, threshold=threshold)
    default = "query" if target is None and weights is not map_ else map_.axes[1]
    name = default if axis is None else axis
    headings = ("entropy in nats", "largest weight", f"weights above {threshold:g}")
    figure = sheet()
    text_layout = TextLayout.of([title, name, "mean · std"], map_.target, headings)
    query_width = max(_NARROW / queries, min(_BROAD / queries, _ROOM))  # inches for each query
    x_values, drawn_axes = np.arange(float(queries)), list[Axes]()
    for number, (heading, statistic) in enumerate(zip(headings, statistics, strict=True)):
        values = getattr(summary, statistic)[map_.row, map_.head].double().cpu().numpy()
        axes = _axes(figure, query_width * queries)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.5)
        if number < 2:
            _line(axes, x_values, values, number, heading)
        elif queries <= _BARS:
            axes.bar(x_values, values, width=0.8, color=_COLOURS[number], label=heading)
        else:
            axes.fill_between(x_values, values, step="mid", color=_COLOURS[number], label=heading)
        highest = 1.0 if number == 1 else float(values.max()) or 1.0
        axes.set_ylim(0.0, 1.08 * max(highest, float(values.max())))
        axes.set_xlim(-0.5, queries - 0.5)
        if number == 2:
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        panel_title = f"{heading}\nmean {values.mean():.2f} · std {values.std():.2f}"
        put_title(axes, panel_title, text_layout.style(LABEL))
        name_keys(axes, map_.target, query_width, text_layout, name)
        drawn_axes.append(axes)
    arrange([[axes] for axes in drawn_axes], len(drawn_axes))
    fit(figure, text_layout.line(title), text_layout.style(HEADLINE))
    return figure


def _check_weights(map_: HeadMap) -> None:
    """Raise `AttlasError` for a number that is no weight; read in blocks of queries."""
    queries, keys = len(map_.target), len(map_.source)
    size = max(1, 4_000_000 // keys)
    for start in range(0, queries, size):
        block = map_.rows(start, min(start + size, queries))
        if (block < 0).any():
            raise AttlasError(
                "weights that are ≥ 0",
                f"{block.min():g} among them",
                "pass attention weights, after the softmax",
            )
