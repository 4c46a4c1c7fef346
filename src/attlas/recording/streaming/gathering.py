"""What is gathered from the blocks of a reading, in one pass."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import linear

from attlas.recording.streaming.block import Block
from attlas.recording.streaming.blocks import AT_ONCE, BlockSource, blocks_of
from attlas.recording.streaming.rows import OfRow
from attlas.recording.streaming.threads import side_by_side


class Gathering(ABC):
    """Takes every block once, and has a result in the end.

    shared: whether several threads may bring blocks, each to what is `apart` for it.
    """

    shared: ClassVar[bool] = False

    @abstractmethod
    def take(self, block: Block) -> None:
        """One more block."""

    def apart(self, number: int) -> "Gathering":
        """What the thread of this number gives its blocks to, so that they count here."""
        return self

    @property
    @abstractmethod
    def result(self) -> Any:
        """What all of them came to."""


class Rows(Gathering):
    """A number for each query: (batch, heads, queries)."""

    shared = True

    def __init__(
        self, reading: BlockSource, of_row: OfRow, like: torch.dtype = torch.float32
    ) -> None:
        self._shape = reading.shape[:3]
        self._of_row = of_row
        self._like = like  # of a reading without a block
        self._numbers: Tensor | None = None
        self._lock = threading.Lock()

    def take(self, block: Block) -> None:
        numbers = self._of_row(block)
        with self._lock:
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

    shared = True

    def __init__(self, reading: BlockSource) -> None:
        batch, heads, _, slots = reading.shape
        self._sums = _room((batch, heads, slots), torch.float64)
        self._like = torch.float32
        self._reading = reading
        self._apart: dict[int, Received] = {}

    def apart(self, number: int) -> "Received":
        return self._apart.setdefault(number, Received(self._reading))

    def take(self, block: Block) -> None:
        self._like = block.weights.dtype
        sums = block.weights.sum(1)
        self._sums[block.batch, block.heads, block.low : block.high] += sums.cpu()

    @property
    def result(self) -> Float[Tensor, "batch heads slots"]:
        for _, other in sorted(self._apart.items()):  # sums depend on their order
            self._sums += other._sums
            self._like = torch.promote_types(self._like, other._like)
        self._apart.clear()
        return self._sums.to(self._like)


class Top(Gathering):
    """The k greatest weights of each query and their slots; 0 and −1 where it sees fewer."""

    shared = True

    def __init__(self, reading: BlockSource, k: int) -> None:
        shape = (*reading.shape[:3], k)
        self._weights, self._slots = _room(shape), _room(shape, torch.int64, -1)
        self._of_softmax = reading.of_softmax
        self._lock = threading.Lock()

    def take(self, block: Block) -> None:
        count = min(self._weights.shape[-1], block.high - block.low)
        weights, slots = block.weights.topk(count, -1)
        # Weights above 0 are seen. To look for the others takes as long as `topk`, and is needed
        # where some that are seen are nothing, or below it.
        there = weights > 0
        if bool((there.sum(-1) < block.visible.clamp(max=count)).any()):
            order = block.weights
            if self._of_softmax:  # what is nothing comes in the order of its scores
                below = block.scores - block.scores.amax(-1, keepdim=True) - 1
                order = torch.where(order > 0, order, below)
            slots = order.masked_fill(~block.seen, -torch.inf).topk(count, -1).indices
            weights = block.weights.gather(-1, slots)
            there = block.seen.expand_as(block.weights).gather(-1, slots)
        weights = weights.where(there, 0.0)
        with self._lock:
            if self._weights.dtype != weights.dtype:
                self._weights = self._weights.to(weights.dtype)
        rows = block.batch, block.heads, slice(block.start, block.stop), slice(count)
        self._weights[rows] = weights.cpu()
        self._slots[rows] = torch.where(there, slots + block.low, -1).cpu()

    @property
    def result(self) -> tuple[Float[Tensor, "b h q k"], Int[Tensor, "b h q k"]]:
        return self._weights, self._slots


class Mass(Gathering):
    """Σ_j∈g w_j for each group g of slots: (batch, heads, queries, groups).

    groups: the number of the group of each slot, (slots,) or (batch, slots); below 0 = of none.
    """

    shared = True

    def __init__(
        self, reading: BlockSource, groups: Int[Tensor, "#batch slots"], count: int
    ) -> None:
        self._groups = groups.expand(reading.shape[0], -1)
        self._masses = _room((*reading.shape[:3], count))
        self._lock = threading.Lock()

    def take(self, block: Block) -> None:
        mine = self._groups[block.batch, block.low : block.high].to(block.weights.device)
        numbers = torch.arange(self._masses.shape[-1], device=mine.device)
        member = (numbers.unsqueeze(-1) == mine).to(block.weights.dtype)
        masses = linear(block.weights, member)
        with self._lock:
            if self._masses.dtype != masses.dtype:
                self._masses = self._masses.to(masses.dtype)
        self._masses[block.batch, block.heads, block.start : block.stop] = masses.cpu()

    @property
    def result(self) -> Float[Tensor, "batch heads queries groups"]:
        return self._masses


@torch.inference_mode(False)
def _room(shape: Sequence[int], dtype: torch.dtype = torch.float32, number: int = 0) -> Tensor:
    """A tensor that every thread may write to, whatever mode the caller's is in: one that was made
    in inference mode takes nothing outside of it."""
    return torch.full(tuple(shape), number, dtype=dtype, device="cpu")


def gather(
    reading: BlockSource,
    gatherings: Mapping[str, Gathering],
    *,
    within: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """The results of them all, from one pass over the blocks.

    Numbers without a graph, in full precision, whatever autocast and grad mode say here. within:
    the rows that matter, as of `blocks_of`.
    """
    with torch.no_grad(), torch.autocast(reading.device.type, enabled=False):
        return _gathered(reading, gatherings, within)


def _gathered(
    reading: BlockSource, gatherings: Mapping[str, Gathering], within: tuple[int, int] | None
) -> dict[str, Any]:
    every = list(gatherings.values())
    if all(one.shared for one in every) and _may_be_shared(reading):

        def work(number: int, count: int, stop: threading.Event) -> None:
            with lock:
                own = [one.apart(number) for one in every]
            share = number, count
            torch.set_grad_enabled(False)  # of this thread, which ends here
            blocks = blocks_of(reading, within=within, at_once=AT_ONCE // count, share=share)
            _take(takewhile(lambda _: not stop.is_set(), blocks), own)

        lock = threading.Lock()
        side_by_side(work)
    else:
        _take(blocks_of(reading, within=within), every)
    return {name: one.result for name, one in gatherings.items()}


def _may_be_shared(reading: BlockSource) -> bool:
    """Whether it is of a kind that threads may ask at the same time, on a CPU, and large enough."""
    large = math.prod(reading.shape) > AT_ONCE
    several = reading.device.type == "cpu" and torch.get_num_threads() > 1
    return reading.thread_safe and large and several


def _take(blocks: Iterable[Block], gatherings: Sequence[Gathering]) -> None:
    for block in blocks:
        for gathering in gatherings:
            gathering.take(block)
