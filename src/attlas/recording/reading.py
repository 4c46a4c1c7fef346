"""A reading: one question, answered exactly — which weights did these queries give?"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.statistics import Statistics
from attlas.recording.streaming.block import Block
from attlas.recording.streaming.blocks import Cut, blocks_of_weights

_AT_MOST = 1 << 28  # weights, a gigabyte of them


class Reading(Statistics, ABC):
    """The attention of one call of one layer; weights are those before dropout."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, slots)."""

    @property
    @abstractmethod
    def position(self) -> int | None:
        """Where the first query stands, counted as slots are; None = nobody knows."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        """The exact weights of queries start … stop − 1."""

    @abstractmethod
    def seen(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows slots"]:
        """Which slots the queries start … stop − 1 may look at, as far as the model said."""

    @property
    @abstractmethod
    def causal(self) -> bool | None:
        """Whether no query looks at what comes after it; None where nobody knows what does."""

    @abstractmethod
    def select(self, rows: Int[Tensor, " chosen"]) -> "Reading":
        """The same reading for these batch rows alone."""

    @abstractmethod
    def of_heads(self, heads: Int[Tensor, " chosen"]) -> "Reading":
        """The same reading for these heads alone."""

    @abstractmethod
    def at(self, row: int) -> "Reading":
        """The same reading for one batch row, which shares the numbers of this one."""

    @abstractmethod
    def kept(self) -> "Reading":
        """The same reading with tensors of its own, out of any graph: what a model goes on to
        write over stays as it was. Masks are shared.
        """

    @property
    def device(self) -> torch.device:
        """Where its numbers are."""
        return torch.device("cpu")

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may ask it at the same time."""
        return False

    @property
    def of_softmax(self) -> bool:
        """Whether the scores of its blocks are those that the softmax was taken of."""
        return False

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        """The blocks of a reading of one batch row, which has this number among all rows."""
        return blocks_of_weights(self, self.rows, self.seen, batch, cuts)

    def weights(self, at_most: int = _AT_MOST) -> Float[Tensor, "batch heads queries slots"]:
        """All weights at once: O(queries × slots) memory.

        Errors: `AttlasError` where there are more than `at_most` of them; what they say can be had
        without holding them.
        """
        batch, heads, queries, slots = self.shape
        count = batch * heads * queries * slots
        if count > at_most:
            raise AttlasError(
                f"a map of at most {at_most:,} weights to be held whole",
                f"{batch} × {heads} × {queries:,} × {slots:,} = {count:,}",
                "ask for `summary`, `pooled`, `rows` or `blocks`, or pass at_most=…",
            )
        return self.rows(0, queries)

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
