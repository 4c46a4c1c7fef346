"""What is counted of the heads of one reading, in one pass over its blocks."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.analysis.habits.aims import Aim
from attlas.analysis.habits.role import ROLES
from attlas.analysis.habits.roles_table import Tally, empty_tally
from attlas.recording import Reading
from attlas.recording.streaming.block import Block
from attlas.recording.streaming.gathering import Gathering, gather
from attlas.recording.streaming.rows import argmax

_ONE_PLACE = 1e-6  # a variance: a thousandth of the axis, and what float32 makes of none


def tallied(
    reading: Reading,
    aims: Mapping[str, Aim],
    asking: Bool[Tensor, "batch queries"],
    *,
    diagonals: bool,
) -> Tally:
    """The sums of one reading over the queries that count.

    aims: by the names of their roles; asking: the queries of real tokens; diagonals: whether to ask
    for the direction of the whole map, too.
    """
    gatherings: dict[str, Gathering] = {"aimed": _Aimed(reading, aims, asking)}
    first = reading.position
    if first is not None:
        gatherings["offsets"] = _Offsets(reading, asking, first)
    if diagonals:
        gatherings["diagonal"] = Slope(reading, asking)
    found: dict[str, Any] = gather(reading, gatherings)
    sums = empty_tally(reading.shape[1]).sums
    sums[..., [ROLES.index(name) for name in aims]] = found["aimed"]
    offsets, low = empty_tally(reading.shape[1]).offsets, 0
    if first is not None:
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


def choosing(block: Block, asking: Bool[Tensor, "batch queries"]) -> Bool[Tensor, "heads rows"]:
    """The queries of a block that count: of a real token, and with more than one slot to choose of.

    Who sees a single slot gives it everything, whatever the head has learnt.
    """
    here = asking[block.batch, block.start : block.stop]
    return here & (block.visible > 1) & block.sees


class _Aimed(Gathering):
    """Sums for each head and aim: of the score, of its chance, and of the queries that count."""

    def __init__(
        self, reading: Reading, aims: Mapping[str, Aim], asking: Bool[Tensor, "batch queries"]
    ) -> None:
        self._aims, self._asking = tuple(aims.values()), asking
        self._sums = torch.zeros((3, reading.shape[1], len(aims)), dtype=torch.float64)

    def take(self, block: Block) -> None:
        if block.high == block.low:
            return  # no slot is seen by any of these queries
        device = block.weights.device
        first = 0 if block.first is None else block.first  # where aims ask nothing of places
        query = first + torch.arange(block.stop - block.start, device=device)
        slot = torch.arange(block.low, block.high, device=device)
        choice, seen = choosing(block, self._asking), block.seen
        shape = block.weights.shape
        for place, aim in enumerate(self._aims):
            here = choice & aim.exists(block.batch, query)
            aimed = aim(block.batch, query, slot).expand(shape[1:])
            even = (aimed & seen).sum(-1) / block.visible.clamp(min=1)
            if aim.by_peak:
                best = block.greatest.unsqueeze(-1)
                score = aimed.expand(shape).gather(-1, best).squeeze(-1).to(even.dtype)
            else:
                weights = aimed.to(block.weights.dtype)
                score = torch.linalg.vecdot(block.weights, weights)
            sums = torch.stack([(part * here).sum(-1) for part in (score, even, here.to(even))])
            self._sums[:, block.heads, place] += sums.cpu().to(torch.float64)

    @property
    def result(self) -> Float[Tensor, "3 heads aims"]:
        return self._sums


class _Offsets(Gathering):
    """How many queries have their greatest weight at each offset, and the sum of their chances."""

    def __init__(self, reading: Reading, asking: Bool[Tensor, "batch queries"], first: int) -> None:
        _, heads, queries, slots = reading.shape
        self._low, self._asking = -(first + queries - 1), asking
        span = max(0, slots - first - self._low)
        self._counts = torch.zeros((heads, span), dtype=torch.long)
        self._even = torch.zeros(heads, dtype=torch.float64)

    def take(self, block: Block) -> None:
        choice, best = choosing(block, self._asking), argmax(block)
        place = block.position + torch.arange(block.stop - block.start, device=best.device)
        column = (best - place - self._low).clamp(min=0)
        counts = self._counts[block.heads]  # a view
        counts.scatter_add_(1, column.cpu(), choice.to(torch.long).cpu())
        even = (choice / block.visible.clamp(min=1)).sum(-1)
        self._even[block.heads] += even.cpu().to(torch.float64)

    @property
    def result(self) -> tuple[Int[Tensor, "heads span"], int, Float[Tensor, " heads"]]:
        return self._counts, self._low, self._even


class Slope(Gathering):
    """Pearson's ρ of query and slot, the map taken as what is probable of both together.

    ρ = (Σ w ij − n ī j̄) / (n σ_i σ_j) over the n queries that count, each with weights that are
    made to sum to 1 (a sink takes a part away); 1 for a diagonal that
    rises evenly, −1 for an anti-diagonal. 0 where all queries look at one place; the count is 0
    where there is a single query. Beside it the ρ of an even gaze at all that is seen, which is not
    0 where that moves from query to query, as under a causal mask.
    """

    def __init__(self, reading: Reading, asking: Bool[Tensor, "batch queries"]) -> None:
        batch, heads, self._queries, self._slots = reading.shape
        self._asking = asking
        self._sums = torch.zeros((9, batch, heads), dtype=torch.float64)

    def take(self, block: Block) -> None:
        if block.high == block.low:
            return
        device = block.weights.device
        choice = choosing(block, self._asking).to(torch.float64).cpu()
        slot = torch.arange(block.low, block.high, device=device) / self._slots
        moments = torch.stack((slot, slot * slot, torch.ones_like(slot)), -1)
        moments = moments.to(block.weights.dtype)
        visible = block.visible.clamp(min=1).unsqueeze(-1)
        even = block.seen.to(moments.dtype) @ moments[:, :2] / visible
        own = block.weights @ moments
        whole = own[..., 2:]
        own = own[..., :2] / torch.where(whole == 0, 1.0, whole)
        both = torch.stack((own, even.expand_as(own))).cpu().to(torch.float64)
        (mean, square), (even_mean, even_square) = (part.unbind(-1) for part in both)
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
        query, query_2, *slots = (part / count.clamp(min=1) for part in sums)
        slope, even = (_slope(query, query_2, *slots[k : k + 3]) for k in (0, 3))
        return slope, even, torch.where(count > 1, count, 0.0)


def _slope(
    query: Float[Tensor, "batch heads"],
    query_2: Float[Tensor, "batch heads"],
    slot: Float[Tensor, "batch heads"],
    slot_2: Float[Tensor, "batch heads"],
    both: Float[Tensor, "batch heads"],
) -> Float[Tensor, "batch heads"]:
    """ρ of the means of i, i², j, j² and ij."""
    of_query, of_slot = query_2 - query**2, slot_2 - slot**2
    spread = (of_query.clamp(min=0) * of_slot.clamp(min=0)).sqrt()
    still = (of_slot < _ONE_PLACE) | (spread <= 0)
    slope = torch.where(still, 0.0, (both - query * slot) / torch.where(still, 1.0, spread))
    return slope.clamp(-1.0, 1.0)  # float32 may have gone a little beyond
