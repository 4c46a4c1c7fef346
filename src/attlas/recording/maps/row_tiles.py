"""Row statistics of factored maps on a CPU, by tiles of scores that stay in a core's cache.

Some queries meet the keys tile by tile. With m the greatest score so far, a row holds

    Z = Σ e^{s − m},    A = Σ e^{s − m} (m − s),    D = Σ e^{s − m} |i − j|,

and a tile with a greater maximum m′ scales them (Milakov & Gimelshein, 2018):

    Z ← c Z,    A ← c (A + (m′ − m) Z),    D ← c D    with c = e^{m − m′}.

In the end the entropy is log Z + A / Z, the distance D / Z, and the greatest weight 1 / Z. No term
is negative, so no digits are lost. What needs Z itself (sums over queries, counts above a
threshold) goes over the tiles of these queries once more. Blocks of whole rows, as of `blocks.py`,
go through memory once for each operator; these tiles do not.

Scores are counted in units of log 2: where the result underflows, `torch.exp` is far slower than
`torch.exp2`.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas._parallel import run_threads

LEAST_KEYS = 1024
"""A row of fewer keys is in the cache as it is."""

LEAST_QUERIES = 64
"""Of fewer queries a tile is not worth its calls."""

_LEAST_ROWS, _ROWS, _KEYS = 32, 256, 1024
_AT_ONCE = 1 << 22  # weights of some queries that a second pass goes over
_LOG_2 = math.log(2)
_ENTROPIES = frozenset({"entropy", "normalized_entropy", "effective_keys"})

QueryMask = Bool[Tensor, "batch queries"] | None

TILE_STATISTICS = frozenset(
    {
        "entropy", "normalized_entropy", "effective_keys", "num_visible", "max_weight", "max_logit",
        "argmax", "distance", "first_weight", "last_weight",
    }
)  # fmt: skip
"""Names of what `RowTiles` answers, beside weights at an offset."""


@dataclass(frozen=True, slots=True)
class PartialMask:
    """Keys low … high − 1 of which not every row of some sees all; the others are all seen."""

    low: int
    high: int
    allowed: Bool[Tensor, "#heads rows keys"]


@dataclass(frozen=True)
class TileRequest:
    """What is asked for.

    Args:
        names: Of `TILE_STATISTICS`.
        thresholds: Of `RowTiles.count_above`.
        query_masks: Of `RowTiles.received`.
    """

    names: frozenset[str] = frozenset()
    thresholds: frozenset[float] = frozenset()
    query_masks: tuple[QueryMask, ...] = ()

    def __or__(self, other: "TileRequest") -> "TileRequest":
        """Both."""
        return TileRequest(
            self.names | other.names,
            self.thresholds | other.thresholds,
            self.query_masks + other.query_masks,
        )

    @property
    def needs_second_pass(self) -> bool:
        """Return True if the sums of all rows have to be known first."""
        return bool(self.thresholds or self.query_masks)


@runtime_checkable
class TiledScores(Protocol):
    """s = cap(scale · q kᵀ) of one head of one batch row, and which of them a query sees."""

    def key_range(self, start: int, stop: int) -> tuple[int, int]:
        """The keys that some query of these rows may see: the first, and one past the last."""

    def partial_masks(self, rows: tuple[int, int], keys: tuple[int, int]) -> Sequence[PartialMask]:
        """Where among these keys not every query of these rows sees every key."""

    def write(
        self, rows: tuple[int, int], keys: tuple[int, int], out: Float[Tensor, "rows keys"]
    ) -> None:
        """Write s / log 2 into `out`, of hidden keys too."""

    def of_pairs(
        self, start: int, stop: int, keys: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, " rows"], Bool[Tensor, " rows"]]:
        """The score s of each of these queries with a key of its own, and whether it is seen."""


@dataclass
class _Rows:
    """What a few queries of one head hold while the keys go by."""

    maximum: Tensor
    total: Tensor
    gaps: Tensor
    distances: Tensor
    best: Tensor
    count: Tensor

    @classmethod
    def empty(cls, rows: int, dtype: torch.dtype) -> "_Rows":
        zeros = torch.zeros((4, rows), dtype=dtype)
        maximum = torch.full((rows,), -torch.inf, dtype=dtype)
        best = torch.full((rows,), -1)
        return cls(maximum, zeros[0], zeros[1], zeros[2], best, zeros[3])


class _Room:
    """Memory of one thread for a tile of scores and the weights of some queries.

    Args:
        size: The weights that are held at the same time.
    """

    def __init__(self, size: int, dtype: torch.dtype) -> None:
        self._scores, self._weights = (
            torch.empty(_ROWS * _KEYS, dtype=dtype),
            torch.empty(size, dtype=dtype),
        )
        self.places = torch.arange(_KEYS, dtype=dtype)

    def scores(self, rows: int, keys: int) -> Float[Tensor, "rows keys"]:
        """A tile to write into."""
        return self._scores[: rows * keys].view(rows, keys)

    def weights(self, rows: int, keys: int, start: int) -> Float[Tensor, "rows keys"]:
        """A tile to write into, behind others of `start` keys."""
        return self._weights[rows * start : rows * (start + keys)].view(rows, keys)


class InfiniteScoreError(Exception):
    """A score is no number, or infinite: blocks say what the weights are then."""


class RowTiles:
    """Statistics of some queries of one map, each as a tensor on the CPU.

    Args:
        shape: (batch, heads, queries, keys) of the map.
        rows: The queries: the first, and one past the last.
        offset: The position of the first query of the map, counted as keys are.
        scores_of: The scores of a batch row and a head; called once by each thread.
        ends: The first and the last token of a batch row.
        request: What it will be asked for.

    Raises:
        InfiniteScoreError: For a score that is no finite number.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        rows: tuple[int, int],
        offset: int,
        dtype: torch.dtype,
        scores_of: Callable[[int, int], TiledScores],
        ends: Callable[[int], tuple[int, int]],
        request: TileRequest,
    ) -> None:
        batch, heads, _, num_keys = shape
        self.start, self.stop = rows
        self._offset, self.dtype, self._num_keys = offset, dtype, num_keys
        self._scores_of, self._ends, self._request = scores_of, ends, request
        self._shape = batch, heads, self.stop - self.start
        self.max_logit, self.num_visible = self._new(-math.inf), self._new()
        self.max_weight, self.entropy, self.distance = self._new(), self._new(), self._new()
        self.argmax = self._new(-1, torch.int64)
        self._counts = {threshold: self._new() for threshold in request.thresholds}
        self._lock = threading.Lock()
        self._received: dict[int, list[Tensor]] = {}  # of each thread, for each query mask
        run_threads(self._work)

    def weight_on(self, end: int) -> Float[Tensor, "batch heads queries"]:
        """The weight of the first token of each batch row (`end` = 0), or of the last (1)."""
        keys = torch.tensor([self._ends(batch)[end] for batch in range(self._shape[0])])
        return self._weights_of(keys[:, None].expand(-1, self._shape[2]))

    def weight_at(self, offset: int) -> Float[Tensor, "batch heads queries"]:
        """The weight of the key at i + offset."""
        first = self._offset + self.start + offset
        keys = torch.arange(first, first + self._shape[2])
        return self._weights_of(keys.expand(self._shape[0], -1))

    def count_above(self, threshold: float) -> Float[Tensor, "batch heads queries"]:
        """How many weights are greater than `threshold`, one of those that were named."""
        return self._counts[threshold]

    def received(self, query_mask: QueryMask) -> Float[Tensor, "batch heads keys"]:
        """Σ_i w_ij over the queries that count, by one of the masks that were named."""
        number = next(n for n, one in enumerate(self._request.query_masks) if one is query_mask)
        sums = torch.zeros((*self._shape[:2], self._num_keys), dtype=torch.float64)
        for _, of_thread in sorted(self._received.items()):  # sums depend on their order
            sums += of_thread[number]
        return sums

    def _weights_of(self, keys: Int[Tensor, "batch queries"]) -> Float[Tensor, "..."]:
        """The weight that each query has for a key of its own; 0 for a key that is none."""
        weights = self._new()
        is_key = (keys >= 0) & (keys < self._num_keys)
        for batch in range(self._shape[0]):
            for head in range(self._shape[1]):
                scores, seen = self._scores_of(batch, head).of_pairs(
                    self.start, self.stop, torch.where(is_key[batch], keys[batch], 0)
                )
                shares = (scores - self.max_logit[batch, head]).exp() * self.max_weight[batch, head]
                weights[batch, head] = torch.where(seen & is_key[batch], shares, 0.0)
        return weights

    # Whatever mode the caller's thread is in, every thread writes to these.
    @torch.inference_mode(False)
    def _new(self, value: int | float = 0, dtype: torch.dtype | None = None) -> Tensor:
        return torch.full(self._shape, value, dtype=dtype or self.dtype)

    def _work(self, number: int, count: int, stop: threading.Event) -> None:
        torch.set_grad_enabled(False)  # of this thread, which ends here
        keys = self._num_keys if self._request.needs_second_pass else _KEYS
        rows = min(max(_AT_ONCE // count // keys, _LEAST_ROWS), _ROWS)
        room = _Room(rows * max(keys, _KEYS), self.dtype)
        sums = [
            torch.zeros((*self._shape[:2], self._num_keys), dtype=torch.float64)
            for _ in self._request.query_masks
        ]
        with self._lock:
            self._received[number] = sums
        place, scores = (-1, -1), None
        for batch, head, start, end in islice(self._parts(rows), number, None, count):
            if stop.is_set():
                return
            if scores is None or place != (batch, head):
                place, scores = (batch, head), self._scores_of(batch, head)
            self._read(room, scores, (batch, head), (start, end), sums)

    def _parts(self, rows: int) -> Iterator[tuple[int, int, int, int]]:
        for batch in range(self._shape[0]):
            for head in range(self._shape[1]):
                for start in range(self.start, self.stop, rows):
                    yield batch, head, start, min(start + rows, self.stop)

    def _read(
        self, room: _Room, scores: TiledScores, place: tuple[int, int], rows: tuple[int, int],
        sums: Sequence[Tensor],
    ) -> None:  # fmt: skip
        low, high = scores.key_range(*rows)
        held = _Rows.empty(rows[1] - rows[0], self.dtype)
        second_pass = []
        for key in range(low, high, _KEYS):
            keys = key, min(key + _KEYS, high)
            start = key - low if self._request.needs_second_pass else 0
            weights = room.weights(rows[1] - rows[0], keys[1] - key, start)
            shift = self._first_pass(room, scores, rows, keys, held, weights)
            second_pass.append((keys, weights, shift))
        has_visible = held.total > 0
        # NaN is no number above 0, and a visible key of a finite score has a share.
        as_counted = bool(((held.count > 0) == has_visible).all())
        if not as_counted or not bool((held.total + held.gaps).isfinite().all()):
            raise InfiniteScoreError
        total = torch.where(has_visible, held.total, 1.0)
        at = *place, slice(rows[0] - self.start, rows[1] - self.start)
        self.max_logit[at], self.num_visible[at] = held.maximum * _LOG_2, held.count
        self.max_weight[at] = torch.where(has_visible, 1 / total, 0.0)
        self.entropy[at] = total.log() + held.gaps * _LOG_2 / total
        self.distance[at] = held.distances / total
        self.argmax[at] = held.best
        if self._request.needs_second_pass:
            maximum = torch.where(has_visible, held.maximum, 0.0)
            for keys, weights, shift in second_pass:
                share = torch.exp2(shift - maximum) / total
                self._second_pass(room, place, rows, keys, weights, share, sums)

    def _first_pass(
        self, room: _Room, scores: TiledScores, rows: tuple[int, int], keys: tuple[int, int],
        held: _Rows, weights: Float[Tensor, "rows keys"],
    ) -> Float[Tensor, " rows"]:  # fmt: skip
        """Write 2^{s − m} into `weights`, and return m, the greatest score until here."""
        tile = room.scores(*weights.shape)
        scores.write(rows, keys, tile)
        masks = scores.partial_masks(rows, keys)
        _hide(tile, masks, keys[0], -torch.inf)
        names = self._request.names
        if "argmax" in names:
            greatest = torch.from_numpy(tile.numpy().argmax(-1))  # ten times as quick as torch's
            of_tile = tile.gather(-1, greatest.unsqueeze(-1)).squeeze(-1)
            torch.where(of_tile > held.maximum, greatest + keys[0], held.best, out=held.best)
        else:
            of_tile = tile.amax(-1)
        maximum = torch.maximum(held.maximum, of_tile)
        shift = torch.where(maximum == -torch.inf, 0.0, maximum)
        factor = torch.exp2(held.maximum - shift)
        raised = torch.where(held.maximum == -torch.inf, 0.0, shift - held.maximum)
        torch.exp2(tile.sub_(shift.unsqueeze(-1)), out=weights)
        sums = weights.sum(-1)
        if names & _ENTROPIES:
            _hide(tile, masks, keys[0], 0.0)  # 0 · −∞ is no number
            held.gaps.add_(raised * held.total).mul_(factor).sub_(tile.mul_(weights).sum(-1))
        if "distance" in names:
            held.distances.mul_(factor).add_(self._distances(room, weights, sums, rows, keys))
        held.total.mul_(factor).add_(sums)
        held.maximum = maximum
        held.count += keys[1] - keys[0] - sum(mask.high - mask.low for mask in masks)
        for mask in masks:
            held.count += mask.allowed[0].sum(-1, dtype=held.count.dtype)
        return shift

    def _distances(
        self, room: _Room, weights: Float[Tensor, "rows keys"], sums: Float[Tensor, " rows"],
        rows: tuple[int, int], keys: tuple[int, int],
    ) -> Float[Tensor, " rows"]:  # fmt: skip
        """Σ_j w_j |i − j| of a tile whose weights have these sums."""
        positions = torch.arange(self._offset + rows[0], self._offset + rows[1])
        width = keys[1] - keys[0]
        if keys[1] - 1 <= positions[0]:  # all keys are before all queries
            to_last = room.places[:width].flip(0)
            return torch.mv(weights, to_last) + (positions - (keys[1] - 1)) * sums
        if keys[0] >= positions[-1]:
            return torch.mv(weights, room.places[:width]) + (keys[0] - positions) * sums
        from_first = (positions - keys[0]).to(self.dtype).unsqueeze(-1)
        apart = torch.sub(from_first, room.places[:width], out=room.scores(*weights.shape))
        return apart.abs_().mul_(weights).sum(-1)

    def _second_pass(
        self, room: _Room, place: tuple[int, int], rows: tuple[int, int], keys: tuple[int, int],
        weights: Float[Tensor, "rows keys"], share: Float[Tensor, " rows"], sums: Sequence[Tensor],
    ) -> None:  # fmt: skip
        """Add a tile to what needs all of its rows: its weights times `share` sum to 1 in a row."""
        batch, head = place
        for threshold, counts in self._counts.items():
            least = (threshold / share).unsqueeze(-1)  # ∞ where nothing is left of any weight
            above = torch.gt(weights, least, out=room.scores(*weights.shape))
            # As floats: to sum bools takes six times as long.
            counts[batch, head, rows[0] - self.start : rows[1] - self.start] += above.sum(-1)
        for mask, received in zip(self._request.query_masks, sums, strict=True):
            counted = share if mask is None else share * mask[batch, slice(*rows)]
            received[batch, head, slice(*keys)] += counted @ weights


def _hide(
    tile: Float[Tensor, "rows keys"], masks: Sequence[PartialMask], low: int, value: float
) -> None:
    for mask in masks:
        tile[:, mask.low - low : mask.high - low].masked_fill_(~mask.allowed[0], value)
