"""An attention map that holds queries, keys and mask, from which weights are computed."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas._hardware import whole_products
from attlas.patterns import Both, Causal, Everywhere, Pattern, Window, everywhere
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.blocks import Block, Cut, ends_of
from attlas.recording.maps.row_kernels import MaskedScores, RowKernels, kernels_of, marked_band_of
from attlas.recording.maps.row_tiles import InfiniteScoreError, PartialMask, RowTiles, TileRequest

NOTHING = 800.0
"""Of a key whose score is so much below another nothing is left: e⁻⁸⁰⁰ is 0 in every precision."""

_ROUNDED = 1.01  # as much as half precision may add to a score
_AT_ONCE = 1 << 22  # pairs that are looked at together
_FAR = 9e3  # beyond any bias that is meant to weigh


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FactoredAttentionMap(AttentionMap):
    """softmax(cap(scale · q kᵀ) + bias) over the tokens that the pattern allows.

    Never held whole: memory O((queries + keys) × width). Any block of weights is computed on
    demand, in float32 or better, also if the model computes in half precision. Heads that share
    keys (grouped-query attention) are heads // num_kv_heads to a key head, in order.

    A query that sees nothing has zeros for weights. If a bias hides all keys by a finite number,
    such as the least float32, the query looks at all of them, as in the model.

    Args:
        scale: The factor of the scores.
        pattern: Which positions may be seen.
        query_offset: The position of the first query, counted as keys are; None = unknown, which
            only a pattern that looks everywhere allows.
        token_mask: True = a token; None = no padding.
        bias: Numbers that are added to the scores (Shaw et al., 2018; T5; ALiBi); or a bool mask
            (True = may look) if no pattern describes it.
        softcap: c in cap(s) = c · tanh(s / c), Gemma 2, 2024; None = no cap.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    keys: Float[Tensor, "batch kv_heads keys head_dim"]
    scale: float
    pattern: Pattern
    query_offset: int | None
    token_mask: Bool[Tensor, "batch keys"] | None = None
    bias: Shaped[Tensor, "#batch #heads #queries #keys"] | None = None
    softcap: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.keys.shape[2]

    @property
    def position(self) -> int | None:
        return self.query_offset

    @property
    def pattern_offset(self) -> int:
        """Where the pattern counts queries from: anywhere, if it asks nothing of their places."""
        return 0 if self.query_offset is None else self.query_offset

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        self._checked(start, stop)
        hidden = ~self._allowed(start, stop)
        scores = self.scores(start, stop).masked_fill(hidden, -torch.inf)
        empty = (scores == -torch.inf).all(-1, keepdim=True)
        return torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(hidden | empty, 0.0)

    def scores(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """What the softmax is taken of, in float32 or better, of hidden keys too."""
        batch, heads, _, num_keys = self.shape
        num_kv_heads, head_dim = self.keys.shape[1], self.keys.shape[3]
        rows = heads // num_kv_heads * (stop - start)
        rows_query = self.query[:, :, start:stop].reshape(batch, num_kv_heads, rows, head_dim)
        dtype = torch.promote_types(rows_query.dtype, torch.float32)
        with torch.autocast(rows_query.device.type, enabled=False), whole_products(self.device):
            scores = rows_query.to(dtype) @ self.keys.to(dtype).transpose(-1, -2)
        scores = scores.reshape(batch, heads, stop - start, num_keys) * self.scale
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        bias = self._bias_of(start, stop)
        return scores if bias is None or bias.dtype == torch.bool else scores + bias

    def allowed_rows(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        self._checked(start, stop)
        shown = self.shown(start, stop)
        bias = self._bias_of(start, stop)
        if bias is None or bias.dtype == torch.bool:
            return shown
        drowned = ~shown.any(-1, keepdim=True) & (bias > -torch.inf)
        return shown | (self._allowed(start, stop) & drowned)

    def shown(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        """What is seen, but for rows that a bias hides whole by the least number of its type: they
        look at all keys alike, as rows of padding do.

        A finite number hides a key where it is so low that no scores make up for it.
        """
        allowed = self._allowed(start, stop)
        bias = self._bias_of(start, stop)
        if bias is None or bias.dtype == torch.bool or not allowed.shape[-1]:
            return allowed
        shown = allowed & (bias > -torch.inf)
        numbers = bias.to(torch.promote_types(bias.dtype, torch.float32))
        maximum = numbers.masked_fill(~shown, -torch.inf).amax(-1, keepdim=True)
        shown = shown & (maximum > _hidden_whole(bias.dtype))
        low = maximum - numbers > _FAR
        if not bool((shown & low).any()):
            return shown
        threshold = max_score_gap(self.query, self.keys, self.scale, self.softcap) + NOTHING
        return shown & ~(low & (maximum - numbers > threshold))

    @property
    def causal(self) -> bool | None:
        if self.query_offset is None:
            return None
        bound = self.pattern.bound
        if bound.ahead == 0 and not bound.marks:
            return True
        queries, num_keys = self.shape[2:]
        step = max(1, _AT_ONCE // max(1, num_keys))
        for start in range(0, queries, step):
            stop = min(start + step, queries)
            future_keys = self.shown(start, stop).triu(self.query_offset + start + 1)
            if not bool(future_keys.any()):
                continue
            # What a bias has put low, but not below the reach of all scores, may be nothing here.
            if self.bias is None or bool(
                (self.rows(start, stop) > 0).logical_and(future_keys).any()
            ):
                return False
        return True

    def select(self, rows: Int[Tensor, " chosen"]) -> "FactoredAttentionMap":
        bias = self.bias
        if bias is not None and bias.shape[0] > 1:
            bias = bias[rows]
        token_mask = None if self.token_mask is None else self.token_mask[rows]
        return replace(
            self, query=self.query[rows], keys=self.keys[rows], token_mask=token_mask, bias=bias
        )

    def select_heads(self, heads: Int[Tensor, " chosen"]) -> "FactoredAttentionMap":
        bias = self.bias
        if bias is not None and bias.shape[1] > 1:
            bias = bias[:, heads]
        keys = self.keys[:, heads // (self.shape[1] // self.keys.shape[1])]
        return replace(self, query=self.query[:, heads], keys=keys, bias=bias)

    def at(self, row: int) -> "FactoredAttentionMap":
        rows = slice(row, row + 1)
        bias = self.bias
        if bias is not None and bias.shape[0] > 1:
            bias = bias[rows]
        token_mask = None if self.token_mask is None else self.token_mask[rows]
        return replace(
            self, query=self.query[rows], keys=self.keys[rows], token_mask=token_mask, bias=bias
        )

    def detached_copy(self) -> "FactoredAttentionMap":
        query, keys = self.query.detach().clone(), self.keys.detach().clone()
        return replace(self, query=query, keys=keys)

    @property
    def device(self) -> torch.device:
        return self.query.device

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self.query.dtype, torch.float32)

    @property
    def thread_safe(self) -> bool:
        return True

    @property
    def of_softmax(self) -> bool:
        return True

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        return _of_factored(self, batch, list(cuts))

    def row_kernels(self, rows: tuple[int, int], names: frozenset[str]) -> RowKernels | None:
        band = marked_band_of(self.pattern)
        if band is None:
            return None
        scores = MaskedScores(
            self.query.detach(), self.keys.detach(), self.scale, band, self.pattern_offset,
            self.token_mask, None if self.bias is None else self.bias.detach(), self.softcap,
            cache(lambda batch: _ends_of(self.at(batch))),
        )  # fmt: skip
        return kernels_of(scores, rows, names)

    def row_tiles(self, rows: tuple[int, int], request: TileRequest) -> RowTiles | None:
        if self.device.type != "cpu" or self.bias is not None or rows[0] >= rows[1]:
            return None  # which keys a bias hides, blocks know
        row_of = cache(self.at)
        try:
            return RowTiles(
                self.shape, rows, self.pattern_offset, self.dtype,
                lambda batch, head: _HeadScores(row_of(batch), head),
                cache(lambda batch: _ends_of(row_of(batch))), request,
            )  # fmt: skip
        except InfiniteScoreError:
            return None

    def _allowed(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        queries, num_keys = stop - start, self.shape[3]
        allowed = self.pattern.mask(
            queries, num_keys, self.pattern_offset + start, self.query.device
        )
        allowed = allowed[None, None]
        if self.token_mask is not None:
            allowed = allowed & self.token_mask[:, None, None, :]
        bias = self._bias_of(start, stop)
        return allowed & bias if bias is not None and bias.dtype == torch.bool else allowed

    def _bias_of(self, start: int, stop: int) -> Shaped[Tensor, "#batch #heads #rows #keys"] | None:
        if self.bias is None or self.bias.shape[2] == 1:
            return self.bias
        return self.bias[:, :, start:stop]


def without_position(attention_map: AttentionMap) -> AttentionMap:
    """The same with unknown positions of its queries: with its pattern as a mask."""
    if not isinstance(attention_map, FactoredAttentionMap) or attention_map.query_offset is None:
        return attention_map
    queries, num_keys = attention_map.shape[2:]
    shown = attention_map.pattern.mask(
        queries, num_keys, attention_map.query_offset, attention_map.device
    )[None, None]
    bias = attention_map.bias
    if bias is not None:
        is_bool = bias.dtype == torch.bool
        shown = shown & bias if is_bool else torch.where(shown, bias, -torch.inf)
    return replace(attention_map, pattern=everywhere, query_offset=None, bias=shown)


def _hidden_whole(dtype: torch.dtype) -> float:
    """A row that a bias puts as low as this is meant as hidden: by the least number of its type,
    which a model may have divided by √width since (CodeGen). In half precision only by that number
    itself: its least number is not far from those that models add."""
    return torch.finfo(dtype).min / (2 if dtype == torch.float16 else 64)


def max_score_gap(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    scale: float,
    softcap: float | None = None,
) -> float:
    """2 · max ‖q‖ · max ‖k‖ · |scale|, of the head where that is the most: two scores of a query
    differ by no more, however they are rounded; nor by more than 2 · softcap."""
    if not query.numel() or not keys.numel():
        return 0.0
    batch, num_kv_heads = keys.shape[:2]
    longest = _longest(query).reshape(batch, num_kv_heads, -1).amax(-1) * _longest(keys)
    max_gap = float(longest.max()) * abs(scale) * _ROUNDED
    return 2 * (max_gap if softcap is None or not max_gap > softcap else softcap)


def may_differ_by(
    gap: float,
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    scale: float,
    softcap: float | None = None,
) -> bool:
    """Return True if a key whose bias is so much below another's may have a weight beside it."""
    # A looser bound first, which takes less time: ‖q‖ ≤ √width · max |qᵢ|.
    loose = gap - NOTHING
    if query.numel() and keys.numel():
        maximum = (
            float(torch.linalg.vector_norm(tensor.detach(), torch.inf)) for tensor in (query, keys)
        )
        loose -= 2 * math.prod(maximum) * query.shape[-1] * abs(scale) * _ROUNDED
    return not loose > 0 and not gap - NOTHING > max_score_gap(query, keys, scale, softcap)


def _longest(vectors: Float[Tensor, "batch heads places head_dim"]) -> Float[Tensor, "batch heads"]:
    dtype = torch.promote_types(vectors.dtype, torch.float32)
    lengths: Tensor = torch.linalg.vector_norm(vectors.detach(), dim=-1, dtype=dtype)
    return lengths.amax(-1)


def _stretch_of(row: FactoredAttentionMap) -> tuple[int, int, bool]:
    """The first token, the one after the last, and whether there is padding in between."""
    if row.token_mask is None:
        return 0, row.shape[3], False
    positions = row.token_mask[0].nonzero().flatten()
    if not len(positions):
        return 0, 0, False
    low, high = int(positions[0]), int(positions[-1]) + 1
    return low, high, len(positions) < high - low


def _reach_of(pattern: Pattern, first: int, last: int, low: int, high: int) -> tuple[int, int]:
    """Of the keys low … high − 1 those that queries at first … last can see at all."""
    bound = pattern.bound
    if bound.marks:
        return low, high
    if bound.back is not None:
        low = min(max(first - bound.back, low), high)
    if bound.ahead is not None:
        high = max(min(last + bound.ahead + 1, high), low)
    return low, high


def _partial_masks_of(
    row: FactoredAttentionMap,
    heads: slice,
    rows: tuple[int, int],
    key_range: tuple[int, int],
    *,
    holes: bool,
) -> tuple[PartialMask, ...]:
    """Where not every query of one batch row sees every key.

    Args:
        holes: Whether there is padding among these keys.
    """
    (start, stop), (low, high) = rows, key_range
    from_here = up_to = low
    if row.bias is None and not holes:
        from_here, up_to = _allowed_by_all(
            row.pattern, row.pattern_offset + start, row.pattern_offset + stop - 1
        )
        from_here, up_to = max(low, min(from_here, high)), max(low, min(up_to, high))
    sides = ((low, from_here), (up_to, high)) if from_here < up_to else ((low, high),)
    return tuple(
        PartialMask(*side, _allowed_in(row, heads, rows, side))
        for side in sides
        if side[0] < side[1]
    )


def _allowed_by_all(pattern: Pattern, first: int, last: int) -> tuple[int, int]:
    """A stretch of keys that every query at first … last sees, empty where none is known."""
    all_keys = -(1 << 62), 1 << 62
    if isinstance(pattern, Everywhere):
        return all_keys
    if isinstance(pattern, Causal):
        return all_keys[0], first + 1
    if isinstance(pattern, Window):
        return last - pattern.radius, first + pattern.radius + 1
    if isinstance(pattern, Both):
        left = _allowed_by_all(pattern.left, first, last)
        right = _allowed_by_all(pattern.right, first, last)
        return max(left[0], right[0]), min(left[1], right[1])
    return 0, 0


def _allowed_in(
    row: FactoredAttentionMap, heads: slice, rows: tuple[int, int], key_range: tuple[int, int]
) -> Bool[Tensor, "#heads rows keys"]:
    if row.bias is not None:
        allowed = row.allowed_rows(*rows)[0]
        return (allowed[heads] if allowed.shape[0] > 1 else allowed)[..., slice(*key_range)]
    device = row.query.device
    key = torch.arange(*key_range, device=device)
    query = row.pattern_offset + torch.arange(*rows, device=device).unsqueeze(-1)
    allowed = row.pattern(query, key).expand(len(query), len(key)).unsqueeze(0)
    return allowed if row.token_mask is None else allowed & row.token_mask[0, slice(*key_range)]


class _HeadScores:
    """The scores of one head of one batch row, a tile at a time; the map has no bias."""

    def __init__(self, row: FactoredAttentionMap, head: int) -> None:
        self._row, self._heads = row, slice(head, head + 1)
        self._left, self._right, self._holes = _stretch_of(row)
        self._query = row.query[0, head].detach().to(row.dtype)
        self._keys = row.keys[0, head * row.keys.shape[1] // row.shape[1]].detach().to(row.dtype)
        self._scaled = (0, 0), self._query  # the queries of the latest rows, scaled

    def key_range(self, start: int, stop: int) -> tuple[int, int]:
        """The keys that some query of these rows may see."""
        first = self._row.pattern_offset + start
        last = self._row.pattern_offset + stop - 1
        return _reach_of(self._row.pattern, first, last, self._left, self._right)

    def partial_masks(self, rows: tuple[int, int], keys: tuple[int, int]) -> Sequence[PartialMask]:
        """Where among these keys not every query of these rows sees every key."""
        return _partial_masks_of(self._row, self._heads, rows, keys, holes=self._holes)

    def write(
        self, rows: tuple[int, int], keys: tuple[int, int], out: Float[Tensor, "rows keys"]
    ) -> None:
        """Write s / log 2 into `out`."""
        softcap = self._row.softcap
        if self._scaled[0] != rows:
            scale = self._row.scale / (math.log(2) if softcap is None else softcap)
            self._scaled = rows, self._query[slice(*rows)] * scale
        torch.mm(self._scaled[1], self._keys[slice(*keys)].mT, out=out)
        if softcap is not None:
            out.tanh_().mul_(softcap / math.log(2))

    def of_pairs(
        self, start: int, stop: int, keys: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, " rows"], Bool[Tensor, " rows"]]:
        """The score s of each of these queries with a key of its own, and whether it is seen."""
        row = self._row
        scores = torch.linalg.vecdot(self._query[start:stop] * row.scale, self._keys[keys])
        if row.softcap is not None:
            scores = torch.tanh(scores / row.softcap) * row.softcap
        seen = row.pattern(row.pattern_offset + torch.arange(start, stop), keys)
        return scores, seen if row.token_mask is None else seen & row.token_mask[0, keys]


def _of_factored(row: FactoredAttentionMap, batch: int, cuts: Sequence[Cut]) -> Iterator[Block]:
    """softmax(q kᵀ), only where the pattern may look."""
    dtype = torch.promote_types(row.query.dtype, torch.float32)
    left, right, holes = _stretch_of(row)
    origin = row.pattern_offset
    ends = cache(partial(_ends_of, row))
    # Three rooms for all blocks: what has just been freed is slow to be had again.
    largest = max((_pairs(*cut) * row.shape[3] for cut in cuts), default=0)
    room = row.query.new_empty((3, largest), dtype=dtype)
    ready, keys = slice(0, 0), row.keys
    for heads, start, stop in cuts:
        if ready != heads:
            ready, keys = heads, _keys_of(row, heads).to(dtype).mT
        low, high = _reach_of(row.pattern, origin + start, origin + stop - 1, left, right)
        query = row.query[0, heads, start:stop].to(dtype) * row.scale
        shape = (query.shape[0], stop - start, high - low)
        size = _pairs(heads, start, stop) * (high - low)
        scores, weights, scratch = room[:, :size].view(3, *shape)
        _score(row, heads, query, keys[..., low:high], (start, stop), (low, high), scores)
        partial_masks = _partial_masks_of(row, heads, (start, stop), (low, high), holes=holes)
        _hide(scores, partial_masks, low, -torch.inf)
        sees = _seeing(scores, partial_masks)
        if high > low:
            torch.softmax(scores, -1, out=weights)
        if not bool(sees.all()):
            weights.masked_fill_(~sees.unsqueeze(-1), 0.0)
        _hide(scores, partial_masks, low, 0.0)  # 0 · −∞ is no number
        query_offset = None if row.query_offset is None else row.query_offset + start
        extent = batch, heads, start, stop, low, high, query_offset
        yield Block(*extent, scores, weights, scratch, partial_masks, sees, ends)


def _ends_of(row: FactoredAttentionMap) -> tuple[int, int]:
    """The first and the last token of one batch row that some query sees."""
    if row.bias is not None:
        # Rows of padding may be hidden whole by a finite number, and then look at all keys alike:
        # they do not count, unless there are no others.
        return ends_of(row, row.shown, row.allowed_rows)
    left, right, _ = _stretch_of(row)
    origin = row.pattern_offset
    _, last = _reach_of(row.pattern, origin, origin + row.shape[2] - 1, left, right)
    return _token_ends(row, left, last)


def _token_ends(row: FactoredAttentionMap, left: int, last: int) -> tuple[int, int]:
    """The same where the pattern alone hides: the tokens among `left` … `last` − 1."""
    if row.token_mask is None:
        return left, last - 1
    positions = row.token_mask[0, left:last].nonzero().flatten()
    return (
        (left + int(positions[0]), left + int(positions[-1]))
        if len(positions)
        else (left, left - 1)
    )


def _hide(
    scores: Float[Tensor, "heads rows keys"],
    partial_masks: Sequence[PartialMask],
    low: int,
    value: float,
) -> None:
    for fringe in partial_masks:
        scores[..., fringe.low - low : fringe.high - low].masked_fill_(~fringe.allowed, value)


def _seeing(
    scores: Float[Tensor, "heads rows keys"], partial_masks: Sequence[PartialMask]
) -> Bool[Tensor, "heads rows"]:
    """Which rows see a key at all: every one, where there are keys that all of them see."""
    heads, rows, num_keys = scores.shape
    by_all = num_keys > sum(fringe.high - fringe.low for fringe in partial_masks)
    sees = torch.full((1, rows), by_all, device=scores.device)
    for fringe in () if by_all else partial_masks:
        sees = sees | fringe.allowed.any(-1)
    return sees.expand(heads, rows)


def _score(
    row: FactoredAttentionMap,
    heads: slice,
    query: Float[Tensor, "heads rows head_dim"],
    keys: Float[Tensor, "heads head_dim keys"],
    rows: tuple[int, int],
    num_keys: tuple[int, int],
    out: Float[Tensor, "heads rows keys"],
) -> None:
    """cap(q kᵀ) + bias, written into `out`."""
    with torch.autocast(query.device.type, enabled=False):
        if len(query) == 1:  # the same, and quicker
            torch.mm(query[0], keys[0], out=out[0])
        else:
            torch.bmm(query, keys, out=out)
    if row.softcap is not None:
        out.div_(row.softcap).tanh_().mul_(row.softcap)
    if row.bias is not None and row.bias.dtype != torch.bool:
        bias = row.bias[0]
        bias = bias[heads] if bias.shape[0] > 1 else bias
        bias = bias[:, slice(*rows)] if bias.shape[1] > 1 else bias
        out.add_(bias[..., slice(*num_keys)] if bias.shape[2] > 1 else bias)


def _keys_of(row: FactoredAttentionMap, heads: slice) -> Float[Tensor, "heads keys head_dim"]:
    shared = row.shape[1] // row.keys.shape[1]
    if shared == 1:
        return row.keys[0, heads]
    return row.keys[0, torch.arange(heads.start, heads.stop, device=row.keys.device) // shared]


def _pairs(heads: slice, start: int, stop: int) -> int:
    return int(heads.stop - heads.start) * (stop - start)
