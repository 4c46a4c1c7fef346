"""The bar chart of one query: its distribution over the slots."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attlas.figures.grid import Grid
from attlas.figures.lettering import Lettering
from attlas.figures.map import ACROSS, Map, Weights
from attlas.figures.numbers import number, weight_of
from attlas.figures.paper import INK, QUIET, SMALL, TITLE, axes_at, fit, put_title, sheet
from attlas.figures.ticks import name_slots

_WIDEST, _ACROSS, _HEIGHT = 0.45, 9.0, 2.2  # inches: of one slot, of all, of the bars
_LINED, _NUMBERED = 0.05, 0.22  # inches of a slot from which bars stand apart, and have numbers
_BAR = "#2a6fb0"


def bars(
    weights: Weights,
    source: Sequence[str],
    query: str,
    *,
    title: str = "",
    axis: str = ACROSS[0],
) -> Figure:
    """One bar to a slot, its weight above it where there is room.

    weights: shaped (slots,), or (1, slots) after any axes of size 1, such as `reading.rows(3, 4)`.
    query: the token that looks, which the figure is about. axis: what its slots are called.

    Errors: `AttlasError` as `Map.of`, for more queries than one, and where no font draws the
    tokens.
    """
    grid = Grid.of(Map.of(weights, source, [query]))
    lettering = Lettering.of(source, [query, title])
    room = min(_WIDEST, _ACROSS / len(source))
    figure = sheet()
    axes = axes_at(figure, Bbox.from_extents(0, 0, room * len(source), _HEIGHT))
    heights = grid.cells[0]
    axes.bar(range(len(heights)), heights, width=0.8 if room >= _LINED else 1.0, color=_BAR)
    axes.set_xlim(-0.5, len(source) / grid.wide - 0.5)
    axes.set_ylim(0.0, 1.12 * (grid.peak or 1.0))  # room for the numbers
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", labelsize=SMALL, length=2, width=0.5, color=QUIET)
    axes.set_ylabel(weight_of([grid]), color=QUIET, size=SMALL)
    put_title(axes, lettering.line(title or f"“{query}”"), lettering.style(TITLE))
    if room >= _NUMBERED and grid.peak < 10:
        for place, weight in enumerate(heights):
            axes.annotate(
                number(float(weight)),
                (place, weight),
                (0, 2),
                textcoords="offset points",
                ha="center",
                size=SMALL,
                color=INK,
            )
    name_slots(axes, source, room, lettering, axis, grid.wide)
    fit(figure)
    return figure
