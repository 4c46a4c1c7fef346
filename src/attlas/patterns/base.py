"""The base of patterns, and their bounds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

# Bounds of patterns.


@dataclass(frozen=True, slots=True)
class Bound:
    """Only pairs with i − back ≤ j ≤ i + ahead, or with i or j among the marks, can be seen.

    A bound, not a description: what lies outside is hidden, and the pattern itself decides inside.

    Args:
        back, ahead: In keys, None = no bound on that side; the banded kernel needs both.
    """

    back: int | None = None
    ahead: int | None = None
    marks: frozenset[int] = frozenset()

    def __and__(self, other: "Bound") -> "Bound":
        """The bound of pairs that both allow."""
        # A pair outside the tighter band is outside one of the bands, and so at one of its marks.
        return Bound(
            _tighter(self.back, other.back),
            _tighter(self.ahead, other.ahead),
            self.marks | other.marks,
        )

    def __or__(self, other: "Bound") -> "Bound":
        """The bound of pairs that at least one allows."""
        return Bound(
            _looser(self.back, other.back),
            _looser(self.ahead, other.ahead),
            self.marks | other.marks,
        )


def _tighter(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return first if second is None else second
    return min(first, second)


def _looser(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else max(first, second)


@dataclass(frozen=True, slots=True)
class Pattern(ABC):
    """A question about positions: may the query at position i look at the key at position j?

    A pattern is a value: it compares, hashes, prints as text (`window(3)`) and is read back from
    that text by `attlas.patterns.parse`. The dense mask, the banded kernel and the drawing of a
    pattern all come from this one answer. True = looking is allowed.
    """

    @abstractmethod
    def __call__(
        self, query: Int[Tensor, "*#queries"], key: Int[Tensor, "*#keys"]
    ) -> Bool[Tensor, "..."]:
        """Broadcast integer positions to a bool tensor; True = this query may see that key."""

    @property
    def bound(self) -> Bound:
        """The bound of the pattern; unbounded unless a subclass overrides it."""
        return Bound()

    @property
    def sees_itself(self) -> bool:
        """Return True if every query sees the key at its own position; False unless a subclass
        overrides it.

        Then the newest query of a growing cache sees at least one key.
        """
        return False

    def mask(
        self,
        queries: int,
        num_keys: int,
        query_offset: int | None = None,
        device: torch.device | None = None,
    ) -> Bool[Tensor, "queries keys"]:
        """The dense mask of `queries` consecutive queries.

        `query_offset` is the position of the first query; None means that the queries are the
        newest of the keys (keys − queries), which is right for self-attention with and without a
        cache.
        """
        start = num_keys - queries if query_offset is None else query_offset
        query = torch.arange(start, start + queries, device=device).unsqueeze(1)
        key = torch.arange(num_keys, device=device).unsqueeze(0)
        return self(query, key).expand(queries, num_keys)
