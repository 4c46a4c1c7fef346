"""From a trace to the maps in it, and to their figure."""

import warnings
from collections.abc import Iterable
from dataclasses import replace

from matplotlib.figure import Figure

from attlas.errors import AttlasError, listed, quoted
from attlas.figures.heatmap import side_by_side
from attlas.figures.map import ACROSS, WITHIN, Map
from attlas.recording import Reading, Trace
from attlas.recording.axes import axes_of


def figure_of(trace: Trace, *, layer: str | None = None, row: int = 0) -> Figure:
    """All that a batch row of a trace holds, as heatmaps side by side on one scale.

    layer, row: as `maps_of`; many layers of many heads are better drawn a layer at a time.

    >>> import torch, attlas
    >>> attention = attlas.layers.MultiHead(width=16, heads=4)
    >>> source = torch.randn(1, 3, 16)
    >>> with attlas.observe(attention) as trace:
    ...     context = attention(source, attention.remember(source))
    >>> trace.label(source=[["my", "own", "words"]])
    >>> figure = attlas.figures.figure_of(trace)
    >>> [axes.get_title() for axes in figure.axes[:4]]
    ['model, head 0', 'model, head 1', 'model, head 2', 'model, head 3']
    >>> attlas.figures.save(figure, "maps.png")

    Errors: `AttlasError` as `maps_of` and `side_by_side`.
    """
    maps = maps_of(trace, row, layer=layer)
    # A map that stands alone needs no name.
    return side_by_side(maps if len(maps) != 1 else dict.fromkeys([""], *maps.values()))


def maps_of(trace: Trace, row: int = 0, *, layer: str | None = None) -> dict[str, Map]:
    """Every head of every call of every layer as a map of its own, for this batch row, by name.

    A name is the layer's path, with the call and the head where there are several, all counted
    from 0: "decoder.attention", "decoder.layers.1, head 3". Axes as long as the trace's target or
    source carry its tokens, others their positions; they are called source and target where one
    looks at the other, else key and query. layer: only the maps whose names begin so; None = all.
    Where this ends a part of some names, only those: "decoder.layers.1" is not "….10", nor
    "head 1" "head 12".

    Errors: `AttlasError` for a row that the trace does not have, and where no name begins so.
    Warns with `UnfitTokens` where this row has fewer tokens than the axes that would show them have
    places, and another row as many.
    """
    maps = _all_maps(trace, row)
    named = _beginning_so(maps, layer or "")
    if maps and not named:
        raise AttlasError(
            "the beginning of a map's name", quoted(layer), f"choose from: {listed(maps)}"
        )
    unfit = [text for name in named for text in _unfit(trace, maps[name][0], row, maps[name][1])]
    for text in dict.fromkeys(unfit):
        warnings.warn(text, UnfitTokens, stacklevel=2)
    return {name: maps[name][1] for name in named}


class UnfitTokens(UserWarning):
    """The tokens of a row do not fit its axis, which shows positions in their place."""


def _beginning_so(names: Iterable[str], beginning: str) -> list[str]:
    those = [name for name in names if name.startswith(beginning)]
    whole = [name for name in those if name[len(beginning) :][:1] in ("", ".", ",")]
    return whole or those


def _all_maps(trace: Trace, row: int) -> dict[str, tuple[str, Map]]:
    """Each with the path of its layer."""
    maps: dict[str, tuple[str, Map]] = {}
    for layer in trace.layers:
        calls = trace.calls(layer)
        for call, reading in enumerate(calls):
            batch, heads, _, _ = reading.shape
            if not 0 <= row < batch:
                raise AttlasError(
                    f"a batch row from 0 to {batch - 1}", str(row), "choose a row of the trace"
                )
            for head, map_ in enumerate(_heads(reading, trace, layer, row)):
                numbers = [f"call {call}"] * (len(calls) > 1) + [f"head {head}"] * (heads > 1)
                maps[", ".join([layer or "model", *numbers])] = layer, map_
    return maps


def _heads(reading: Reading, trace: Trace, layer: str, row: int) -> list[Map]:
    _, heads, queries, slots = reading.shape
    axes = axes_of(trace, layer, row, queries, slots)
    names, slot_names = axes.queries or _numbers(queries), axes.slots or _numbers(slots)
    maps = [Map.of(reading, slot_names, names, row=row, head=head) for head in range(heads)]
    return [replace(map_, axes=WITHIN if axes.within else ACROSS) for map_ in maps]


def _unfit(trace: Trace, layer: str, row: int, map_: Map) -> list[str]:
    """What to say of tokens of the layer that leave padding of this row unnamed."""
    told = []
    for rows in trace.tokens(layer):
        own = len(rows[row]) if row < len(rows) else 0
        places = max(map(len, rows), default=0)
        if 0 < own < places and _numbers(places) in (map_.source, map_.target):
            tokens = f"{own:,} token{'s' if own > 1 else ''}"
            told.append(
                f"row {row} has {tokens} for {places:,} places, some of padding: positions are "
                "shown; label the padding too"
            )
    return told


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))
