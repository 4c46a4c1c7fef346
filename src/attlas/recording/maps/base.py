"""What every reading can be asked, without its map ever being held."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.maps import statistics as asking
from attlas.recording.maps.blocks import Block, Cut, blocks_of_weights
from attlas.recording.maps.statistics import Summary, summarise

THRESHOLD = 0.01
"""A weight above it counts as looked at, where nobody says otherwise."""


class Statistics:
    """Statistics of a map of weights w, exact, in memory O(length × width + result).

    Rows are gone through in blocks that fit into a cache, and only where the pattern may look.
    Positions i of queries and j of slots are counted alike: in self-attention a query stands at its
    own slot. Where nobody knows at which slots queries stand, as of a class token that looks at a
    text, `distance` and what is `on_itself`, `on_previous` and `on_next` are refused. A query that
    sees no slot has 0 for everything, and the slot −1.
    """

    def summary(self, *names: str, threshold: float = THRESHOLD) -> Summary:
        """Several of these at once, from one pass: `summary("entropy", "received")`.

        Without names: all but `concentration`, which has to sort every row, and without what needs
        places that nobody knows. threshold: of `above`.
        Errors: `AttlasError` for a name that there is not, a threshold that is no weight, and for
        what needs to know where the queries stand, of a reading that does not.
        """
        return summarise(self._reading, names, threshold)

    def entropy(self) -> Float[Tensor, "batch heads queries"]:
        """−Σ_j w_j log w_j, in nats: how spread out a query looks."""
        return self._one("entropy")

    def evenness(self) -> Float[Tensor, "batch heads queries"]:
        """Entropy / log n, of the n slots that the query may see: from 0 to 1; 0 where n < 2."""
        return self._one("evenness")

    def effective(self) -> Float[Tensor, "batch heads queries"]:
        """exp(entropy): so many slots, looked at evenly, would be as uncertain."""
        return self._one("effective")

    def above(self, threshold: float = THRESHOLD) -> Float[Tensor, "batch heads queries"]:
        """How many slots have a weight greater than `threshold`."""
        return self._one("above", threshold)

    def visible(self) -> Float[Tensor, "batch heads queries"]:
        """How many slots the query may see."""
        return self._one("visible")

    def peak(self) -> Float[Tensor, "batch heads queries"]:
        """max_j w_j."""
        return self._one("peak")

    def argmax(self) -> Int[Tensor, "batch heads queries"]:
        """The slot of the greatest weight, the first of equals."""
        return self._one("argmax")

    def distance(self) -> Float[Tensor, "batch heads queries"]:
        """Σ_j w_j |i − j|, in slots: how far a query looks (Vig & Belinkov, 2019, section 4.3)."""
        return self._one("distance")

    def concentration(self) -> Float[Tensor, "batch heads queries"]:
        """Gini's coefficient of the weights of the n slots that the query may see.

        Σ_k (2k − n − 1) w_(k) / (n Σ w), ascending: 0 where all are equal, (n − 1) / n where one
        has all.
        """
        return self._one("concentration")

    def received(self) -> Float[Tensor, "batch heads slots"]:
        """Σ_i w_ij: how much all queries together look at each slot."""
        return self._one("received")

    def on_first(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the first real slot, the commonest sink (Xiao et al., 2024).

        Where it is not known what is padding, a slot is real that some query may see.
        """
        return self._one("on_first")

    def on_last(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the last real slot, of those that a query may reach; see `on_first`."""
        return self._one("on_last")

    def on_itself(self) -> Float[Tensor, "batch heads queries"]:
        """w_ii."""
        return self._one("on_itself")

    def on_previous(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i−1."""
        return self._one("on_previous")

    def on_next(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i+1."""
        return self._one("on_next")

    def top(
        self, k: int
    ) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
        """The k greatest weights of each query, descending, and their slots.

        A slot that is seen counts where its weight is too small for a float, too, and is 0. Where a
        query sees fewer, weight 0 and slot −1. Errors: `AttlasError` for k below 1.
        """
        return asking.top(self._reading, k)

    def mass(
        self, groups: Shaped[Tensor, "..."] | Sequence[int]
    ) -> Float[Tensor, "batch heads queries groups"]:
        """Σ_{j ∈ g} w_j for each group g of slots: special tokens, sentences, parts of speech.

        groups: the number of the group of each slot, from 0; below 0 = of none.
        Errors: `AttlasError` where there is not one number for each slot.
        """
        return asking.mass(self._reading, groups)

    def pooled(
        self,
        rows: tuple[int, int] | None = None,
        slots: tuple[int, int] | None = None,
        shape: tuple[int, int] | None = None,
        how: str = "mean",
    ) -> Float[Tensor, "batch heads cell_rows cell_slots"]:
        """A window of the map, pooled to a grid of cells: what a viewer that zooms needs.

        rows, slots: the window, first and one past the last, None = all; shape: cells of each
        axis, None = at most 1,024; how: sum, mean or max of its weights. Cell r of n rows begins
        at row ⌊r · n / shape⌋.
        Errors: `AttlasError` for a window outside of the map, or with fewer places than cells.
        """
        return asking.pooled(self._reading, rows, slots, shape, how)

    def _one(self, name: str, threshold: float = THRESHOLD) -> Tensor:
        found: Tensor = getattr(self.summary(name, threshold=threshold), name)
        return found

    @property
    def _reading(self) -> Any:
        return self


# A reading: one question, answered exactly — which weights did these queries give?


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
