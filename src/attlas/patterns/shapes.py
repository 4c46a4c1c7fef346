"""The elementary patterns."""

from dataclasses import dataclass
from functools import reduce
from numbers import Integral

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas._hardware import integers_on
from attlas.errors import AttlasError, quoted
from attlas.patterns.base import Bound, Pattern

# Combinations of patterns.


@dataclass(frozen=True, slots=True)
class Both(Pattern):
    """Seen only where both patterns allow it."""

    left: Pattern
    right: Pattern

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return self.left(query, key) & self.right(query, key)

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

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return self.left(query, key) | self.right(query, key)

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


def called_pattern(pattern: Pattern, query: object) -> AttlasError:
    """The error for `causal()` and `causal(5)`, where `causal` is meant."""
    return AttlasError(
        f"the pattern {pattern} itself, without parentheses",
        f"{pattern}({'' if query is None else quoted(query)})",
        f"write pattern={pattern}; its mask is {pattern}.mask(queries, keys)",
    )


@dataclass(frozen=True, slots=True)
class Everywhere(Pattern):
    """Every query sees every key."""

    def __call__(
        self, query: Int[Tensor, "..."] | None = None, key: Int[Tensor, "..."] | None = None
    ) -> Bool[Tensor, "..."]:
        if query is None or key is None:
            raise called_pattern(self, query)
        return torch.ones_like(query + key, dtype=torch.bool)

    @property
    def sees_itself(self) -> bool:
        return True

    def __str__(self) -> str:
        return "everywhere"


@dataclass(frozen=True, slots=True)
class Causal(Pattern):
    """j ≤ i: a query sees itself and what came before it."""

    def __call__(
        self, query: Int[Tensor, "..."] | None = None, key: Int[Tensor, "..."] | None = None
    ) -> Bool[Tensor, "..."]:
        if query is None or key is None:
            raise called_pattern(self, query)
        return key <= query

    @property
    def bound(self) -> Bound:
        return Bound(ahead=0)

    @property
    def sees_itself(self) -> bool:
        return True

    def __str__(self) -> str:
        return "causal"


@dataclass(frozen=True, slots=True)
class Window(Pattern):
    """|i − j| ≤ radius: a query sees its neighbourhood (Longformer's sliding window)."""

    radius: int

    def __post_init__(self) -> None:
        _check_whole("a window radius", self.radius, 0)

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return (query - key).abs() <= self.radius

    @property
    def bound(self) -> Bound:
        return Bound(self.radius, self.radius)

    @property
    def sees_itself(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"window({self.radius})"


@dataclass(frozen=True, slots=True)
class Strided(Pattern):
    """(i − j) mod stride = 0: every stride-th key, counted from the query.

    Child et al., Generating Long Sequences with Sparse Transformers, 2019, section 4.3.
    """

    stride: int

    def __post_init__(self) -> None:
        _check_whole("a stride", self.stride, 1)

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return (query - key) % self.stride == 0

    @property
    def sees_itself(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"strided({self.stride})"


@dataclass(frozen=True, slots=True)
class Landmarks(Pattern):
    """i ∈ L or j ∈ L: landmarks see everything and are seen by everyone (global tokens).

    Beltagy et al., Longformer, 2020, section 3.1.
    """

    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        for position in self.positions:
            _check_whole("a landmark position", position, 0)
        object.__setattr__(self, "positions", tuple(sorted(set(self.positions))))

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        marks = integers_on(key.device, self.positions).to(key.dtype)
        return torch.isin(query, marks) | torch.isin(key, marks)

    @property
    def bound(self) -> Bound:
        return Bound(0, 0, frozenset(self.positions))

    def __str__(self) -> str:
        return f"landmarks({', '.join(map(str, self.positions))})"


@dataclass(frozen=True, slots=True)
class Scattered(Pattern):
    """A fixed pseudo-random `share` of all pairs, plus i = j (BigBird's random links).

    The choice is a hash of (i, j, seed), so that it needs no memory and is the same whatever the
    length. Zaheer et al., Big Bird, 2020, section 2.
    """

    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise AttlasError("a share from 0 to 1", str(self.share), "use e.g. scattered(0.05)")
        _check_whole("a seed", self.seed, 0)

    def __call__(self, query: Int[Tensor, "..."], key: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        hashed = query.long() * 73_856_093 + key.long() * 19_349_663 + self.seed * 83_492_791
        for multiplier in (0x45D9F3B, 0x119DE1F3):  # two rounds of a 32-bit integer hash
            hashed = hashed & 0xFFFF_FFFF
            hashed = ((hashed ^ (hashed >> 16)) * multiplier) & 0xFFFF_FFFF
        hashed = hashed ^ (hashed >> 16)
        return (hashed < int(self.share * 2**32)) | (query == key)

    @property
    def sees_itself(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"scattered({self.share}, {self.seed})"


everywhere = Everywhere()
causal = Causal()
window = Window
strided = Strided
scattered = Scattered


def landmarks(*positions: int) -> Landmarks:
    """The pattern of global tokens at these positions."""
    return Landmarks(positions)


def _check_whole(name: str, value: int, least: int) -> None:
    # Positions are 64-bit and the hash multiplies them, so 32 bits are safe.
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value < 2**31:
        raise AttlasError(
            f"{name}, a whole number from {least} to 2³¹ − 1",
            repr(value),
            "count in tokens, from the first one, 0",
        )
