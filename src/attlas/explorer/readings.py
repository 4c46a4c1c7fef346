"""Readings of parts of maps that take long: how far they are, and what is kept of them."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.patterns import Causal, Everywhere, Window
from attlas.recording import AttentionMap, FactoredAttentionMap
from attlas.recording.maps.blocks import Block
from attlas.recording.maps.reductions import (
    CancelCheck,
    PoolReduction,
    Reduction,
    RowReduction,
    max_logit,
    max_weight,
    reduce_map,
)

Report = Callable[[float], None]
"""Called with the share that was read."""

# How far a reading is.


class ProgressReduction(CancelCheck):
    """Tells the share of the weights that were read, and ends the pass soon after `stop` is set."""

    def __init__(
        self,
        stop: threading.Event,
        attention_map: AttentionMap,
        rows: tuple[int, int],
        report: Report,
    ) -> None:
        super().__init__(stop)
        self._whole, self._report = _weights_of(attention_map, rows), report
        self._read = 0
        self._lock = threading.Lock()

    def update(self, block: Block) -> None:
        super().update(block)
        with self._lock:
            self._read += block.weights.numel()
            self._report(min(self._read / self._whole, 1.0))


def _weights_of(attention_map: AttentionMap, rows: tuple[int, int]) -> int:
    """How many weights the blocks of these rows have: of keys that can be seen at all, at least
    one."""
    _, heads, _, num_keys = attention_map.shape
    low, high = np.zeros(rows[1] - rows[0]), np.full(rows[1] - rows[0], num_keys)
    if isinstance(attention_map, FactoredAttentionMap) and attention_map.position is not None:
        bound, places = attention_map.pattern.bound, attention_map.position + np.arange(*rows)
        if bound.back is not None and not bound.marks:
            low = (places - bound.back).clip(0, num_keys)
        if bound.ahead is not None and not bound.marks:
            high = (places + bound.ahead + 1).clip(0, num_keys)
    return max(1, heads * int((high - low).clip(0).sum()))


def largest_of_groups(
    attention_map: AttentionMap,
    rows: tuple[int, int],
    keys: tuple[int, int],
    shape: tuple[int, int],
    *,
    hidden: float = 0.0,
    stop: threading.Event | None = None,
    report: Report = lambda _: None,
) -> Float[Tensor, "heads height width"]:
    """The largest weight of each group of a part of a map; see `maps.MapWindow`.

    Args:
        hidden: The number for a group in which no query may look at any key.
        stop: Set by another thread when no request waits for the result any more.
        report: Called with the share that was read, again and again, from any thread.

    Raises:
        PassCancelledError: Soon after `stop` is set.
    """
    reductions: dict[str, Reduction] = {
        "pooled": PoolReduction(attention_map, rows, keys, shape, "max", hidden=hidden)
    }
    if stop is not None:
        reductions["stop"] = ProgressReduction(stop, attention_map, rows, report)
    pooled: Tensor = reduce_map(attention_map, reductions, rows=rows)["pooled"]
    return pooled[0]


# A part of a map whose rows are known: no key outside of the part is read.


_RELATIVE = (Everywhere, Causal, Window)  # patterns that count from the query alone


def log_sums_of(attention_map: AttentionMap) -> dict[str, Reduction]:
    """Reductions whose results give, by `log_sums`, log Σ_j e^score_j of each query."""
    if not isinstance(attention_map, FactoredAttentionMap):
        return {}
    return {
        "max_logit": RowReduction(attention_map, max_logit),
        "max_weight": RowReduction(attention_map, max_weight),
    }


def cut_out(
    attention_map: AttentionMap, rows: tuple[int, int], keys: tuple[int, int]
) -> FactoredAttentionMap | None:
    """The map of these queries over these keys alone; None where it is not made of its parts.

    Its weights are those of the whole map, each row times a factor of its own.
    """
    if not isinstance(attention_map, FactoredAttentionMap) or attention_map.bias is not None:
        return None
    if not isinstance(attention_map.pattern, _RELATIVE):
        return None
    offset, mask = attention_map.query_offset, attention_map.token_mask
    return replace(
        attention_map,
        query=attention_map.query[:, :, slice(*rows)],
        keys=attention_map.keys[:, :, slice(*keys)],
        query_offset=None if offset is None else offset + rows[0] - keys[0],
        token_mask=None if mask is None else mask[:, slice(*keys)],
    )


class _RescaledPool(PoolReduction):
    """The greatest weights of a map that was cut out, as the whole map has them:

        w_ij = w'_ij · e^(L'_i − L_i),    L_i = log Σ_j e^score_ij

    over all keys, and L' over those that were cut out.
    """

    def __init__(
        self, part: FactoredAttentionMap, shape: tuple[int, int], log_sums: Tensor, hidden: float
    ) -> None:
        _, _, queries, num_keys = part.shape
        super().__init__(part, (0, queries), (0, num_keys), shape, "max", hidden=hidden)
        self._log_sums = log_sums

    @property
    def kernel_names(self) -> frozenset[str] | None:
        return None  # kernels of a GPU make no blocks, which are rescaled here

    def update(self, block: Block) -> None:
        if block.high > block.low:
            own = max_logit(block) - max_weight(block).log()
            known = self._log_sums[block.start : block.stop].to(own.device)
            factor = torch.where(block.has_visible, (own - known).exp(), 0.0)
            block = replace(block, weights=block.weights * factor.unsqueeze(-1))
        super().update(block)


def largest_of_known_rows(
    part: FactoredAttentionMap,
    log_sums: Float[Tensor, " queries"],
    shape: tuple[int, int],
    *,
    hidden: float = 0.0,
    stop: threading.Event | None = None,
    report: Report = lambda _: None,
) -> Float[Tensor, "1 height width"]:
    """The largest weight of each group of a part of a map of one head, see `cut_out`.

    Args:
        log_sums: Of the queries of the part, over all keys of the whole map.
        hidden, stop, report: As of `largest_of_groups`.

    Raises:
        PassCancelledError: Soon after `stop` is set.
    """
    reductions: dict[str, Reduction] = {"pooled": _RescaledPool(part, shape, log_sums, hidden)}
    if stop is not None:
        reductions["stop"] = ProgressReduction(stop, part, (0, part.shape[2]), report)
    pooled: Tensor = reduce_map(part, reductions)["pooled"]
    return pooled[0]


class Readings:
    """The readings that are under way, by what they read."""

    def __init__(self) -> None:
        self._shares: dict[Hashable, dict[int, float]] = {}
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def under_way(self, what: Hashable) -> Iterator[Report]:
        """Of one reading; the function is to be told how far it is."""
        with self._lock:
            self._count += 1
            number = self._count
            self._shares.setdefault(what, {})[number] = 0.0

        def report(share: float) -> None:
            with self._lock:
                if number in self._shares.get(what, ()):
                    self._shares[what][number] = share

        try:
            yield report
        finally:
            with self._lock:
                del self._shares[what][number]
                if not self._shares[what]:
                    del self._shares[what]

    def share(self, what: Hashable) -> float | None:
        """How far the reading is that is the farthest; None where none is under way."""
        with self._lock:
            return max(self._shares.get(what, {}).values(), default=None)


# What is kept of the reading of a whole map: more than was asked for, to look closer at once.


CLOSER = 4  # times as many cells of each axis as were asked for


@dataclass(frozen=True, slots=True, eq=False)
class Pyramid:
    """The largest weight of each group of a whole map of one head, −inf where no query may look.

    Group i of the n groups of an axis of this size begins at ⌊i · size / n⌋.

    Args:
        log_sums: log Σ_j e^score_j of each query; None = not known.
    """

    cells: Float[Tensor, "rows keys"]
    size: tuple[int, int]
    log_sums: Float[Tensor, " queries"] | None = None

    @classmethod
    def read(
        cls,
        attention_map: AttentionMap,
        shape: tuple[int, int],
        *,
        stop: threading.Event | None = None,
        report: Report = lambda _: None,
    ) -> Self:
        """Read the whole map of one head, with cells of which a picture of this shape can be made.

        Raises:
            PassCancelledError: Soon after `stop` is set.
        """
        _, _, queries, num_keys = attention_map.shape
        size = queries, num_keys
        whole = (0, queries), (0, num_keys)
        reductions: dict[str, Reduction] = {
            "pooled": PoolReduction(
                attention_map, *whole, finer(size, shape), "max", hidden=-math.inf
            ),
            **log_sums_of(attention_map),
        }
        if stop is not None:
            reductions["stop"] = ProgressReduction(stop, attention_map, (0, queries), report)
        found = reduce_map(attention_map, reductions)
        log_sums = None
        if "max_logit" in found:
            log_sums = (found["max_logit"] - found["max_weight"].log())[0, 0].float().cpu()
        return cls(found["pooled"][0, 0], size, log_sums)

    def has_groups(self, shape: tuple[int, int]) -> bool:
        """Whether each group of a picture of this shape is so many whole cells."""
        return all(
            cells % groups == 0 for cells, groups in zip(self.cells.shape, shape, strict=True)
        )

    def coarser(self, shape: tuple[int, int]) -> Float[Tensor, "1 height width"]:
        """The largest of each group, where a group is as many whole cells as any other."""
        height, width = shape
        rows, keys = self.cells.shape
        grouped = self.cells.reshape(height, rows // height, width, keys // width)
        return grouped.amax((1, 3)).unsqueeze(0)

    def part(
        self, rows: tuple[int, int], keys: tuple[int, int], shape: tuple[int, int]
    ) -> Float[Tensor, "1 height width"]:
        """A part of the map in at most so many groups, each with all cells that it has a part of.

        So a group may have a weight that lies a cell beside it, and there are no more groups of an
        axis than it has cells there.
        """
        cells = self.cells.numpy()
        for axis, (span, most) in enumerate(zip((rows, keys), shape, strict=True)):
            cells = self._groups(cells, axis, span, most)
        return torch.from_numpy(cells).unsqueeze(0)

    def _groups(self, cells: np.ndarray, axis: int, span: tuple[int, int], most: int) -> np.ndarray:
        count, size = cells.shape[axis], self.size[axis]
        edges = np.arange(count + 1, dtype=np.int64) * size // count
        low, high = span
        first = np.searchsorted(edges, low, "right") - 1
        last = np.searchsorted(edges, high, "left")
        groups = min(most, int(last - first))
        bounds = low + np.arange(groups + 1, dtype=np.int64) * (high - low) // groups
        firsts = np.searchsorted(edges, bounds[:-1], "right") - 1
        lasts = np.searchsorted(edges, bounds[1:], "left")
        parts = np.moveaxis(cells, axis, 0)
        pooled = np.stack(
            [parts[i:j].max(0) for i, j in zip(firsts.tolist(), lasts.tolist(), strict=True)]
        )
        return np.ascontiguousarray(np.moveaxis(pooled, 0, axis))


def finer(size: tuple[int, int], shape: tuple[int, int]) -> tuple[int, int]:
    """The cells of a pyramid whose groups of a picture of this shape are whole cells."""
    factors = [
        1 << int(math.log2(min(CLOSER, n // cells))) for n, cells in zip(size, shape, strict=True)
    ]
    return shape[0] * factors[0], shape[1] * factors[1]


class Pyramids:
    """The pyramids of the latest readings, in memory; the least recently used one goes first."""

    def __init__(self, most_bytes: int = 256 * 2**20) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, Pyramid] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, what: Hashable, pyramid: Pyramid) -> None:
        """Keep the pyramid of a head."""
        with self._lock:
            self._kept[what] = pyramid
            self._kept.move_to_end(what)
            while len(self._kept) > 1 and self._bytes > self._most_bytes:
                self._kept.popitem(last=False)

    def get(self, what: Hashable) -> Pyramid | None:
        """The pyramid of a head; None where its map was not read."""
        with self._lock:
            if what not in self._kept:
                return None
            self._kept.move_to_end(what)
            return self._kept[what]

    @property
    def _bytes(self) -> int:
        return sum(one.cells.numel() * one.cells.element_size() for one in self._kept.values())
