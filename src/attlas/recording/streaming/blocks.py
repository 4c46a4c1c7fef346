"""The blocks of a reading, one after the other in the same memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.recording.dense_reading import DenseReading
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.reading import Reading
from attlas.recording.streaming.block import Block, Fringe
from attlas.recording.streaming.fringe import fringes_of, reach_of, stretch_of

AT_ONCE = 1 << 22
"""Weights that a block holds, unless a few rows have more: fewer are not worth the calls."""

Cut = tuple[slice, int, int]

_LEAST_ROWS = 16
_MOST_ROWS = 256


def blocks_of(
    reading: Reading,
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
        if isinstance(row, FactoredReading):
            yield from _of_factored(row, batch, list(islice(_cuts(row, within, at_once), *every)))
        else:
            yield from _of_weights(row, batch, islice(_cuts(row, within, at_once), *every))


def _cuts(reading: Reading, within: tuple[int, int], at_once: int) -> Iterator[Cut]:
    """Heads, first row and the one after the last of each block."""
    _, heads, _, slots = reading.shape
    queries = within[1] - within[0]
    rows = min(max(_LEAST_ROWS, at_once // max(1, slots)), _MOST_ROWS, max(1, queries))
    together = min(max(1, at_once // max(1, rows * slots)), max(1, heads))
    for head in range(0, heads, together):
        for start in range(within[0], within[1], rows):
            yield slice(head, min(head + together, heads)), start, min(start + rows, within[1])


def _size(heads: slice, start: int, stop: int) -> int:
    return int(heads.stop - heads.start) * (stop - start)


def _of_weights(row: Reading, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
    """Blocks of a reading that is asked for its weights."""
    slots = row.shape[3]
    known = not (isinstance(row, DenseReading) and row.allowed is None)
    ends = cache(partial(_ends, row)) if known else lambda: (0, slots - 1)
    for heads, start, stop in cuts:
        weights = row.rows(start, stop)[0, heads]
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        fringes: tuple[Fringe, ...] = ()
        if known and slots:
            seen = row.seen(start, stop)[0]
            fringes = (Fringe(0, slots, seen[heads] if seen.shape[0] > 1 else seen),)
        scores = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        first = None if row.position is None else row.position + start
        place = batch, heads, start, stop, 0, slots, first
        numbers = scores, weights, torch.empty_like(weights)
        yield Block(*place, *numbers, fringes, (weights != 0).any(-1), ends)


def _of_factored(row: FactoredReading, batch: int, cuts: Sequence[Cut]) -> Iterator[Block]:
    """softmax(q kᵀ), only where the pattern may look."""
    precise = torch.promote_types(row.query.dtype, torch.float32)
    left, right, holes = stretch_of(row)
    origin = row.counted_from
    _, last = reach_of(row.pattern, origin, origin + row.shape[2] - 1, left, right)
    known = partial(_ends, row) if row.bias is not None else partial(_real_ends, row, left, last)
    ends = cache(known)
    # Three rooms for all blocks: what has just been freed is slow to be had again.
    largest = max((_size(*cut) * row.shape[3] for cut in cuts), default=0)
    room = row.query.new_empty((3, largest), dtype=precise)
    ready, keys = slice(0, 0), row.keys
    for heads, start, stop in cuts:
        if ready != heads:
            ready, keys = heads, _keys_of(row, heads).to(precise).mT
        low, high = reach_of(row.pattern, origin + start, origin + stop - 1, left, right)
        query = row.query[0, heads, start:stop].to(precise) * row.scale
        shape = (query.shape[0], stop - start, high - low)
        size = _size(heads, start, stop) * (high - low)
        scores, weights, scratch = room[:, :size].view(3, *shape)
        _score(row, heads, query, keys[..., low:high], (start, stop), (low, high), scores)
        fringes = fringes_of(row, heads, (start, stop), (low, high), holes=holes)
        _hide(scores, fringes, low, -torch.inf)
        sees = _seeing(scores, fringes)
        if high > low:
            torch.softmax(scores, -1, out=weights)
        if not bool(sees.all()):
            weights.masked_fill_(~sees.unsqueeze(-1), 0.0)
        _hide(scores, fringes, low, 0.0)  # 0 · −∞ is no number
        first = None if row.first is None else row.first + start
        place = batch, heads, start, stop, low, high, first
        yield Block(*place, scores, weights, scratch, fringes, sees, ends)


def _ends(row: Reading) -> tuple[int, int]:
    """The first and the last slot that is no padding: that a query may see.

    Rows of padding may be hidden whole by a finite number, and then look at all slots alike: they
    do not count, unless there are no others.
    """
    shown = _span(row, row.shown) if isinstance(row, FactoredReading) else None
    return shown or _span(row, row.seen) or (0, -1)


def _real_ends(row: FactoredReading, left: int, last: int) -> tuple[int, int]:
    """The same where the pattern alone hides: the real slots among `left` … `last` − 1."""
    if row.real is None:
        return left, last - 1
    places = row.real[0, left:last].nonzero().flatten()
    return (left + int(places[0]), left + int(places[-1])) if len(places) else (left, left - 1)


def _span(row: Reading, seen: Callable[[int, int], Tensor]) -> tuple[int, int] | None:
    """The first and the last slot that some query sees; None where nobody sees any."""
    _, _, queries, slots = row.shape
    step = max(1, AT_ONCE // max(1, slots))
    some = torch.zeros(slots, dtype=torch.bool, device="cpu")
    for start in range(0, queries, step):
        some |= seen(start, min(start + step, queries))[0].flatten(0, 1).any(0).cpu()
    places = some.nonzero().flatten()
    return (int(places[0]), int(places[-1])) if len(places) else None


def _hide(
    scores: Float[Tensor, "heads rows slots"], fringes: Sequence[Fringe], low: int, value: float
) -> None:
    for fringe in fringes:
        scores[..., fringe.low - low : fringe.high - low].masked_fill_(~fringe.seen, value)


def _seeing(
    scores: Float[Tensor, "heads rows slots"], fringes: Sequence[Fringe]
) -> Bool[Tensor, "heads rows"]:
    """Which rows see a slot at all: every one, where there are slots that all of them see."""
    heads, rows, slots = scores.shape
    by_all = slots > sum(fringe.high - fringe.low for fringe in fringes)
    sees = torch.full((1, rows), by_all, device=scores.device)
    for fringe in () if by_all else fringes:
        sees = sees | fringe.seen.any(-1)
    return sees.expand(heads, rows)


def _score(
    row: FactoredReading,
    heads: slice,
    query: Float[Tensor, "heads rows width"],
    keys: Float[Tensor, "heads width slots"],
    rows: tuple[int, int],
    slots: tuple[int, int],
    out: Float[Tensor, "heads rows slots"],
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
        out.add_(bias[..., slice(*slots)] if bias.shape[2] > 1 else bias)


def _keys_of(row: FactoredReading, heads: slice) -> Float[Tensor, "heads slots width"]:
    shared = row.shape[1] // row.keys.shape[1]
    if shared == 1:
        return row.keys[0, heads]
    return row.keys[0, torch.arange(heads.start, heads.stop, device=row.keys.device) // shared]
