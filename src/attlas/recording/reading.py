"""A reading: one question, answered exactly — which weights did these queries give?"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.patterns import Pattern


class Reading(ABC):
    """The attention of one call of one layer; weights are those before dropout."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, slots)."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        """The exact weights of queries start … stop − 1."""

    @abstractmethod
    def select(self, rows: Int[Tensor, " chosen"]) -> "Reading":
        """The same reading for these batch rows alone."""

    def weights(self) -> Float[Tensor, "batch heads queries slots"]:
        """All weights at once: O(queries × slots) memory. For long maps stream `blocks` instead."""
        return self.rows(0, self.shape[2])

    def blocks(self, size: int) -> Iterator[Float[Tensor, "batch heads rows slots"]]:
        """All rows in order, at most `size` of them held at a time."""
        if size < 1:
            raise AttlasError("a block size of at least one row", str(size), "pass e.g. 256")
        for start in range(0, self.shape[2], size):
            yield self.rows(start, min(start + size, self.shape[2]))

    def __repr__(self) -> str:
        """Its shape: its numbers may be millions."""
        batch, heads, queries, slots = self.shape
        name = type(self).__name__
        return f"{name}(batch={batch}, heads={heads}, queries={queries}, slots={slots})"

    def _checked(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.shape[2]:
            raise AttlasError(
                f"rows within 0 … {self.shape[2]}", f"{start} … {stop}", "count queries from 0"
            )


@dataclass(frozen=True, slots=True, repr=False)
class DenseReading(Reading):
    """The weights themselves: recurrent attention, or arrays that a user brings."""

    values: Float[Tensor, "batch heads queries slots"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, slots = self.values.shape
        return batch, heads, queries, slots

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        self._checked(start, stop)
        return self.values[:, :, start:stop]

    def select(self, rows: Int[Tensor, " chosen"]) -> "DenseReading":
        return DenseReading(self.values[rows])


@dataclass(frozen=True, slots=True, repr=False)
class FactoredReading(Reading):
    """softmax(scale · q kᵀ) over the slots that are real and in the pattern, never held whole.

    Memory O((queries + slots) × width): any block of weights is computed on demand, in float32 or
    better also where the model computed in half precision. Heads that share keys (grouped-query
    attention) are heads // key_heads to a key head, in order.
    """

    query: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch key_heads slots width"]
    scale: float
    pattern: Pattern
    first: int
    real: Bool[Tensor, "batch slots"] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.keys.shape[2]

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        self._checked(start, stop)
        batch, heads, _, slots = self.shape
        key_heads, width = self.keys.shape[1], self.keys.shape[3]
        rows = heads // key_heads * (stop - start)
        asked = self.query[:, :, start:stop].reshape(batch, key_heads, rows, width)
        precise = torch.promote_types(asked.dtype, torch.float32)
        with torch.autocast(asked.device.type, enabled=False):
            scores = asked.to(precise) @ self.keys.to(precise).transpose(-1, -2)
        scores = scores.reshape(batch, heads, stop - start, slots)
        seen = self.pattern.mask(stop - start, slots, self.first + start, self.query.device)
        seen = seen.expand(batch, 1, -1, -1)
        if self.real is not None:
            seen = seen & self.real[:, None, None, :]
        hidden = ~seen
        scores = (scores * self.scale).masked_fill(hidden, float("-inf"))
        empty = hidden.all(-1, keepdim=True)
        return torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(hidden, 0.0)

    def select(self, rows: Int[Tensor, " chosen"]) -> "FactoredReading":
        real = None if self.real is None else self.real[rows]
        return FactoredReading(
            self.query[rows], self.keys[rows], self.scale, self.pattern, self.first, real
        )
