"""Patterns made of patterns."""

from dataclasses import dataclass
from functools import reduce

from jaxtyping import Bool, Int
from torch import Tensor

from attlas.patterns.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Both(Pattern):
    """Seen only where both patterns allow it."""

    left: Pattern
    right: Pattern

    def __call__(self, query: Int[Tensor, "..."], slot: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return self.left(query, slot) & self.right(query, slot)

    @property
    def band(self) -> tuple[int | None, int | None]:
        return (
            _tighter(self.left.band[0], self.right.band[0]),
            _tighter(self.left.band[1], self.right.band[1]),
        )

    def __str__(self) -> str:
        return f"both({self.left}, {self.right})"


@dataclass(frozen=True, slots=True)
class Either(Pattern):
    """Seen where at least one of the patterns allows it."""

    left: Pattern
    right: Pattern

    def __call__(self, query: Int[Tensor, "..."], slot: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return self.left(query, slot) | self.right(query, slot)

    @property
    def band(self) -> tuple[int | None, int | None]:
        return (
            _looser(self.left.band[0], self.right.band[0]),
            _looser(self.left.band[1], self.right.band[1]),
        )

    def __str__(self) -> str:
        return f"either({self.left}, {self.right})"


def both(first: Pattern, *others: Pattern) -> Pattern:
    """Seen only where all of the patterns allow it."""
    return reduce(Both, others, first)


def either(first: Pattern, *others: Pattern) -> Pattern:
    """Seen where any of the patterns allows it: Longformer = either(window(r), landmarks(0))."""
    return reduce(Either, others, first)


def _tighter(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _looser(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
