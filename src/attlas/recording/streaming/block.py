"""A few rows of some maps, as the statistics take them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Fringe:
    """Slots low … high − 1 of which not every row of a block sees all; the others are all seen."""

    low: int
    high: int
    seen: Bool[Tensor, "#heads rows slots"]


@dataclass(frozen=True)
class Block:
    """Rows start … stop − 1 of some heads of one batch row, at the slots low … high − 1.

    Outside of these slots the rows have no weight. The weights are parts / mass; `parts` are
    exp(logs), but 0 where a slot is hidden. position: of the first query, counted as slots are;
    ends: the first real slot of the batch row, and the last.
    """

    batch: int
    heads: slice
    start: int
    stop: int
    low: int
    high: int
    position: int
    logs: Float[Tensor, "heads rows slots"]
    parts: Float[Tensor, "heads rows slots"]
    mass: Float[Tensor, "heads rows"]
    fringes: tuple[Fringe, ...]
    ends: tuple[int, int]

    @cached_property
    def share(self) -> Float[Tensor, "heads rows"]:
        """What a part is to be multiplied with to be a weight: 1 / mass, 0 for an empty row."""
        return torch.where(self.mass > 0, 1 / torch.where(self.mass > 0, self.mass, 1.0), 0.0)

    @cached_property
    def entropy(self) -> Float[Tensor, "heads rows"]:
        """−Σ w log w = log Z − Σ e log e / Z, in nats; 0 for a row that sees nothing."""
        surprise: Tensor = torch.linalg.vecdot(self.parts, self.logs) * self.share
        return torch.where(self.mass > 0, self.mass, 1.0).log() - surprise

    @property
    def weights(self) -> Float[Tensor, "heads rows slots"]:
        """The weights themselves."""
        return self.parts * self.share.unsqueeze(-1)

    @cached_property
    def visible(self) -> Float[Tensor, "#heads rows"]:
        """How many slots each query may see."""
        all_seen = self.high - self.low - sum(part.high - part.low for part in self.fringes)
        counts = self.mass.new_full((1, self.stop - self.start), all_seen)
        for part in self.fringes:
            counts = counts + part.seen.sum(-1, dtype=counts.dtype)
        return counts

    @property
    def seen(self) -> Bool[Tensor, "#heads rows slots"]:
        """Which of the slots each query may see."""
        heads = max((part.seen.shape[0] for part in self.fringes), default=1)
        shape = heads, self.stop - self.start, self.high - self.low
        seen = torch.ones(shape, dtype=torch.bool, device=self.mass.device)
        for part in self.fringes:
            seen[..., part.low - self.low : part.high - self.low] = part.seen
        return seen
