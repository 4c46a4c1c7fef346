"""What of a model is kept by who observes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

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
        """From what a caller wrote: one or several. Errors: `AttlasError` for none at all."""
        paths = None if layers is None else (layers,) if isinstance(layers, str) else tuple(layers)
        numbers: tuple[int, ...] | None = None
        if heads is not None:  # a single number may be NumPy's
            numbers = tuple(heads) if isinstance(heads, Iterable) else (int(heads),)
        if paths == () or numbers == ():
            raise AttlasError("at least one layer and one head", "none", "leave it out for all")
        return cls(paths, numbers)

    def wants(self, layer: str) -> bool:
        """Whether a layer of this path is kept."""
        return self.layers is None or any(fnmatchcase(layer, path) for path in self.layers)

    def among(self, layers: Iterable[str]) -> tuple[str, ...]:
        """Those of these layers that are kept, in the order in which they were chosen."""
        there = tuple(layers)
        paths = ("*",) if self.layers is None else self.layers
        return tuple(
            dict.fromkeys(one for path in paths for one in there if fnmatchcase(one, path))
        )

    def unmatched(self, layers: Iterable[str]) -> list[str]:
        """The paths and patterns that stand for none of these layers."""
        there = list(layers)
        return [p for p in self.layers or () if not any(fnmatchcase(one, p) for one in there)]

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
