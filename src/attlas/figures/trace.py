"""Figures of a trace."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attlas.errors import AttlasError, join_names, quoted
from attlas.figures.arguments import check_count
from attlas.figures.heatmap import ACROSS, MOST_PIXELS, WITHIN, HeadMap, heatmaps, pixels_of
from attlas.figures.scale import Ramp
from attlas.recording import AttentionMap, Trace
from attlas.recording.trace import axes_of


def plot_trace(
    trace: Trace,
    *,
    layer: str | None = None,
    head: int | None = None,
    row: int = 0,
    columns: int = 4,
    title: str = "",
    cmap: Ramp | None = None,
    fmt: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    exact: bool = False,
) -> Figure:
    """All maps of a batch row of a trace, as heatmaps side by side on one scale.

    Args:
        layer, head, row: As `maps_of`; the others as `heatmaps`. A figure of more than
            `MOST_PIXELS` pixels a side is an error: choose a layer or a head.

    Raises:
        AttlasError: As `maps_of` and `heatmaps`, and for a figure that is too large.

    Example:
        >>> import torch, attlas
        >>> attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        >>> source = torch.randn(1, 3, 16)
        >>> with attlas.observe(attention) as trace:
        ...     context, _ = attention(source, source, source)
        >>> trace.label(source=[["my", "own", "words"]])
        >>> figure = attlas.figures.plot_trace(trace)
        >>> [axes.get_title() for axes in figure.axes[:4]]
        ['model, head 0', 'model, head 1', 'model, head 2', 'model, head 3']
        >>> attlas.figures.save(figure, "maps.png")
    """
    maps = maps_of(trace, row, layer=layer, head=head)
    check_count("column", columns, "leave `columns` at 4")
    width, height = pixels_of(list(maps.values()), columns) if maps else (0, 0)
    if max(width, height) > MOST_PIXELS:
        name = next(iter(maps))
        first = name.split(", ")[0]
        raise AttlasError(
            f"a figure of at most {MOST_PIXELS:,} pixels a side",
            f"{len(maps)} maps, about {width:,} × {height:,} pixels",
            f"choose a layer (layer=, --layer), such as {first!r}, or a head, such as {name!r}",
        )
    if len(maps) == 1:  # a single map needs no name
        maps = dict.fromkeys([""], *maps.values())
    return heatmaps(
        maps,
        columns=columns,
        title=title,
        cmap=cmap,
        fmt=fmt,
        vmin=vmin,
        vmax=vmax,
        exact=exact,
    )


def maps_of(
    trace: Trace, row: int = 0, *, layer: str | None = None, head: int | None = None
) -> dict[str, HeadMap]:
    """Every head of every call of every layer as a map of its own, for this batch row, by name.

    A name is the layer's path, with the call and the head where there are several, all counted from
    0: "decoder.attention", "decoder.layers.1, head 3". Axes as long as the trace's target or source
    carry its tokens, others their positions; they are called source and target where one looks at
    the other, else key and query.

    In a beam search, maps of a decoder have several rows for each text, and maps of an encoder one.
    Only row 0 belongs to the same text in all of them. For another row, choose by `layer` maps with
    equal numbers of rows.

    Warns with `UnmatchedTokens` if this row has fewer tokens than its axis has places, and another
    row as many.

    Args:
        layer: Only the maps whose names begin so; None = all. Where this ends a part of some names,
            only those: "decoder.layers.1" is not "….10", nor "head 1" "head 12".
        head: Only this head of each layer; None = all.

    Raises:
        AttlasError: For a row or a head that a map does not have; for a row of different texts; and
            if no name begins so.
    """
    if not isinstance(trace, Trace):
        raise AttlasError(
            "a trace, as attlas.observe gives",
            f"a {type(trace).__name__}",
            "draw one matrix with attlas.figures.heatmap",
        )
    call_places = _places(trace)
    matching = _beginning_so(call_places, layer or "")
    if call_places and not matching:
        raise AttlasError(
            "the beginning of a map's name",
            quoted(layer),
            f"choose from: {join_names(call_places)}",
        )
    if head is not None:
        heads = {call_places[name].attention_map.shape[1] for name in matching}
        matching = [name for name in matching if call_places[name].head == head]
        if heads and not matching:
            raise AttlasError(
                f"a head from 0 to {max(heads) - 1}", str(head), "choose one of these"
            )
    _check_row(call_places, matching, row)
    maps = {name: _map_at(trace, call_places[name], row) for name in matching}
    unfit = [
        text for name in matching for text in _unmatched(trace, call_places[name], row, maps[name])
    ]
    for text in dict.fromkeys(unfit):
        warnings.warn(text, UnmatchedTokens, stacklevel=2)
    return maps


class UnmatchedTokens(UserWarning):
    """The tokens of a row do not fit its axis, which shows positions in their place."""


def _beginning_so(names: Iterable[str], beginning: str) -> list[str]:
    those = [name for name in names if name.startswith(beginning)]
    inner_names = [name for name in those if name[len(beginning) :][:1] in ("", ".", ",")]
    return inner_names or those


@dataclass(frozen=True, slots=True)
class _Place:
    """Which map of a trace: the attention map of a call of a layer, and a head of it."""

    layer: str
    attention_map: AttentionMap
    head: int


def _places(trace: Trace) -> dict[str, _Place]:
    """Every map of a trace, by its name."""
    places: dict[str, _Place] = {}
    for layer in trace:
        calls = trace.calls(layer)
        for call, attention_map in enumerate(calls):
            heads = attention_map.shape[1]
            for head in range(heads):
                numbers = [f"call {call}"] * (len(calls) > 1) + [f"head {head}"] * (heads > 1)
                name = ", ".join([layer or "model", *numbers])
                places[name] = _Place(layer, attention_map, head)
    return places


def _check_row(call_places: dict[str, _Place], names: Sequence[str], row: int) -> None:
    """Check that each of these maps has this row, and that it is of the same text in all of
    them.
    """
    batches = {name: call_places[name].attention_map.shape[0] for name in names}
    least, longest = min(batches.values(), default=0), max(batches.values(), default=0)
    if batches and not 0 <= row < longest:
        raise AttlasError(
            f"a batch row from 0 to {longest - 1}", str(row), "choose a row of the trace"
        )
    if row and least != longest:
        layers_by_rows = {
            count: next(n for n in names if batches[n] == count) for count in (least, longest)
        }
        rows = " and ".join(f"{count} rows of {name!r}" for count, name in layers_by_rows.items())
        raise AttlasError(
            f"maps with as many batch rows as each other, or row {row} would be of several texts",
            rows,
            "choose maps of the same number of rows by their layer, such as "
            f"{layers_by_rows[longest]!r}",
        )


def _map_at(trace: Trace, call_place: _Place, row: int) -> HeadMap:
    batch, _, queries, num_keys = call_place.attention_map.shape
    axes = axes_of(trace, call_place.layer, row, batch, queries, num_keys)
    xlabel, ylabel = WITHIN if axes.within else ACROSS
    return HeadMap.of(
        call_place.attention_map,
        axes.keys or None,
        axes.queries or None,
        row=row,
        head=call_place.head,
        xlabel=xlabel,
        ylabel=ylabel,
    )


def _unmatched(trace: Trace, call_place: _Place, row: int, map_: HeadMap) -> list[str]:
    """What to say of tokens of the layer that leave padding of this row unnamed."""
    notes = []
    for rows in trace.tokens(call_place.layer):
        row_length = len(rows[row]) if len(rows) == call_place.attention_map.shape[0] else 0
        longest_row = max(map(len, rows), default=0)
        if 0 < row_length < longest_row and _numbers(longest_row) in (map_.source, map_.target):
            tokens = f"{row_length:,} token{'s' if row_length > 1 else ''}"
            notes.append(
                f"row {row} has {tokens} for {longest_row:,} places, some of padding: positions "
                "are shown; label the padding too"
            )
    return notes


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))
