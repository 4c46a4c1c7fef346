"""Patterns made of patterns."""

from dataclasses import dataclass
from functools import reduce

from jaxtyping import Bool, Int
from torch import Tensor

from attlas.patterns.bound import Bound
from attlas.patterns.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Both(Pattern):
    """Seen only where both patterns allow it."""

    left: Pattern
    right: Pattern

    def __call__(self, query: Int[Tensor, "..."], slot: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return self.left(query, slot) & self.right(query, slot)

    @property
    def bound(self) -> Bound:
        return self.left.bound & self.right.bound

    @property
    def sees_itself(self) -> bool:
        return self.left.sees_itself and self.right.sees_itself

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
    def bound(self) -> Bound:
        return self.left.bound | self.right.bound

    @property
    def sees_itself(self) -> bool:
        return self.left.sees_itself or self.right.sees_itself

    def __str__(self) -> str:
        return f"either({self.left}, {self.right})"


def both(first: Pattern, *others: Pattern) -> Pattern:
    """Seen only where all of the patterns allow it."""
    return reduce(Both, others, first)


def either(first: Pattern, *others: Pattern) -> Pattern:
    """Seen where any of the patterns allows it: Longformer = either(window(r), landmarks(0))."""
    return reduce(Either, others, first)
