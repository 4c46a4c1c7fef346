"""Scales: from numbers to colours and to text."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.colors import Colormap, Normalize, TwoSlopeNorm

from attlas.errors import AttlasError, quoted
from attlas.figures.arguments import check_limits
from attlas.figures.layout import INK

SEQUENTIAL = "Blues"  # light = little, dark = much; keeps its order in greyscale and to every eye
DIVERGING = "RdBu_r"  # blue = below 0, white = 0, red = above; distinguished by every eye
_WITH_A_MIDDLE = frozenset(
    {
        *("BrBG", "PRGn", "PiYG", "PuOr", "RdBu", "RdGy", "RdYlBu", "RdYlGn", "Spectral"),
        *("berlin", "bwr", "coolwarm", "managua", "seismic", "vanimo"),
    }
)

Ramp = str | Colormap
"""A colormap of matplotlib, or its name."""


@dataclass(frozen=True, eq=False, slots=True)
class Scale:
    """Which number has which colour.

    Args:
        extend: On which side numbers lie beyond the limits.
    """

    cmap: Colormap
    norm: Normalize
    extend: Literal["neither", "min", "max", "both"] = "neither"

    @classmethod
    def of(
        cls,
        minimum: float,
        maximum: float,
        cmap: Ramp | None = None,
        vmin: float | None = None,
        vmax: float | None = None,
    ) -> "Scale":
        """The scale of numbers from `minimum` to `maximum`.

        Args:
            cmap: None = `SEQUENTIAL`, or `DIVERGING` where a number is below 0.
            vmin, vmax: The limits; numbers beyond have the colour of the end, and the colour bar
                ends in a point there. None: from 0 to the number farthest from it. A diverging
                    colormap is symmetric around 0 if a number is below 0.

        Raises:
            AttlasError: For an unknown colormap, and for limits without numbers between them.
        """
        check_limits(vmin, vmax)
        extends_below = min(minimum, 0.0 if vmin is None else vmin) < 0
        ramp = ramp_of(cmap, extends_below=extends_below)
        if extends_below and ramp.name.removesuffix("_r") in _WITH_A_MIDDLE:
            magnitude = max(abs(minimum), abs(maximum))
            low = (-magnitude if vmax is None or vmax <= 0 else -vmax) if vmin is None else vmin
            high = (magnitude if vmin is None or vmin >= 0 else -vmin) if vmax is None else vmax
        else:
            low = min(minimum, 0.0) if vmin is None else vmin
            high = max(maximum, 0.0) if vmax is None else vmax
            if vmin is None and vmax is None and low == high:  # all are 0
                high = 1.0
        if not low < high:
            raise AttlasError(
                "vmin below vmax, which is the largest number unless it is given",
                f"vmin = {low:g} and vmax = {high:g} for numbers from {minimum:g} to {maximum:g}",
                "leave both out, or choose limits around the numbers",
            )
        return cls(ramp, _norm(ramp, low, high), _extend(minimum < low, maximum > high))


def ramp_of(cmap: Ramp | None, *, extends_below: bool = False) -> Colormap:
    """The colormap of this name; None = the one for numbers of which some are `extends_below` 0.

    Raises:
        AttlasError: For an unknown name.
    """
    if isinstance(cmap, Colormap):
        return cmap
    name = (DIVERGING if extends_below else SEQUENTIAL) if cmap is None else cmap
    if name not in colormaps:
        matches = get_close_matches(str(name), list(colormaps), n=3)
        raise AttlasError(
            "the name of a colormap of matplotlib",
            quoted(name),
            f"did you mean {', '.join(matches)}?"
            if matches
            else "choose e.g. viridis, YlOrRd, RdBu_r",
        )
    return colormaps[name]


def _norm(ramp: Colormap, low: float, high: float) -> Normalize:
    uneven = low < 0 < high and -low != high
    if uneven and ramp.name.removesuffix("_r") in _WITH_A_MIDDLE:
        return TwoSlopeNorm(0.0, low, high)
    return Normalize(low, high)


def _extend(extends_below: bool, above: bool) -> Literal["neither", "min", "max", "both"]:
    if extends_below:
        return "both" if above else "min"
    return "max" if above else "neither"


def luminance_of(colour: Float[np.ndarray, " rgba"]) -> float:
    """The WCAG's relative luminance, from 0 = black to 1 = white."""
    linear = np.where(
        colour[:3] <= 0.04045, colour[:3] / 12.92, ((colour[:3] + 0.055) / 1.055) ** 2.4
    )
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def readable_on(colour: Float[np.ndarray, " rgba"]) -> str:
    """Dark or white, whichever has more contrast with this colour."""
    # (1 + .05) / (L + .05) > (L + .05) / (0 + .05)  ⇔  L < √.0525 − .05
    return "white" if luminance_of(colour) < 0.179 else INK


# Numbers as text.


LEAST = 0.005  # a number nearer to 0 than this is written as a bare 0


def number(value: float, fmt: str | None = None) -> str:
    """Two digits: .07, -.50, 1.0, 23; a bare 0 for what rounds to it.

    Args:
        fmt: By Python's format.
    """
    if fmt is not None:
        return format(value, fmt)
    if abs(value) < LEAST:
        return "0"
    if abs(value) < 0.995:
        return f"{value:.2f}".replace("0.", ".")
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"


def check_format(fmt: str | None) -> None:
    """Raise `AttlasError` for what does not format a number."""
    try:
        number(0.5, fmt)
    except (ValueError, TypeError):
        raise AttlasError(
            "a format of numbers, as Python's format() takes",
            quoted(fmt),
            'use e.g. fmt=".3f", ".0%" or ".2g"',
        ) from None


def most_characters(values: Iterable[float], fmt: str | None = None) -> int:
    """How many characters the longest of these numbers has."""
    return max((len(number(float(value), fmt)) for value in values), default=1)
