"""What of a model is kept by who observes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.reading import Reading


@dataclass(frozen=True, slots=True)
class Selection:
    """Which layers, and which of their heads; None = all.

    layers: paths, or patterns of them such as "encoder.*" (`*` also stands for dots).
    """

    layers: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, layers: str | Sequence[str] | None, heads: int | Sequence[int] | None
    ) -> "Selection":
        """From what a caller wrote: one or several.

        Errors: `AttlasError` for none at all, and for what is no path and no number of a head.
        """
        paths = None if layers is None else _several(layers)
        numbers = None if heads is None else _several(heads)
        if paths == () or numbers == ():
            raise AttlasError("at least one layer and one head", "none", "leave it out for all")
        if not all(isinstance(path, str) for path in paths or ()):
            raise AttlasError(
                "paths of layers, or patterns of them, as text",
                f"layers={layers!r:.80}",
                'name them such as "encoder.*"; a trace lists those that it has as trace.layers',
            )
        if not all(map(is_whole, numbers or ())):
            raise AttlasError(
                "heads by number, as whole numbers",
                f"heads={heads!r:.80}",
                "count them from 0, such as heads=0 or heads=[0, 3]",
            )
        return cls(paths, numbers)

    def wants(self, layer: str) -> bool:
        """Whether a layer of this path is kept."""
        return self.layers is None or any(_is(layer, path) for path in self.layers)

    def among(self, layers: Iterable[str]) -> tuple[str, ...]:
        """Those of these layers that are kept, in the order in which they were chosen."""
        there = tuple(layers)
        paths = ("*",) if self.layers is None else self.layers
        return tuple(dict.fromkeys(one for path in paths for one in there if _is(one, path)))

    def unmatched(self, layers: Iterable[str]) -> list[str]:
        """The paths and patterns that stand for none of these layers."""
        there = list(layers)
        return [p for p in self.layers or () if not any(_is(one, p) for one in there)]

    def part(self, reading: Reading, layer: str) -> Reading:
        """The chosen heads of a reading.

        Errors: `AttlasError` for heads that the layer has not.
        """
        if self.heads is None:
            return reading
        wrong = [head for head in self.heads if not 0 <= head < reading.shape[1]]
        if wrong:
            raise AttlasError(
                f"heads from 0 to {reading.shape[1] - 1} in layer {layer!r}",
                str(wrong),
                "name heads that every chosen layer has, or choose layers too",
            )
        return reading.of_heads(torch.tensor(self.heads))

    def part_of_bias(self, bias: Tensor | None) -> Tensor | None:
        """The chosen heads of what is added to scores, which may be the same for all of them."""
        if self.heads is None or bias is None or bias.shape[1] == 1:
            return bias
        return bias[:, list(self.heads)]


def is_whole(number: Any) -> bool:
    """Whether this is a whole number, Python's or NumPy's; True and False count nothing."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def _is(layer: str, path: str) -> bool:
    """Whether a path or pattern stands for this layer, whose own path may have brackets in it."""
    return layer == path or fnmatchcase(layer, path)


def _several(given: Any) -> tuple[Any, ...]:
    """One or several of what Python knows: a text is one, NumPy's and torch's numbers are its."""
    one = isinstance(given, str) or not isinstance(given, Iterable) or _is_number(given)
    return tuple(map(_plain, (given,) if one else given))


def _is_number(given: Any) -> bool:
    return getattr(given, "ndim", None) == 0  # an array without axes, which says it can be iterated


def _plain(given: Any) -> Any:
    return given.tolist() if hasattr(given, "tolist") else given
