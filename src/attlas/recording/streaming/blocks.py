"""The blocks of a reading, one after the other in the same memory."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from attlas.recording.streaming.block import Block, Fringe

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
