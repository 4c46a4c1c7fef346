"""What every reading can be asked, without its map ever being held."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attlas.recording.streaming import asking
from attlas.recording.streaming.summarising import summarise
from attlas.recording.streaming.summary import Summary

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
