"""Aims: which slots a query would look at, if its head had a certain role."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Aim(ABC):
    """A set of slots for each query, told by positions and by what is known of the texts.

    by_peak: whether it counts where the greatest weight is, instead of how much weight is there.
    """

    by_peak: bool = field(default=False, kw_only=True)

    @abstractmethod
    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        """Whether the queries at these positions of text `row` have such a slot at all."""

    @abstractmethod
    def __call__(
        self, row: int, query: Int[Tensor, " rows"], slot: Int[Tensor, " slots"]
    ) -> Bool[Tensor, "#rows slots"]:
        """Which of these slots it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Offset(Aim):
    """The slot i + by, where it is real."""

    by: int
    real: Bool[Tensor, "batch slots"]

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        slots = self.real.shape[1]
        place = query + self.by
        return (place >= 0) & (place < slots) & self.real[row, place.clamp(0, slots - 1)]

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], slot: Int[Tensor, " slots"]
    ) -> Bool[Tensor, "#rows slots"]:
        return slot == (query + self.by).unsqueeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Near(Aim):
    """The slots with |i − j| ≤ radius."""

    radius: int

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        return torch.ones_like(query, dtype=torch.bool)

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], slot: Int[Tensor, " slots"]
    ) -> Bool[Tensor, "#rows slots"]:
        return (query.unsqueeze(-1) - slot).abs() <= self.radius


@dataclass(frozen=True, slots=True, eq=False)
class Marked(Aim):
    """The same slots of a text for every query: its first one, its separators, its rarest token."""

    marks: Bool[Tensor, "batch slots"]

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        return self.marks[row].any().expand(query.shape)

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], slot: Int[Tensor, " slots"]
    ) -> Bool[Tensor, "#rows slots"]:
        return self.marks[row, slot].unsqueeze(0)


@dataclass(frozen=True, slots=True, eq=False)
class Following(Aim):
    """The slots behind earlier occurrences of the query's own token: t_(j−1) = t_i, j ≤ i."""

    tokens: Int[Tensor, "batch slots"]
    real: Bool[Tensor, "batch slots"]
    again: Bool[Tensor, "batch slots"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "again", _again(self.tokens, self.real))

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        slots = self.tokens.shape[1]
        inside = (query >= 0) & (query < slots)
        return inside & self.again[row, query.clamp(0, slots - 1)]

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], slot: Int[Tensor, " slots"]
    ) -> Bool[Tensor, "#rows slots"]:
        asked = self.tokens[row, query.clamp(0, self.tokens.shape[1] - 1)].unsqueeze(-1)
        before = (slot - 1).clamp(min=0)
        behind = (slot > 0) & self.real[row, before] & (slot <= query.unsqueeze(-1))
        return behind & (self.tokens[row, before] == asked)


def firsts(real: Bool[Tensor, "batch slots"]) -> Bool[Tensor, "batch slots"]:
    """The first real slot of each text."""
    return real & (real.cumsum(1) == 1)


def rarest(
    counts: Shaped[Tensor, "batch slots"], real: Bool[Tensor, "batch slots"]
) -> Bool[Tensor, "batch slots"]:
    """The real slots of the least count in each text, but for counts of infinity."""
    numbers = counts.to(torch.float64).masked_fill(~real, torch.inf)
    return (numbers == numbers.amin(1, keepdim=True)) & (numbers < torch.inf)


def _again(
    tokens: Int[Tensor, "batch slots"], real: Bool[Tensor, "batch slots"]
) -> Bool[Tensor, "batch slots"]:
    """Whether the same token stood at an earlier real slot of the text."""
    # Real tokens first, then equal ones side by side in the order of the text.
    order = torch.argsort(tokens, dim=1, stable=True)
    order = order.gather(1, torch.argsort(~real.gather(1, order), dim=1, stable=True))
    ordered, there = tokens.gather(1, order), real.gather(1, order)
    same = torch.zeros_like(real)
    same[:, 1:] = (ordered[:, 1:] == ordered[:, :-1]) & there[:, 1:] & there[:, :-1]
    return torch.zeros_like(real).scatter(1, order, same)
