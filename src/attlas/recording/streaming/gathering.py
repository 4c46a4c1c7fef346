"""What is gathered from the blocks of a reading, in one pass."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import linear

from attlas.recording.reading import Reading
from attlas.recording.streaming.block import Block
from attlas.recording.streaming.blocks import blocks_of
from attlas.recording.streaming.rows import OfRow


class Gathering(ABC):
    """Takes every block once, and has a result in the end."""

    @abstractmethod
    def take(self, block: Block) -> None:
        """One more block."""

    @property
    @abstractmethod
    def result(self) -> Any:
        """What all of them came to."""


class Rows(Gathering):
    """A number for each query: (batch, heads, queries)."""

    def __init__(self, reading: Reading, of_row: OfRow, like: torch.dtype = torch.float32) -> None:
        self._shape = reading.shape[:3]
        self._of_row = of_row
        self._like = like  # of a reading without a block
        self._numbers: Tensor | None = None

    def take(self, block: Block) -> None:
        numbers = self._of_row(block)
        if self._numbers is None:
            self._numbers = numbers.new_zeros(self._shape)
        self._numbers[block.batch, block.heads, block.start : block.stop] = numbers

    @property
    def result(self) -> Shaped[Tensor, "batch heads queries"]:
        if self._numbers is None:
            return torch.zeros(self._shape, dtype=self._like)
        return self._numbers


class Received(Gathering):
    """Σ_i w_ij: how much each slot is looked at by all queries together, (batch, heads, slots)."""

    def __init__(self, reading: Reading) -> None:
        batch, heads, _, slots = reading.shape
        self._sums = torch.zeros((batch, heads, slots), dtype=torch.float64)
        self._like = torch.float32

    def take(self, block: Block) -> None:
        self._like = block.weights.dtype
        sums = block.weights.sum(1)
        self._sums[block.batch, block.heads, block.low : block.high] += sums.cpu()

    @property
    def result(self) -> Float[Tensor, "batch heads slots"]:
        return self._sums.to(self._like)


class Top(Gathering):
    """The k greatest weights of each query and their slots; 0 and −1 where there are fewer."""

    def __init__(self, reading: Reading, k: int) -> None:
        shape = (*reading.shape[:3], k)
        self._weights, self._slots = torch.zeros(shape), torch.full(shape, -1)

    def take(self, block: Block) -> None:
        count = min(self._weights.shape[-1], block.high - block.low)
        weights, slots = block.weights.topk(count, -1)
        if self._weights.dtype != weights.dtype:
            self._weights = self._weights.to(weights.dtype)
        rows = block.batch, block.heads, slice(block.start, block.stop), slice(count)
        self._weights[rows] = weights.cpu()
        self._slots[rows] = torch.where(weights > 0, slots + block.low, -1).cpu()

    @property
    def result(self) -> tuple[Float[Tensor, "b h q k"], Int[Tensor, "b h q k"]]:
        return self._weights, self._slots


class Mass(Gathering):
    """Σ_j∈g w_j for each group g of slots: (batch, heads, queries, groups).

    groups: the number of the group of each slot, (slots,) or (batch, slots); below 0 = of none.
    """

    def __init__(self, reading: Reading, groups: Int[Tensor, "#batch slots"], count: int) -> None:
        self._groups = groups.expand(reading.shape[0], -1)
        self._masses = torch.zeros((*reading.shape[:3], count))

    def take(self, block: Block) -> None:
        mine = self._groups[block.batch, block.low : block.high].to(block.weights.device)
        numbers = torch.arange(self._masses.shape[-1], device=mine.device)
        member = (numbers.unsqueeze(-1) == mine).to(block.weights.dtype)
        masses = linear(block.weights, member)
        if self._masses.dtype != masses.dtype:
            self._masses = self._masses.to(masses.dtype)
        self._masses[block.batch, block.heads, block.start : block.stop] = masses.cpu()

    @property
    def result(self) -> Float[Tensor, "batch heads queries groups"]:
        return self._masses


def gather(reading: Reading, gatherings: Mapping[str, Gathering]) -> dict[str, Any]:
    """The results of them all, from one pass over the blocks."""
    for block in blocks_of(reading):
        for gathering in gatherings.values():
            gathering.take(block)
    return {name: gathering.result for name, gathering in gatherings.items()}
