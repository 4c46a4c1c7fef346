"""Checks of what all figures take: named panels, columns, limits, colours and texts."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from matplotlib.colors import is_color_like

from attlas.errors import AttlasError, quoted


def check_named(one: str, several: str, given: Any, example: str) -> None:
    """Raise `AttlasError` for what is no dictionary of at least one entry.

    Args:
        one, several: what an entry is, and what entries are.
        example: how to write them.
    """
    if not isinstance(given, Mapping):
        raise AttlasError(f"{several} by name", f"a {type(given).__name__}", f"pass {example}")
    if not given:
        raise AttlasError(f"at least one {one} to draw", "none", f"pass {example}")
    for name in given:
        if not isinstance(name, str):
            raise AttlasError(f"{several} by name", f"the name {quoted(name)}", f"pass {example}")


def check_count(what: str, count: Any, cure: str) -> None:
    """Raise `AttlasError` for a number of things that is no whole number ≥ 1."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise AttlasError(f"at least one {what}", quoted(count), cure)


def check_limits(vmin: Any, vmax: Any) -> None:
    """Raise `AttlasError` for limits that are no finite numbers, or without numbers between them;
    None = left out.
    """
    for name, limit in (("vmin", vmin), ("vmax", vmax)):
        is_number = isinstance(limit, Real) and not isinstance(limit, bool)
        if limit is not None and not (is_number and math.isfinite(limit)):
            raise AttlasError(f"{name} as a number", quoted(limit), "pass e.g. vmin=0, vmax=1")
    if vmin is not None and vmax is not None and not vmin < vmax:
        raise AttlasError(
            "vmin below vmax", f"vmin = {vmin:g} and vmax = {vmax:g}", "pass e.g. vmin=0, vmax=1"
        )


def limits_between(low: float, high: float, vmin: Any, vmax: Any) -> tuple[float, float]:
    """These limits, or those that are left out as they are for the numbers.

    Raises:
        AttlasError: there are no numbers between them.
    """
    bottom, top = low if vmin is None else float(vmin), high if vmax is None else float(vmax)
    if not bottom < top:
        raise AttlasError(
            "vmin below vmax, which follow the numbers unless they are given",
            f"vmin = {bottom:g} and vmax = {top:g}",
            "leave both out, or choose limits around the numbers",
        )
    return bottom, top


def check_color(color: Any) -> None:
    """Raise `AttlasError` for what is no colour of matplotlib."""
    if color is not None and not is_color_like(color):
        raise AttlasError(
            "a colour of matplotlib", quoted(color), 'pass e.g. color="#2a6fb0" or color="tab:red"'
        )


def check_strings(**texts: Any) -> None:
    """Raise `AttlasError` for what is no text; None = left out."""
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise AttlasError(f"{name} as a text", quoted(text), f'pass e.g. {name}="…"')
