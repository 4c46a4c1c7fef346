"""What the rows of a block see: all of a stretch of slots, and some of those around it."""

import torch
from jaxtyping import Bool
from torch import Tensor

from attlas.patterns import Both, Causal, Everywhere, Pattern, Window
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.streaming.block import Fringe


def stretch_of(row: FactoredReading) -> tuple[int, int, bool]:
    """The first real slot, the one after the last, and whether there is padding in between."""
    if row.real is None:
        return 0, row.shape[3], False
    places = row.real[0].nonzero().flatten()
    if not len(places):
        return 0, 0, False
    low, high = int(places[0]), int(places[-1]) + 1
    return low, high, len(places) < high - low


def reach_of(pattern: Pattern, first: int, last: int, low: int, high: int) -> tuple[int, int]:
    """Of the slots low … high − 1 those that queries at first … last can see at all."""
    bound = pattern.bound
    if bound.marks:
        return low, high
    if bound.back is not None:
        low = min(max(first - bound.back, low), high)
    if bound.ahead is not None:
        high = max(min(last + bound.ahead + 1, high), low)
    return low, high


def fringes_of(
    row: FactoredReading,
    heads: slice,
    rows: tuple[int, int],
    slots: tuple[int, int],
    *,
    holes: bool,
) -> tuple[Fringe, ...]:
    """Where not every query of one batch row sees every slot.

    holes: whether there is padding among these slots.
    """
    (start, stop), (low, high) = rows, slots
    from_here = up_to = low
    if row.bias is None and not holes:
        from_here, up_to = _seen_by_all(
            row.pattern, row.counted_from + start, row.counted_from + stop - 1
        )
        from_here, up_to = max(low, min(from_here, high)), max(low, min(up_to, high))
    sides = ((low, from_here), (up_to, high)) if from_here < up_to else ((low, high),)
    return tuple(
        Fringe(*side, _seen(row, heads, rows, side)) for side in sides if side[0] < side[1]
    )


def _seen_by_all(pattern: Pattern, first: int, last: int) -> tuple[int, int]:
    """A stretch of slots that every query at first … last sees, empty where nobody knows one."""
    whole = -(1 << 62), 1 << 62
    if isinstance(pattern, Everywhere):
        return whole
    if isinstance(pattern, Causal):
        return whole[0], first + 1
    if isinstance(pattern, Window):
        return last - pattern.radius, first + pattern.radius + 1
    if isinstance(pattern, Both):
        left = _seen_by_all(pattern.left, first, last)
        right = _seen_by_all(pattern.right, first, last)
        return max(left[0], right[0]), min(left[1], right[1])
    return 0, 0


def _seen(
    row: FactoredReading, heads: slice, rows: tuple[int, int], slots: tuple[int, int]
) -> Bool[Tensor, "#heads rows slots"]:
    if row.bias is not None:
        seen = row.seen(*rows)[0]
        return (seen[heads] if seen.shape[0] > 1 else seen)[..., slice(*slots)]
    device = row.query.device
    slot = torch.arange(*slots, device=device)
    query = row.counted_from + torch.arange(*rows, device=device).unsqueeze(-1)
    seen = row.pattern(query, slot).expand(len(query), len(slot)).unsqueeze(0)
    return seen if row.real is None else seen & row.real[0, slice(*slots)]
