"""The blocks of a reading, one after the other in the same memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError

# A few rows of some maps, as the statistics take them.


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


AT_ONCE = 1 << 22
"""Weights that a block holds, unless a few rows have more: fewer are not worth the calls."""

Cut = tuple[slice, int, int]

_LEAST_ROWS = 16
_MOST_ROWS = 256


@runtime_checkable
class BlockSource(Protocol):
    """What can be gone through in blocks: a map of (batch, heads, queries, slots) weights."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, slots)."""

    @property
    def position(self) -> int | None:
        """Where the first query stands, counted as slots are; None = nobody knows."""

    @property
    def device(self) -> torch.device:
        """Where its numbers are."""

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may ask for blocks at the same time."""

    @property
    def of_softmax(self) -> bool:
        """Whether the scores of its blocks are those that the softmax was taken of."""

    def at(self, row: int) -> "BlockSource":
        """The map of one batch row."""

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        """The blocks of a map of one batch row, which has this number among all rows."""


def blocks_of(
    reading: BlockSource,
    *,
    within: tuple[int, int] | None = None,
    at_once: int = AT_ONCE,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Block]:
    """Every row of every map once; a block is good until the next one is asked for.

    within: the rows that matter, first and one past the last; None = all. share: (n, of): of each
    `of` blocks only the one with number n.
    """
    within = (0, reading.shape[2]) if within is None else within
    every = share[0], None, share[1]
    for batch in range(reading.shape[0]):
        row = reading.at(batch)
        yield from row.iter_blocks(batch, islice(_cuts(row, within, at_once), *every))


def _cuts(reading: BlockSource, within: tuple[int, int], at_once: int) -> Iterator[Cut]:
    """Heads, first row and the one after the last of each block."""
    _, heads, _, slots = reading.shape
    queries = within[1] - within[0]
    rows = min(max(_LEAST_ROWS, at_once // max(1, slots)), _MOST_ROWS, max(1, queries))
    together = min(max(1, at_once // max(1, rows * slots)), max(1, heads))
    for head in range(0, heads, together):
        for start in range(within[0], within[1], rows):
            yield slice(head, min(head + together, heads)), start, min(start + rows, within[1])


def blocks_of_weights(
    row: BlockSource,
    weights_of: Callable[[int, int], Tensor],
    seen_of: Callable[[int, int], Tensor] | None,
    batch: int,
    cuts: Iterable[Cut],
) -> Iterator[Block]:
    """Blocks of a map of one batch row that is asked for its weights.

    weights_of, seen_of: the weights of some rows, (1, heads, rows, slots), and which slots these
    rows may see; without the latter, all of them.
    """
    slots = row.shape[3]
    ends = cache(partial(ends_of, row, seen_of)) if seen_of else lambda: (0, slots - 1)
    for heads, start, stop in cuts:
        weights = weights_of(start, stop)[0, heads]
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        fringes: tuple[Fringe, ...] = ()
        if seen_of and slots:
            seen = seen_of(start, stop)[0]
            fringes = (Fringe(0, slots, seen[heads] if seen.shape[0] > 1 else seen),)
        scores = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        first = None if row.position is None else row.position + start
        place = batch, heads, start, stop, 0, slots, first
        numbers = scores, weights, torch.empty_like(weights)
        yield Block(*place, *numbers, fringes, (weights != 0).any(-1), ends)


def ends_of(row: BlockSource, *seen_by: Callable[[int, int], Tensor]) -> tuple[int, int]:
    """The first and the last slot that some query sees, by the first of these by which any does."""
    return next((found for seen in seen_by if (found := _span(row, seen))), (0, -1))


def _span(row: BlockSource, seen: Callable[[int, int], Tensor]) -> tuple[int, int] | None:
    """The first and the last slot that some query sees; None where nobody sees any."""
    _, _, queries, slots = row.shape
    step = max(1, AT_ONCE // max(1, slots))
    some = torch.zeros(slots, dtype=torch.bool, device="cpu")
    for start in range(0, queries, step):
        some |= seen(start, min(start + step, queries))[0].flatten(0, 1).any(0).cpu()
    places = some.nonzero().flatten()
    return (int(places[0]), int(places[-1])) if len(places) else None
