"""What every attention map can be asked, without its map ever being held."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.maps import statistics as questions
from attlas.recording.maps.blocks import Block, Cut, blocks_of_weights
from attlas.recording.maps.statistics import Summary, summarize

THRESHOLD = 0.01
"""A weight above it counts as looked at, where nobody says otherwise."""


class Statistics:
    """Statistics of a map of weights w, exact, in memory O(length × width + result).

    Rows are gone through in blocks that fit into a cache, and only where the pattern may look.
    Positions i of queries and j of slots are counted alike: in self-attention a query stands at its
    own slot. Where nobody knows at which slots queries stand, as of a class token that looks at a
    text, `distance` and what is `self_weight`, `previous_weight` and `next_weight` are refused. A
    query that sees no slot has 0 for everything, and the slot −1.
    """

    def summary(self, *names: str, threshold: float = THRESHOLD) -> Summary:
        """Several of these at once, from one pass: `summary("entropy", "received")`.

        Without names: all but `gini`, which has to sort every row, and without what needs
        places that nobody knows. threshold: of `count_above`.
        Errors: `AttlasError` for a name that there is not, a threshold that is no weight, and for
        what needs to know where the queries stand, of an attention map that does not.
        """
        return summarize(self._map, names, threshold)

    def entropy(self) -> Float[Tensor, "batch heads queries"]:
        """−Σ_j w_j log w_j, in nats: how spread out a query looks."""
        return self._one("entropy")

    def normalized_entropy(self) -> Float[Tensor, "batch heads queries"]:
        """Entropy / log n, of the n slots that the query may see: from 0 to 1; 0 where n < 2."""
        return self._one("normalized_entropy")

    def effective_keys(self) -> Float[Tensor, "batch heads queries"]:
        """exp(entropy): so many slots, looked at evenly, would be as uncertain."""
        return self._one("effective_keys")

    def count_above(self, threshold: float = THRESHOLD) -> Float[Tensor, "batch heads queries"]:
        """How many slots have a weight greater than `threshold`."""
        return self._one("count_above", threshold)

    def num_visible(self) -> Float[Tensor, "batch heads queries"]:
        """How many slots the query may see."""
        return self._one("num_visible")

    def max_weight(self) -> Float[Tensor, "batch heads queries"]:
        """max_j w_j."""
        return self._one("max_weight")

    def argmax(self) -> Int[Tensor, "batch heads queries"]:
        """The slot of the greatest weight, the first of equals."""
        return self._one("argmax")

    def distance(self) -> Float[Tensor, "batch heads queries"]:
        """Σ_j w_j |i − j|, in slots: how far a query looks (Vig & Belinkov, 2019, section 4.3)."""
        return self._one("distance")

    def gini(self) -> Float[Tensor, "batch heads queries"]:
        """Gini's coefficient of the weights of the n slots that the query may see.

        Σ_k (2k − n − 1) w_(k) / (n Σ w), ascending: 0 where all are equal, (n − 1) / n where one
        has all.
        """
        return self._one("gini")

    def received(self) -> Float[Tensor, "batch heads keys"]:
        """Σ_i w_ij: how much all queries together look at each slot."""
        return self._one("received")

    def first_weight(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the first real slot, the commonest sink (Xiao et al., 2024).

        Where it is not known what is padding, a slot is real that some query may see.
        """
        return self._one("first_weight")

    def last_weight(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the last real slot, of those that a query may reach; see `first_weight`."""
        return self._one("last_weight")

    def self_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_ii."""
        return self._one("self_weight")

    def previous_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i−1."""
        return self._one("previous_weight")

    def next_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i+1."""
        return self._one("next_weight")

    def topk(
        self, k: int
    ) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
        """The k greatest weights of each query, descending, and their slots.

        A slot that is seen counts where its weight is too small for a float, too, and is 0. Where a
        query sees fewer, weight 0 and slot −1. Errors: `AttlasError` for k below 1.
        """
        return questions.topk(self._map, k)

    def mass(
        self, groups: Shaped[Tensor, "..."] | Sequence[int]
    ) -> Float[Tensor, "batch heads queries groups"]:
        """Σ_{j ∈ g} w_j for each group g of slots: special tokens, sentences, parts of speech.

        groups: the number of the group of each slot, from 0; below 0 = of none.
        Errors: `AttlasError` where there is not one number for each slot.
        """
        return questions.mass(self._map, groups)

    def pool(
        self,
        rows: tuple[int, int] | None = None,
        key_range: tuple[int, int] | None = None,
        shape: tuple[int, int] | None = None,
        how: str = "mean",
    ) -> Float[Tensor, "batch heads cell_rows cell_slots"]:
        """A window of the map, pooled to a grid of cells: what a viewer that zooms needs.

        rows, key_range: the window, first and one past the last, None = all; shape: cells of each
        axis, None = at most 1,024; how: sum, mean or max of its weights. Cell r of n rows begins
        at row ⌊r · n / shape⌋.
        Errors: `AttlasError` for a window outside of the map, or with fewer places than cells.
        """
        return questions.pool_map(self._map, rows, key_range, shape, how)

    def _one(self, name: str, threshold: float = THRESHOLD) -> Tensor:
        found: Tensor = getattr(self.summary(name, threshold=threshold), name)
        return found

    @property
    def _map(self) -> Any:
        return self


# An attention map: one question, answered exactly — which weights did these queries give?


_AT_MOST = 1 << 28  # weights, a gigabyte of them


class AttentionMap(Statistics, ABC):
    """The attention of one call of one layer; weights are those before dropout."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, keys)."""

    @property
    @abstractmethod
    def position(self) -> int | None:
        """Where the first query stands, counted as slots are; None = nobody knows."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """The exact weights of queries start … stop − 1."""

    @abstractmethod
    def allowed_rows(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        """Which slots the queries start … stop − 1 may look at, as far as the model said."""

    @property
    @abstractmethod
    def causal(self) -> bool | None:
        """Whether no query looks at what comes after it; None where nobody knows what does."""

    @abstractmethod
    def select(self, rows: Int[Tensor, " chosen"]) -> "AttentionMap":
        """The same attention map for these batch rows alone."""

    @abstractmethod
    def select_heads(self, heads: Int[Tensor, " chosen"]) -> "AttentionMap":
        """The same attention map for these heads alone."""

    @abstractmethod
    def at(self, row: int) -> "AttentionMap":
        """The same attention map for one batch row, which shares the numbers of this one."""

    @abstractmethod
    def detached_copy(self) -> "AttentionMap":
        """The same attention map with tensors of its own, out of any graph: what a model goes on to
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
        """The blocks of an attention map of one batch row, which has this number among all rows."""
        return blocks_of_weights(self, self.rows, self.allowed_rows, batch, cuts)

    def weights(self, at_most: int = _AT_MOST) -> Float[Tensor, "batch heads queries keys"]:
        """All weights at once: O(queries × keys) memory.

        Errors: `AttlasError` where there are more than `at_most` of them; what they say can be had
        without holding them.
        """
        batch, heads, queries, num_keys = self.shape
        count = batch * heads * queries * num_keys
        if count > at_most:
            raise AttlasError(
                f"a map of at most {at_most:,} weights to be held whole",
                f"{batch} × {heads} × {queries:,} × {num_keys:,} = {count:,}",
                "ask for `summary`, `pool_map`, `rows` or `blocks`, or pass at_most=…",
            )
        return self.rows(0, queries)

    def blocks(self, size: int) -> Iterator[Float[Tensor, "batch heads rows keys"]]:
        """All rows in order, at most `size` of them held at a time."""
        if size < 1:
            raise AttlasError("a block size of at least one row", str(size), "pass e.g. 256")
        for start in range(0, self.shape[2], size):
            yield self.rows(start, min(start + size, self.shape[2]))

    def __repr__(self) -> str:
        """Its shape: its numbers may be millions."""
        batch, heads, queries, num_keys = self.shape
        name = type(self).__name__
        return f"{name}(batch={batch}, heads={heads}, queries={queries}, slots={num_keys})"

    def _checked(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.shape[2]:
            raise AttlasError(
                f"rows within 0 … {self.shape[2]}", f"{start} … {stop}", "count queries from 0"
            )
