"""What every pattern answers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.patterns.bound import Bound


@dataclass(frozen=True, slots=True)
class Pattern(ABC):
    """A question about positions: may the query at position i look at the slot at position j?

    A pattern is a value: it compares, hashes, prints as text (`window(3)`) and is read back from
    that text by `attlas.patterns.parse`. The dense mask, the banded kernel and the drawing of a
    pattern all come from this one answer. True = looking is allowed.
    """

    @abstractmethod
    def __call__(
        self, query: Int[Tensor, "*#queries"], slot: Int[Tensor, "*#slots"]
    ) -> Bool[Tensor, "..."]:
        """Broadcast integer positions to a bool tensor; True = this query may see that slot."""

    @property
    def bound(self) -> Bound:
        """Where this pattern can look at all; unbounded unless a pattern knows better."""
        return Bound()

    @property
    def sees_itself(self) -> bool:
        """Whether every query sees the slot at its own position; no unless a pattern knows better.

        The newest query of a growing memory then sees at least one slot.
        """
        return False

    def mask(
        self, queries: int, slots: int, first: int | None = None, device: torch.device | None = None
    ) -> Bool[Tensor, "queries slots"]:
        """The dense mask of `queries` consecutive queries.

        `first` is the position of the first query; None means that the queries are the newest of
        the slots (slots − queries), which is right for self-attention with and without a cache.
        """
        start = slots - queries if first is None else first
        query = torch.arange(start, start + queries, device=device).unsqueeze(1)
        slot = torch.arange(slots, device=device).unsqueeze(0)
        return self(query, slot).expand(queries, slots)
