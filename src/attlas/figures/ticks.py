"""Tokens along an axis: all of them while they can be read, else evenly thinned, and saying so."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text

from attlas.figures.lettering import Lettering
from attlas.figures.paper import INK, LABEL, QUIET, SMALL, width_of

_LINE = 1.3 / 72  # inches of a line of text for each point of its size
_SLANTED = 1.3  # a line at 45° needs this much more room along the axis, √2 less some white


def name_slots(
    axes: Axes,
    tokens: Sequence[str],
    room: float,
    lettering: Lettering,
    name: str,
    per_tick: int = 1,
) -> None:
    """Label the x axis, on the side where its ticks are; `room` is inches for each token.

    Labels lie flat where they fit, lean where there is room for a leaning line, else stand.
    """
    on_top = axes.xaxis.get_ticks_position() == "top"
    every, texts = _place(axes.xaxis, tokens, room, room < LABEL * _LINE, lettering, per_tick)
    _name(axes.xaxis, name, len(tokens), every)
    widest = max(width_of(text) for text in texts)
    if widest + 0.04 <= room * every:
        style = {"rotation": 0, "ha": "center", "va": "bottom" if on_top else "top"}
    elif room * every >= LABEL * _LINE * _SLANTED:
        style = {"rotation": 45, "ha": "left" if on_top else "right", "va": "center"}
    else:
        style = {"rotation": 90, "ha": "left" if on_top else "right", "va": "center"}
    for text in texts:
        text.set(rotation_mode="anchor", **style)


def name_queries(
    axes: Axes,
    tokens: Sequence[str],
    room: float,
    lettering: Lettering,
    name: str,
    per_tick: int = 1,
) -> None:
    """Label the y axis; `room` is inches for each token."""
    every, _ = _place(axes.yaxis, tokens, room, room < LABEL * _LINE, lettering, per_tick)
    _name(axes.yaxis, name, len(tokens), every)


def _place(
    axis: Axis,
    tokens: Sequence[str],
    room: float,
    crowded: bool,
    lettering: Lettering,
    per_tick: int,
) -> tuple[int, list[Text]]:
    size = SMALL if crowded else LABEL
    every = _thinned(size * _LINE / room)
    chosen = range(0, len(tokens), every)
    # Token i is in the middle of its share of cell i // per_tick, whose own middle is an integer.
    places = [(i + 0.5) / per_tick - 0.5 for i in chosen]
    axis.set_ticks(places, [lettering.label(tokens[i]) for i in chosen], **lettering.style(size))
    texts = axis.get_ticklabels()
    for text in texts:
        text.set_color(INK)
    return every, texts


def _name(axis: Axis, name: str, tokens: int, every: int) -> None:
    thinned = f" · every {_ordinal(every)} of {tokens:,} is named" if every > 1 else ""
    axis.set_label_text(f"{name}{thinned}", color=QUIET, size=SMALL)


def _thinned(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … that is at least this."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= least:
                return step
        power *= 10


def _ordinal(number: int) -> str:
    return {2: "2nd"}.get(number, f"{number}th")
