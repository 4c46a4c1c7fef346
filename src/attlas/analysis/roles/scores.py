"""Role scores of one attention map, in one pass over its blocks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.analysis.roles.table import ROLES, Tally, zero_tally
from attlas.errors import AttlasError
from attlas.recording import AttentionMap
from attlas.recording.maps.blocks import Block
from attlas.recording.maps.reductions import Reduction, argmax, reduce_map

# Targets: which keys a query would look at, if its head had a certain role.


@dataclass(frozen=True, slots=True, eq=False)
class RoleTarget(ABC):
    """A set of keys for each query, defined by positions and tokens.

    Args:
        by_max_weight: Whether the score is the share of greatest weights on these keys, instead of
            their weight.
    """

    by_max_weight: bool = field(default=False, kw_only=True)

    @abstractmethod
    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        """Return True if the queries at these positions of text `row` have such a key at all."""

    @abstractmethod
    def __call__(
        self, row: int, query: Int[Tensor, " rows"], key: Int[Tensor, " keys"]
    ) -> Bool[Tensor, "#rows keys"]:
        """Which of these keys it is."""


@dataclass(frozen=True, slots=True, eq=False)
class OffsetTarget(RoleTarget):
    """The key i + by, where it is real."""

    by: int
    token_mask: Bool[Tensor, "batch keys"]

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        num_keys = self.token_mask.shape[1]
        positions = query + self.by
        return (
            (positions >= 0)
            & (positions < num_keys)
            & self.token_mask[row, positions.clamp(0, num_keys - 1)]
        )

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], key: Int[Tensor, " keys"]
    ) -> Bool[Tensor, "#rows keys"]:
        return key == (query + self.by).unsqueeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class NearTarget(RoleTarget):
    """The keys with |i − j| ≤ radius."""

    radius: int

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        return torch.ones_like(query, dtype=torch.bool)

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], key: Int[Tensor, " keys"]
    ) -> Bool[Tensor, "#rows keys"]:
        return (query.unsqueeze(-1) - key).abs() <= self.radius


@dataclass(frozen=True, slots=True, eq=False)
class MarkedTarget(RoleTarget):
    """The same keys of a text for every query: its first one, its separators, its rarest token."""

    marks: Bool[Tensor, "batch keys"]

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        return self.marks[row].any().expand(query.shape)

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], key: Int[Tensor, " keys"]
    ) -> Bool[Tensor, "#rows keys"]:
        return self.marks[row, key].unsqueeze(0)


@dataclass(frozen=True, slots=True, eq=False)
class InductionTarget(RoleTarget):
    """The keys behind earlier occurrences of the query's own token: t_(j−1) = t_i, j ≤ i."""

    tokens: Int[Tensor, "batch keys"]
    token_mask: Bool[Tensor, "batch keys"]
    again: Bool[Tensor, "batch keys"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "again", _occurred_before(self.tokens, self.token_mask))

    def exists(self, row: int, query: Int[Tensor, " rows"]) -> Bool[Tensor, "#rows"]:
        num_keys = self.tokens.shape[1]
        in_range = (query >= 0) & (query < num_keys)
        return in_range & self.again[row, query.clamp(0, num_keys - 1)]

    def __call__(
        self, row: int, query: Int[Tensor, " rows"], key: Int[Tensor, " keys"]
    ) -> Bool[Tensor, "#rows keys"]:
        query_tokens = self.tokens[row, query.clamp(0, self.tokens.shape[1] - 1)].unsqueeze(-1)
        previous_key = (key - 1).clamp(min=0)
        has_previous = (key > 0) & self.token_mask[row, previous_key] & (key <= query.unsqueeze(-1))
        return has_previous & (self.tokens[row, previous_key] == query_tokens)


def first_tokens(token_mask: Bool[Tensor, "batch keys"]) -> Bool[Tensor, "batch keys"]:
    """The first token of each text."""
    return token_mask & (token_mask.cumsum(1) == 1)


def rarest_tokens(
    counts: Shaped[Tensor, "batch keys"], token_mask: Bool[Tensor, "batch keys"]
) -> Bool[Tensor, "batch keys"]:
    """The tokens of the least count in each text, but for counts of infinity."""
    numbers = counts.to(torch.float64).masked_fill(~token_mask, torch.inf)
    return (numbers == numbers.amin(1, keepdim=True)) & (numbers < torch.inf)


def _occurred_before(
    tokens: Int[Tensor, "batch keys"], token_mask: Bool[Tensor, "batch keys"]
) -> Bool[Tensor, "batch keys"]:
    """Return True if the same token stood at an earlier token of the text."""
    # Sort: tokens before padding, then equal tokens together, in the order of the text.
    order = torch.argsort(tokens, dim=1, stable=True)
    order = order.gather(1, torch.argsort(~token_mask.gather(1, order), dim=1, stable=True))
    sorted_tokens, is_token = tokens.gather(1, order), token_mask.gather(1, order)
    repeats = torch.zeros_like(token_mask)
    repeats[:, 1:] = (
        (sorted_tokens[:, 1:] == sorted_tokens[:, :-1]) & is_token[:, 1:] & is_token[:, :-1]
    )
    return torch.zeros_like(token_mask).scatter(1, order, repeats)


# A random text that repeats itself, to find induction heads.


def repeated(
    tokens: Sequence[int] | range | Int[Tensor, " known"],
    *,
    seed: int,
    length: int = 25,
    times: int = 4,
    begin: Sequence[int] = (),
) -> Int[Tensor, " places"]:
    """`begin`, and then `times` times the same `length` tokens, drawn from `tokens` without a copy.

    No token occurs twice within a repeat, so that only an earlier repeat can say what comes next
    (Olsson et al., 2022, whose score is taken of 25 tokens, 4 times). Frequent tokens and special
    ones are best left out of `tokens`. A function of the seed.

    Raises:
        AttlasError: For fewer different tokens than a repeat has, and for a single repeat.
    """
    distinct = torch.unique(torch.as_tensor(tokens))
    if not 1 <= length <= len(distinct):
        raise AttlasError(
            f"a length from 1 to the number of different tokens, {len(distinct):,}",
            f"{length:,}",
            "give more tokens, or ask for a shorter repeat",
        )
    if times < 2:
        raise AttlasError("at least two times the same", str(times), "pass e.g. times=4")
    order = torch.randperm(len(distinct), generator=torch.Generator().manual_seed(seed))
    once = distinct[order[:length]].to(torch.long)
    return torch.cat((torch.tensor(list(begin), dtype=torch.long), once.repeat(times)))


_MIN_VARIANCE = 1e-6  # a variance: a thousandth of the axis, and what float32 makes of none


def count_roles(
    attention_map: AttentionMap,
    targets: Mapping[str, RoleTarget],
    query_mask: Bool[Tensor, "batch queries"],
    *,
    diagonals: bool,
) -> Tally:
    """The sums of one attention map over the queries that count.

    Args:
        targets: By the names of their roles.
        query_mask: The queries of tokens.
        diagonals: Whether to ask for the direction of the whole map, too.
    """
    reductions: dict[str, Reduction] = {"target": _TargetSums(attention_map, targets, query_mask)}
    query_offset = attention_map.position
    if query_offset is not None:
        reductions["offsets"] = _OffsetReduction(attention_map, query_mask, query_offset)
    if diagonals:
        reductions["diagonal"] = SlopeReduction(attention_map, query_mask)
    found: dict[str, Any] = reduce_map(attention_map, reductions)
    sums = zero_tally(attention_map.shape[1]).sums
    sums[..., [ROLES.index(name) for name in targets]] = found["target"]
    offsets, low = zero_tally(attention_map.shape[1]).offsets, 0
    if query_offset is not None:
        offsets, low, even = found["offsets"]
        sums[1, :, ROLES.index("positional")] = even
        sums[2, :, ROLES.index("positional")] = offsets.sum(-1)
    if diagonals:
        slopes, even_slopes, counts = found["diagonal"]
        for name, sign in (("diagonal", 1), ("antidiagonal", -1)):
            sums[0, :, ROLES.index(name)] = sign * (slopes * counts).sum(0)
            sums[1, :, ROLES.index(name)] = sign * (even_slopes * counts).sum(0)
            sums[2, :, ROLES.index(name)] = counts.sum(0)
    return Tally(sums, offsets, low)


def has_choice(
    block: Block, query_mask: Bool[Tensor, "batch queries"]
) -> Bool[Tensor, "heads rows"]:
    """The queries of a block that count: of a token, and with more than one visible key.

    A query with a single key gives it all weight, whatever the head has learned.
    """
    block_queries = query_mask[block.batch, block.start : block.stop]
    return block_queries & (block.num_visible > 1) & block.has_visible


class _TargetSums(Reduction):
    """Sums for each head and target: of the score, of its chance, and of the queries that count."""

    def __init__(
        self,
        attention_map: AttentionMap,
        targets: Mapping[str, RoleTarget],
        query_mask: Bool[Tensor, "batch queries"],
    ) -> None:
        self._targets, self._asking = tuple(targets.values()), query_mask
        self._sums = torch.zeros((3, attention_map.shape[1], len(targets)), dtype=torch.float64)

    def update(self, block: Block) -> None:
        if block.high == block.low:
            return  # no key is seen by any of these queries
        device = block.weights.device
        query_offset = (
            0 if block.query_offset is None else block.query_offset
        )  # where targets ask nothing of places
        query = query_offset + torch.arange(block.stop - block.start, device=device)
        key = torch.arange(block.low, block.high, device=device)
        choice, allowed = has_choice(block, self._asking), block.allowed
        shape = block.weights.shape
        for index, target in enumerate(self._targets):
            is_counted = choice & target.exists(block.batch, query)
            on_target = target(block.batch, query, key).expand(shape[1:])
            even = (on_target & allowed).sum(-1) / block.num_visible.clamp(min=1)
            if target.by_max_weight:
                best = block.greatest.unsqueeze(-1)
                score = on_target.expand(shape).gather(-1, best).squeeze(-1).to(even.dtype)
            else:
                weights = on_target.to(block.weights.dtype)
                score = torch.linalg.vecdot(block.weights, weights)
            sums = torch.stack(
                [(part * is_counted).sum(-1) for part in (score, even, is_counted.to(even))]
            )
            self._sums[:, block.heads, index] += sums.cpu().to(torch.float64)

    @property
    def result(self) -> Float[Tensor, "3 heads targets"]:
        return self._sums


class _OffsetReduction(Reduction):
    """How many queries have their greatest weight at each offset, and the sum of their chances."""

    def __init__(
        self,
        attention_map: AttentionMap,
        query_mask: Bool[Tensor, "batch queries"],
        query_offset: int,
    ) -> None:
        _, heads, queries, num_keys = attention_map.shape
        self._low, self._asking = -(query_offset + queries - 1), query_mask
        span = max(0, num_keys - query_offset - self._low)
        self._counts = torch.zeros((heads, span), dtype=torch.long)
        self._even = torch.zeros(heads, dtype=torch.float64)

    def update(self, block: Block) -> None:
        choice, best = has_choice(block, self._asking), argmax(block)
        positions = block.position + torch.arange(block.stop - block.start, device=best.device)
        column = (best - positions - self._low).clamp(min=0)
        counts = self._counts[block.heads]  # a view
        counts.scatter_add_(1, column.cpu(), choice.to(torch.long).cpu())
        even = (choice / block.num_visible.clamp(min=1)).sum(-1)
        self._even[block.heads] += even.cpu().to(torch.float64)

    @property
    def result(self) -> tuple[Int[Tensor, "heads span"], int, Float[Tensor, " heads"]]:
        return self._counts, self._low, self._even


class SlopeReduction(Reduction):
    """Pearson's ρ of query and key, the map taken as what is probable of both together.

    ρ = (Σ w ij − n ī j̄) / (n σ_i σ_j) over the n queries that count, each with weights normalised
    to sum to 1 (a sink takes a part). 1 for an even diagonal, −1 for an anti-diagonal, 0 if all
    queries look at one key; the count is 0 for a single query. Beside it stands the ρ of uniform
    weights, which is not 0 if the visible keys move from query to query, as under a causal mask.
    """

    def __init__(
        self, attention_map: AttentionMap, query_mask: Bool[Tensor, "batch queries"]
    ) -> None:
        batch, heads, self._queries, self._keys = attention_map.shape
        self._asking = query_mask
        self._sums = torch.zeros((9, batch, heads), dtype=torch.float64)

    def update(self, block: Block) -> None:
        if block.high == block.low:
            return
        device = block.weights.device
        choice = has_choice(block, self._asking).to(torch.float64).cpu()
        key = torch.arange(block.low, block.high, device=device) / self._keys
        moments = torch.stack((key, key * key, torch.ones_like(key)), -1)
        moments = moments.to(block.weights.dtype)
        num_visible = block.num_visible.clamp(min=1).unsqueeze(-1)
        even = block.allowed.to(moments.dtype) @ moments[:, :2] / num_visible
        row_sums = block.weights @ moments
        total = row_sums[..., 2:]
        row_sums = row_sums[..., :2] / torch.where(total == 0, 1.0, total)
        totals = torch.stack((row_sums, even.expand_as(row_sums))).cpu().to(torch.float64)
        (mean, square), (even_mean, even_square) = (part.unbind(-1) for part in totals)
        query = torch.arange(block.start, block.stop, dtype=torch.float64) / self._queries
        terms = [torch.ones_like(mean), query, query * query, mean, square, query * mean]
        terms += [even_mean, even_square, query * even_mean]
        sums = torch.stack([(term * choice).sum(-1) for term in terms])
        self._sums[:, block.batch, block.heads] += sums

    @property
    def result(
        self,
    ) -> tuple[
        Float[Tensor, "batch heads"], Float[Tensor, "batch heads"], Float[Tensor, "batch heads"]
    ]:
        """ρ of each map, ρ of an even gaze there, and how many queries it is of."""
        count, *sums = self._sums
        query, query_2, *keys = (part / count.clamp(min=1) for part in sums)
        slope, even = (_slope(query, query_2, *keys[k : k + 3]) for k in (0, 3))
        return slope, even, torch.where(count > 1, count, 0.0)


def _slope(
    query: Float[Tensor, "batch heads"],
    query_2: Float[Tensor, "batch heads"],
    key: Float[Tensor, "batch heads"],
    key_2: Float[Tensor, "batch heads"],
    moments: Float[Tensor, "batch heads"],
) -> Float[Tensor, "batch heads"]:
    """ρ of the means of i, i², j, j² and ij."""
    of_query, of_key = query_2 - query**2, key_2 - key**2
    scale = (of_query.clamp(min=0) * of_key.clamp(min=0)).sqrt()
    still = (of_key < _MIN_VARIANCE) | (scale <= 0)
    slope = torch.where(still, 0.0, (moments - query * key) / torch.where(still, 1.0, scale))
    return slope.clamp(-1.0, 1.0)  # float32 may have gone a little beyond
