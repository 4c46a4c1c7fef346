"""A few rows of some maps, as the statistics take them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError


def unplaced(asked: str, queries: int, slots: int) -> AttlasError:
    """What is said of a map that says nothing of where its queries stand among its slots."""
    return AttlasError(
        f"a map that says where its queries stand among its slots, for {asked}",
        f"one of {queries:,} queries and {slots:,} slots that does not",
        "ask for what needs no positions; or, where you know the slot of the first query, give it: "
        "dataclasses.replace(reading, first=…)",
    )


@dataclass(frozen=True, slots=True)
class Fringe:
    """Slots low … high − 1 of which not every row of a block sees all; the others are all seen."""

    low: int
    high: int
    seen: Bool[Tensor, "#heads rows slots"]


@dataclass(frozen=True)
class Block:
    """Rows start … stop − 1 of some heads of one batch row, at the slots low … high − 1.

    Outside of these slots the rows have no weight; the weights of a row that sees nothing are 0.
    scores: log w, up to a constant of each row; anything finite where w is 0. first: the position
    of the first query, counted as slots are, None = nobody knows; ends(): the first real slot of
    the batch row, and the last; scratch: to write into, until the next who does.
    """

    batch: int
    heads: slice
    start: int
    stop: int
    low: int
    high: int
    first: int | None
    scores: Float[Tensor, "heads rows slots"]
    weights: Float[Tensor, "heads rows slots"]
    scratch: Float[Tensor, "heads rows slots"]
    fringes: tuple[Fringe, ...]
    sees: Bool[Tensor, "heads rows"]
    ends: Callable[[], tuple[int, int]]

    @property
    def position(self) -> int:
        """Of the first query, for what can be said only where that is known."""
        if self.first is None:
            raise unplaced("what depends on it", self.stop - self.start, self.high - self.low)
        return self.first

    @cached_property
    def greatest(self) -> Int[Tensor, "heads rows"]:
        """Where in `weights` the greatest weight of each row is, the first of equals.

        There has to be a slot.
        """
        if self.weights.device.type != "cpu":
            return self.weights.argmax(-1)
        return torch.from_numpy(self.weights.numpy().argmax(-1))  # ten times as quick as torch's

    @cached_property
    def peak(self) -> Float[Tensor, "heads rows"]:
        """The greatest weight of each row."""
        return self.weights.gather(-1, self.greatest.unsqueeze(-1)).squeeze(-1)

    @cached_property
    def entropy(self) -> Float[Tensor, "heads rows"]:
        """−Σ w log w, in nats; 0 for a row that sees nothing.

        With log w = s − s* + log w*, where s* and w* are those of the greatest weight: such terms
        are small where weights are great, and lose no digits.
        """
        if self.high == self.low:
            return self.weights.sum(-1)
        best = self.scores.gather(-1, self.greatest.unsqueeze(-1))
        below = torch.sub(self.scores, best, out=self.scratch).mul_(self.weights).sum(-1)
        log = torch.where(self.peak > 0, self.peak, 1.0).log()
        return -below - log * self.weights.sum(-1)

    @cached_property
    def visible(self) -> Float[Tensor, "#heads rows"]:
        """How many slots each query may see."""
        all_seen = self.high - self.low - sum(part.high - part.low for part in self.fringes)
        counts = self.weights.new_full((1, self.stop - self.start), all_seen)
        for part in self.fringes:
            counts = counts + part.seen.sum(-1, dtype=counts.dtype)
        return counts

    @property
    def seen(self) -> Bool[Tensor, "#heads rows slots"]:
        """Which of the slots each query may see."""
        heads = max((part.seen.shape[0] for part in self.fringes), default=1)
        shape = heads, self.stop - self.start, self.high - self.low
        seen = torch.ones(shape, dtype=torch.bool, device=self.weights.device)
        for part in self.fringes:
            seen[..., part.low - self.low : part.high - self.low] = part.seen
        return seen
