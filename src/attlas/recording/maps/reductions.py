"""Reductions: results from one pass over the blocks of an attention map."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise, takewhile
from operator import or_
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import linear

from attlas._parallel import run_threads
from attlas.errors import AttlasError
from attlas.recording.maps.blocks import AT_ONCE, Block, BlockSource, blocks_of
from attlas.recording.maps.row_kernels import MOST_GROUPS, MOST_KEYS, RowKernels, attempt
from attlas.recording.maps.row_tiles import (
    LEAST_KEYS,
    LEAST_QUERIES,
    TILE_STATISTICS,
    RowTiles,
    TileRequest,
)

# Row statistics: one number for a row of weights w over the keys that the query sees.


RowStatistic = Callable[[Block], Tensor]
"""A number for each row of a block: (heads, rows)."""


def entropy(block: Block) -> Float[Tensor, "heads rows"]:
    """−Σ w log w, in nats: how spread out a query looks."""
    return block.entropy


def normalized_entropy(block: Block) -> Float[Tensor, "heads rows"]:
    """Entropy / log n of the n keys that the query may see, from 0 to 1; 0 where n < 2."""
    return _normalized(block.entropy, block.num_visible)


def _normalized(
    entropies: Float[Tensor, "*rows"], num_visible: Float[Tensor, "*#rows"]
) -> Float[Tensor, "*rows"]:
    max_entropy = num_visible.clamp(min=1).log()
    return torch.where(max_entropy > 0, entropies / max_entropy.clamp(min=1e-30), 0.0)


def effective_keys(block: Block) -> Float[Tensor, "heads rows"]:
    """exp(entropy): so many keys, looked at evenly, would be as uncertain; 0 for none."""
    return torch.where(block.has_visible, block.entropy.exp(), 0.0)


def num_visible(block: Block) -> Float[Tensor, "heads rows"]:
    """How many keys the query may see."""
    return block.num_visible.expand(block.weights.shape[:2])


def max_weight(block: Block) -> Float[Tensor, "heads rows"]:
    """max w."""
    return _nothing(block) if block.high == block.low else block.max_weight


def max_logit(block: Block) -> Float[Tensor, "heads rows"]:
    """max s of the scores s that the softmax is taken of; −∞ for a row that sees nothing."""
    if block.high == block.low:
        return block.weights.new_full(block.weights.shape[:2], -torch.inf)
    greatest = block.scores.gather(-1, block.greatest.unsqueeze(-1)).squeeze(-1)
    if bool(block.max_weight.isnan().any()):  # the weights of such a row say nothing of its scores
        greatest = block.scores.masked_fill(~block.allowed, -torch.inf).amax(-1)
    return torch.where(block.has_visible, greatest, -torch.inf)


def argmax(block: Block) -> Int[Tensor, "heads rows"]:
    """The key of the greatest weight, the first of equals; −1 where none is seen."""
    if block.high == block.low:
        return torch.full(block.weights.shape[:2], -1, device=block.weights.device)
    return torch.where(block.has_visible, block.greatest + block.low, -1)


@dataclass(frozen=True, slots=True)
class CountAbove:
    """How many weights are greater than `threshold`."""

    threshold: float

    def __call__(self, block: Block) -> Float[Tensor, "heads rows"]:
        # As floats: to sum bools takes six times as long.
        return torch.gt(block.weights, self.threshold, out=block.scratch).sum(-1)


def distance(block: Block) -> Float[Tensor, "heads rows"]:
    """Σ_j w_j |i − j|, in keys: how far the query at position i looks."""
    first, rows = block.position, block.stop - block.start
    positions = torch.arange(block.low, block.high, device=block.weights.device)
    num_before = min(max(first - block.low, 0), len(positions))
    num_until = min(max(first + rows - block.low, 0), len(positions))
    row = torch.arange(rows, device=block.weights.device)
    # Keys before and behind all of the rows are as far from each of them as from the nearest one,
    # and from that one to them; sums of such terms lose no digits, as Σ w j − i would.
    left, right = block.weights[..., :num_before], block.weights[..., num_until:]
    total = _sum_of_distances(left, first - positions[:num_before], row)
    total += _sum_of_distances(right, positions[num_until:] - (first + rows - 1), rows - 1 - row)
    distances = (
        (first + row.unsqueeze(-1) - positions[num_before:num_until]).abs().to(block.weights.dtype)
    )
    total += torch.linalg.vecdot(block.weights[..., num_before:num_until], distances)
    return total


def _sum_of_distances(
    weights: Float[Tensor, "heads rows keys"],
    to_nearest: Int[Tensor, " keys"],
    from_nearest: Int[Tensor, " rows"],
) -> Float[Tensor, "heads rows"]:
    stacked = torch.stack((to_nearest, torch.ones_like(to_nearest))).to(weights.dtype)
    sums = linear(weights, stacked)
    return sums[..., 0] + sums[..., 1] * from_nearest


def gini(block: Block) -> Float[Tensor, "heads rows"]:
    """Gini's coefficient Σ_k (2k − n − 1) w_(k) / (n Σ w) of the n weights in ascending order.

    0: all are equal; (n − 1) / n: one has everything. 0 where nothing is seen. It is of what the
    keys have: beside a sink, which takes a part away, their weights sum to less than 1.
    """
    ascending = block.weights.sort(-1).values
    count = block.num_visible.unsqueeze(-1)
    ranks = torch.arange(1, block.high - block.low + 1, device=block.weights.device)
    rank = ranks - (block.high - block.low - count)  # hidden keys have zeros, which come first
    total = (ascending * (2 * rank - count - 1)).sum(-1)
    row_totals = ascending.sum(-1)
    return total / torch.where(row_totals == 0, 1.0, row_totals * block.num_visible.clamp(min=1))


def first_weight(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the first token: an attention sink (Xiao et al., 2024)."""
    return _weight_on(block, block.ends()[0])


def last_weight(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the last token."""
    return _weight_on(block, block.ends()[1])


@dataclass(frozen=True, slots=True)
class WeightAtOffset:
    """The weight of the key at i + offset: 0 is the query's own, −1 the one before."""

    offset: int

    def __call__(self, block: Block) -> Float[Tensor, "heads rows"]:
        row = torch.arange(block.stop - block.start, device=block.weights.device)
        column = row + block.position + self.offset - block.low
        in_range = (column >= 0) & (column < block.high - block.low)
        if not bool(in_range.any()):
            return _nothing(block)
        columns = torch.where(in_range, column, 0).expand(block.weights.shape[0], -1).unsqueeze(-1)
        return block.weights.gather(-1, columns).squeeze(-1) * in_range


def _weight_on(block: Block, key: int) -> Float[Tensor, "heads rows"]:
    if not block.low <= key < block.high:
        return _nothing(block)
    return block.weights[..., key - block.low]


def _nothing(block: Block) -> Float[Tensor, "heads rows"]:
    return block.weights.new_zeros(block.weights.shape[:2])


# The same by the kernels of a GPU, and by the tiles of a CPU, which make no blocks.


_BY_KERNELS: Mapping[RowStatistic, Callable[[RowKernels | RowTiles], Tensor]] = {
    entropy: lambda kernels: kernels.entropy,
    normalized_entropy: lambda kernels: _normalized(kernels.entropy, kernels.num_visible),
    effective_keys: lambda kernels: torch.where(
        kernels.num_visible > 0, kernels.entropy.exp(), 0.0
    ),
    num_visible: lambda kernels: kernels.num_visible,
    max_weight: lambda kernels: kernels.max_weight,
    max_logit: lambda kernels: kernels.max_logit,
    argmax: lambda kernels: kernels.argmax,
    distance: lambda kernels: kernels.distance,
    first_weight: lambda kernels: kernels.weight_on(0),
    last_weight: lambda kernels: kernels.weight_on(1),
}


def _row_by_kernels(statistic: RowStatistic) -> Callable[[RowKernels | RowTiles], Tensor] | None:
    if isinstance(statistic, WeightAtOffset):
        return lambda kernels: kernels.weight_at(statistic.offset)
    if isinstance(statistic, CountAbove):
        return lambda kernels: kernels.count_above(statistic.threshold)
    return _BY_KERNELS.get(statistic)


def _tiles_of_row(statistic: RowStatistic) -> TileRequest | None:
    if isinstance(statistic, CountAbove):
        return TileRequest(thresholds=frozenset([statistic.threshold]))
    if isinstance(statistic, WeightAtOffset):
        return TileRequest()
    name = getattr(statistic, "__name__", "")
    if statistic not in _BY_KERNELS or name not in TILE_STATISTICS:
        return None
    return TileRequest(frozenset([name]))


class Reduction(ABC):
    """Takes every block once, and has a result in the end.

    `shared` says whether several threads may bring blocks, each to its own `for_thread`.
    """

    shared: ClassVar[bool] = False

    @property
    def kernel_names(self) -> frozenset[str] | None:
        """What the kernels of a GPU compute for it in their first pass; None = they cannot."""
        return None

    def take(self, kernels: RowKernels) -> bool:
        """Take the result from these kernels instead of blocks; return False if they cannot."""
        return False

    @property
    def tile_request(self) -> TileRequest | None:
        """What the tiles of a CPU compute for it; None = they cannot."""
        return None

    def take_tiles(self, tiles: RowTiles) -> None:
        """Take the result from these tiles instead of blocks."""
        raise NotImplementedError

    @abstractmethod
    def update(self, block: Block) -> None:
        """Add one more block."""

    def for_thread(self, number: int) -> "Reduction":
        """What the thread of this number gives its blocks to, so that they count here."""
        return self

    @property
    @abstractmethod
    def result(self) -> Any:
        """The result."""


class RowReduction(Reduction):
    """A number for each query: (batch, heads, queries)."""

    shared = True

    def __init__(
        self, attention_map: BlockSource, of_row: RowStatistic, dtype: torch.dtype = torch.float32
    ) -> None:
        self._shape = attention_map.shape[:3]
        self._of_row = of_row
        self._like = dtype  # of an attention map without a block
        self._numbers: Tensor | None = None
        self._lock = threading.Lock()

    def update(self, block: Block) -> None:
        numbers = self._of_row(block)
        with self._lock:
            if self._numbers is None:
                self._numbers = numbers.new_zeros(self._shape)
        self._numbers[block.batch, block.heads, block.start : block.stop] = numbers

    @property
    def kernel_names(self) -> frozenset[str] | None:
        if _row_by_kernels(self._of_row) is None:
            return None
        return frozenset([getattr(self._of_row, "__name__", "")])

    def take(self, kernels: RowKernels) -> bool:
        return self._taken_from(kernels)

    @property
    def tile_request(self) -> TileRequest | None:
        return _tiles_of_row(self._of_row)

    def take_tiles(self, tiles: RowTiles) -> None:
        self._taken_from(tiles)

    def _taken_from(self, source: RowKernels | RowTiles) -> bool:
        answer = _row_by_kernels(self._of_row)
        if answer is None:
            return False
        numbers = answer(source)
        self._numbers = numbers.new_zeros(self._shape)
        self._numbers[:, :, source.start : source.stop] = numbers
        return True

    @property
    def result(self) -> Shaped[Tensor, "batch heads queries"]:
        if self._numbers is None:
            return torch.zeros(self._shape, dtype=self._like)
        return self._numbers


class ReceivedReduction(Reduction):
    """Σ_i w_ij: how much each key is looked at by all queries together, (batch, heads, keys).

    Args:
        query_mask: The queries that count; None = all.
    """

    shared = True

    def __init__(
        self, attention_map: BlockSource, query_mask: Bool[Tensor, "batch queries"] | None = None
    ) -> None:
        batch, heads, _, num_keys = attention_map.shape
        self._sums = _new_tensor((batch, heads, num_keys), torch.float64)
        self._like = torch.float32
        self._map, self._query_mask = attention_map, query_mask
        self._apart: dict[int, ReceivedReduction] = {}

    def for_thread(self, number: int) -> "ReceivedReduction":
        return self._apart.setdefault(number, ReceivedReduction(self._map, self._query_mask))

    def update(self, block: Block) -> None:
        self._like = block.weights.dtype
        weights = block.weights
        if self._query_mask is not None:
            counts = self._query_mask[block.batch, block.start : block.stop].unsqueeze(-1)
            weights = torch.where(counts, weights, 0.0)
        sums = weights.sum(1)
        self._sums[block.batch, block.heads, block.low : block.high] += sums.cpu()

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return frozenset()

    def take(self, kernels: RowKernels) -> bool:
        self._sums += kernels.received(self._query_mask).cpu()
        return True

    @property
    def tile_request(self) -> TileRequest | None:
        # A class of it may count other queries, block by block.
        return (
            TileRequest(query_masks=(self._query_mask,))
            if type(self) is ReceivedReduction
            else None
        )

    def take_tiles(self, tiles: RowTiles) -> None:
        self._sums += tiles.received(self._query_mask)
        self._like = tiles.dtype

    @property
    def result(self) -> Float[Tensor, "batch heads keys"]:
        for _, other in sorted(self._apart.items()):  # sums depend on their order
            self._sums += other._sums
            self._like = torch.promote_types(self._like, other._like)
        self._apart.clear()
        return self._sums.to(self._like)


class TopKReduction(Reduction):
    """The k greatest weights of each query and their keys; 0 and −1 where it sees fewer."""

    shared = True

    def __init__(self, attention_map: BlockSource, k: int) -> None:
        shape = (*attention_map.shape[:3], k)
        self._weights, self._keys = _new_tensor(shape), _new_tensor(shape, torch.int64, -1)
        self._of_softmax = attention_map.of_softmax
        self._lock = threading.Lock()

    def update(self, block: Block) -> None:
        count = min(self._weights.shape[-1], block.high - block.low)
        weights, indices = block.weights.topk(count, -1)
        # Weights above 0 are seen. To look for the others takes as long as `topk`, and is needed
        # where some that are seen are nothing, or below it.
        positive = weights > 0
        if bool((positive.sum(-1) < block.num_visible.clamp(max=count)).any()):
            order = block.weights
            if self._of_softmax:  # what is nothing comes in the order of its scores
                log_weights = block.scores - block.scores.amax(-1, keepdim=True) - 1
                order = torch.where(order > 0, order, log_weights)
            indices = order.masked_fill(~block.allowed, -torch.inf).topk(count, -1).indices
            weights = block.weights.gather(-1, indices)
            positive = block.allowed.expand_as(block.weights).gather(-1, indices)
        weights = weights.where(positive, 0.0)
        with self._lock:
            if self._weights.dtype != weights.dtype:
                self._weights = self._weights.to(weights.dtype)
        rows = block.batch, block.heads, slice(block.start, block.stop), slice(count)
        self._weights[rows] = weights.cpu()
        self._keys[rows] = torch.where(positive, indices + block.low, -1).cpu()

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return frozenset() if self._weights.shape[-1] <= MOST_KEYS else None

    def take(self, kernels: RowKernels) -> bool:
        weights, keys = kernels.top(self._weights.shape[-1])
        self._weights[:, :, kernels.start : kernels.stop] = weights.cpu()
        self._keys[:, :, kernels.start : kernels.stop] = keys.cpu()
        return True

    @property
    def result(self) -> tuple[Float[Tensor, "b h q k"], Int[Tensor, "b h q k"]]:
        return self._weights, self._keys


class MassReduction(Reduction):
    """Σ_j∈g w_j for each group g of keys: (batch, heads, queries, groups).

    Args:
        groups: The number of the group of each key, (keys,) or (batch, keys); below 0 = of none.
    """

    shared = True

    def __init__(
        self, attention_map: BlockSource, groups: Int[Tensor, "#batch keys"], count: int
    ) -> None:
        self._groups = groups.expand(attention_map.shape[0], -1)
        self._masses = _new_tensor((*attention_map.shape[:3], count))
        self._lock = threading.Lock()

    def update(self, block: Block) -> None:
        groups = self._groups[block.batch, block.low : block.high].to(block.weights.device)
        numbers = torch.arange(self._masses.shape[-1], device=groups.device)
        member = (numbers.unsqueeze(-1) == groups).to(block.weights.dtype)
        masses = linear(block.weights, member)
        with self._lock:
            if self._masses.dtype != masses.dtype:
                self._masses = self._masses.to(masses.dtype)
        self._masses[block.batch, block.heads, block.start : block.stop] = masses.cpu()

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return frozenset() if self._masses.shape[-1] <= MOST_GROUPS else None

    def take(self, kernels: RowKernels) -> bool:
        masses = kernels.mass(self._groups, self._masses.shape[-1])
        self._masses[:, :, kernels.start : kernels.stop] = masses.cpu()
        return True

    @property
    def result(self) -> Float[Tensor, "batch heads queries groups"]:
        return self._masses


@torch.inference_mode(False)
def _new_tensor(
    shape: Sequence[int], dtype: torch.dtype = torch.float32, number: int = 0
) -> Tensor:
    """A tensor that every thread may write to, whatever mode the caller's is in: one that was made
    in inference mode takes nothing outside of it."""
    return torch.full(tuple(shape), number, dtype=dtype, device="cpu")


def reduce_map(
    attention_map: BlockSource,
    reductions: Mapping[str, Reduction],
    *,
    rows: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """The results of them all, from one pass over the blocks.

    Numbers without a graph, in full precision, whatever autocast and grad mode say here.

    Args:
        rows: The rows that matter, as of `blocks_of`.
    """
    with torch.no_grad(), torch.autocast(attention_map.device.type, enabled=False):
        return _reduce_map(attention_map, reductions, rows)


def _reduce_map(
    attention_map: BlockSource, reductions: Mapping[str, Reduction], rows: tuple[int, int] | None
) -> dict[str, Any]:
    all_reductions = _left_by_kernels(attention_map, list(reductions.values()), rows)
    if not all_reductions or _taken_by_tiles(attention_map, all_reductions, rows):
        pass
    elif all(reduction.shared for reduction in all_reductions) and _runs_in_threads(attention_map):

        def work(number: int, count: int, stop: threading.Event) -> None:
            with lock:
                copies = [reduction.for_thread(number) for reduction in all_reductions]
            share = number, count
            torch.set_grad_enabled(False)  # of this thread, which ends here
            blocks = blocks_of(attention_map, rows=rows, at_once=AT_ONCE // count, share=share)
            _update_all(takewhile(lambda _: not stop.is_set(), blocks), copies)

        lock = threading.Lock()
        run_threads(work)
    else:
        _update_all(blocks_of(attention_map, rows=rows), all_reductions)
    return {name: reduction.result for name, reduction in reductions.items()}


def _left_by_kernels(
    attention_map: BlockSource, reductions: Sequence[Reduction], rows: tuple[int, int] | None
) -> Sequence[Reduction]:
    """The reductions that need blocks: the kernels of a GPU have answered the others."""
    asked = [names for each in reductions if (names := each.kernel_names) is not None]
    kernels = None
    if asked:
        all_rows = (0, attention_map.shape[2])
        kernels = attention_map.row_kernels(rows or all_rows, frozenset().union(*asked))
    if kernels is None:
        return reductions
    left = []
    for each in reductions:
        names = each.kernel_names
        key = (type(each).__name__, *sorted(names or ()))
        if names is None or not attempt(partial(each.take, kernels), kernels.scores, key):
            left.append(each)
    return left


def _taken_by_tiles(
    attention_map: BlockSource, reductions: Sequence[Reduction], rows: tuple[int, int] | None
) -> bool:
    """Return True if tiles have answered all of them: a pass over blocks answers them as well."""
    batch, heads, queries, num_keys = attention_map.shape
    rows = rows or (0, queries)
    count = rows[1] - rows[0]
    if (
        num_keys < LEAST_KEYS
        or count < LEAST_QUERIES
        or batch * heads * count * num_keys <= AT_ONCE
    ):
        return False
    requests = [reduction.tile_request for reduction in reductions]
    known = [request for request in requests if request is not None]
    if len(known) < len(requests):
        return False
    tiles = attention_map.row_tiles(rows, reduce(or_, known))
    if tiles is None:
        return False
    for reduction in reductions:
        reduction.take_tiles(tiles)
    return True


def _runs_in_threads(attention_map: BlockSource) -> bool:
    """Return True if it is of a kind that threads may ask at the same time, on a CPU, and large
    enough.
    """
    large = math.prod(attention_map.shape) > AT_ONCE
    has_threads = attention_map.device.type == "cpu" and torch.get_num_threads() > 1
    return attention_map.thread_safe and large and has_threads


def _update_all(blocks: Iterable[Block], reductions: Sequence[Reduction]) -> None:
    for block in blocks:
        for reduction in reductions:
            reduction.update(block)


# Ending a pass over a long map whose result is no longer wanted.


class PassCancelledError(Exception):
    """The pass was given up: it has no result."""


class CancelCheck(Reduction):
    """Ends the pass with `PassCancelledError` at the first block after `stop` was set."""

    shared: ClassVar[bool] = True

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def update(self, block: Block) -> None:
        if self._stop.is_set():
            raise PassCancelledError

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return frozenset()

    def take(self, kernels: RowKernels) -> bool:
        if self._stop.is_set():
            raise PassCancelledError
        return True

    @property
    def result(self) -> None:
        return None


# A window of a map, pooled to the size of a picture.


class PoolReduction(Reduction):
    """The sum, mean or maximum of the weights in each cell of a grid over a window of every map.

    Cell (r, s) of a grid has the rows ⌊r · n / cells⌋ … of the window's n rows, and keys likewise,
    so that cells differ in size by one at most.

    Args:
        rows, key_range: The window: the first, and one past the last.
        shape: The cells of the grid, (rows, keys).
        how: "sum", "mean" or "max".
        hidden: For "max", the value of a cell in which no query may look at any key. A weight other
            than 0 counts as allowed, whatever the mask says.
    """

    shared = True

    def __init__(
        self,
        attention_map: BlockSource,
        rows: tuple[int, int],
        key_range: tuple[int, int],
        shape: tuple[int, int],
        how: str,
        *,
        hidden: float = 0.0,
    ) -> None:
        batch, heads, *axes = attention_map.shape
        if how not in ("sum", "mean", "max"):
            raise AttlasError("how as 'sum', 'mean' or 'max'", repr(how), "choose one of them")
        self._rows, self._keys, self._how = rows, key_range, how
        self._hidden = hidden
        for name, (low, high), cells, size in zip(
            ("rows", "keys"), (rows, key_range), shape, axes, strict=True
        ):
            if not 0 <= low < high <= size or not 1 <= cells <= high - low:
                raise AttlasError(
                    f"a window of {name} within 0 … {size}, in at most as many cells",
                    f"{low} … {high} in {cells} cells",
                    "ask for a part of the map, and for no more cells than it has",
                )
        self._row_edges, self._key_edges = (
            np.arange(cells + 1, dtype=np.int64) * (high - low) // cells + low
            for (low, high), cells in zip((rows, key_range), shape, strict=True)
        )
        self._join = np.maximum if how == "max" else np.add
        self._cells = np.full((batch, heads, *shape), -np.inf if how == "max" else 0.0)
        self._apart: dict[int, PoolReduction] = {}

    def for_thread(self, number: int) -> "PoolReduction":
        other = copy(self)
        other._cells, other._apart = self._cells.copy(), {}  # nothing is in them yet
        return self._apart.setdefault(number, other)

    def update(self, block: Block) -> None:
        first, last = max(block.start, self._rows[0]), min(block.stop, self._rows[1])
        low, high = max(block.low, self._keys[0]), min(block.high, self._keys[1])
        if first >= last or low >= high:
            return
        block_columns = slice(low - block.low, high - block.low)
        weights = block.weights[..., block_columns]
        if self._hidden and block.partial_masks:
            allowed = block.allowed[..., block_columns] | (weights != 0)
            weights = torch.where(allowed, weights, -torch.inf)
        (top, bottom), row_edges = _cells(self._row_edges, first, last)
        (left, right), key_edges = _cells(self._key_edges, low, high)
        # Rows first, and by torch: that leaves few numbers to go through key by key.
        stripes = [
            self._of_rows(weights[:, begin - block.start : end - block.start])
            for begin, end in pairwise(row_edges)
        ]
        pooled = self._join.reduceat(
            torch.stack(stripes, 1).cpu().numpy(), key_edges[:-1] - low, axis=2
        )
        cells = self._cells[block.batch, block.heads, top:bottom, left:right]
        self._join(cells, pooled, out=cells)

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return frozenset()

    def take(self, kernels: RowKernels) -> bool:
        if (kernels.start, kernels.stop) != self._rows:
            return False
        shape = self._cells.shape[2], self._cells.shape[3]
        pooled = kernels.pool(self._keys, shape, maximum=self._how == "max")
        self._cells[:] = pooled.cpu().numpy()
        return True

    def _of_rows(self, weights: Float[Tensor, "heads rows keys"]) -> Float[Tensor, "heads keys"]:
        return weights.amax(1) if self._how == "max" else weights.sum(1)

    @property
    def result(self) -> Float[Tensor, "batch heads rows keys"]:
        cells = self._cells
        for _, other in sorted(self._apart.items()):  # sums depend on their order
            cells = self._join(cells, other._cells)
        if self._how == "max":
            cells = np.where(cells == -np.inf, self._hidden, cells)  # where no query looks
        if self._how == "mean":
            sizes = np.outer(np.diff(self._row_edges), np.diff(self._key_edges))
            cells = cells / sizes
        return torch.from_numpy(cells).to(torch.float32)


def _cells(edges: np.ndarray, low: int, high: int) -> tuple[tuple[int, int], np.ndarray]:
    """Which cells have one of the places low … high − 1, and the edges of what they have."""
    first = int(np.searchsorted(edges, low, "right")) - 1
    last = int(np.searchsorted(edges, high, "left"))
    return (first, last), edges[first : last + 1].clip(low, high)
