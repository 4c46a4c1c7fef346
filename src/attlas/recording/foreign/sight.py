"""What the queries of a call may see: a model's mask, and the pattern that it spells out."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from attlas.patterns import Pattern, both, causal, everywhere, window

_AT_ONCE = 1 << 22  # pairs that are compared at a time
_FAR = 9e3  # e⁻⁹⁰⁰⁰ is nothing beside 1, whatever the scores are


@dataclass(frozen=True, slots=True)
class Sight:
    """Which slots each query may see, in the words of a `FactoredReading`."""

    pattern: Pattern = everywhere
    first: int = 0
    real: Bool[Tensor, "batch slots"] | None = None
    bias: Shaped[Tensor, "#batch #heads #queries #slots"] | None = None


def sight_of(
    mask: Shaped[Tensor, "#batch #heads #queries #slots"] | None,
    batch: int,
    queries: int,
    slots: int,
) -> Sight:
    """The sight that a mask spells out, exactly: as a pattern and padding, or else as it is.

    mask: bool (True = may see) or float (added to the scores). Without one the queries are the
    newest of the slots, and see all of them. A pattern costs no memory, where a mask has queries ×
    slots numbers; it is looked for among everywhere, causal, windows and causal windows.
    """
    if mask is None:
        return Sight(first=max(slots - queries, 0))
    return _sight(mask, batch, queries, slots)


def _sight(
    mask: Shaped[Tensor, "#batch #heads #queries #slots"], batch: int, queries: int, slots: int
) -> Sight:
    as_it_is = Sight(first=max(slots - queries, 0), bias=mask)
    if not batch or not queries or not slots:
        return as_it_is
    as_it_is = replace(as_it_is, first=place_in(shown_by(mask).expand(-1, -1, queries, slots)))
    if mask.shape[1] > 1:
        if mask.stride(1) and not torch.equal(mask, mask[:, :1].expand_as(mask)):
            return as_it_is
        mask = mask[:, :1]  # the same for every head
        as_it_is = replace(as_it_is, bias=mask)
    allowed = _allowed(mask)
    if allowed is None:
        return as_it_is
    allowed = allowed[:, 0].expand(-1, queries, slots)
    real = allowed.any(1)
    found = _pattern_of(allowed, real)
    if found is None:
        return as_it_is
    pattern, first = found
    padded = None if bool(real.all()) else real.expand(batch, slots).clone()
    newest = first + queries
    if pattern.bound.ahead == 0 and 0 < newest < slots:
        # Slots beyond the newest query are room that a cache has not filled yet; a pattern that
        # looks back alone hides them, so they need not count as padding.
        filled = real[:, :newest]
        padded = None if bool(filled.all()) else padded
    return Sight(pattern, first, padded)


def place_in(shown: Bool[Tensor, "#batch #heads queries slots"]) -> int:
    """Where the first of the queries stands, which are the newest of the slots that any of them
    sees: behind these is room that a cache has not filled yet."""
    queries, slots = shown.shape[2:]
    seen = shown.flatten(0, 2).any(0).nonzero()
    newest = 1 + int(seen.max()) if len(seen) else slots
    return max(newest - queries, 0)


def shown_by(
    mask: Shaped[Tensor, "#batch #heads #queries #slots"],
) -> Bool[Tensor, "#batch #heads #queries #slots"]:
    """The pairs that a mask does not hide, whatever else it says of them."""
    if mask.dtype == torch.bool:
        return mask
    # What models add to hide a slot: −∞, the least number there is, −10⁹, −10⁴. A row of which
    # all is hidden by −10⁹ or −10⁴ sees everything: nothing is far below its greatest. The least
    # number of a type is meant as −∞, and a row that has nothing else, of padding, sees nothing.
    greatest = mask.amax(-1, keepdim=True)
    return (mask > greatest - _FAR) & (mask > torch.finfo(mask.dtype).min)


def _allowed(
    mask: Shaped[Tensor, "#batch #heads #queries #slots"],
) -> Bool[Tensor, "#batch #heads #queries #slots"] | None:
    """A mask as truth values; None where it says more than that."""
    if mask.dtype == torch.bool:
        return mask
    greatest, allowed = mask.amax(-1, keepdim=True), shown_by(mask)
    if bool((torch.where(allowed, mask, greatest) != greatest).any()):
        return None  # it weighs what it shows
    return allowed


def _pattern_of(
    allowed: Bool[Tensor, "batch queries slots"], real: Bool[Tensor, "batch slots"]
) -> tuple[Pattern, int] | None:
    """The pattern that allows these pairs among the real slots, and where its queries begin."""
    queries, slots = allowed.shape[1:]
    newest = max(slots - queries, 0)
    if _fits(everywhere, newest, allowed, real):
        return everywhere, newest
    places = torch.arange(slots, device=allowed.device)
    last = int(torch.where(real, places, -1).max())
    earliest = min(0, slots - queries)  # padding on the right would have queries begin before it
    for first in dict.fromkeys((last - queries + 1, newest, 0)):
        if first < earliest:
            continue
        for pattern in _candidates(allowed, first, places):
            if _fits(pattern, first, allowed, real):
                return pattern, first
    return None


def _candidates(
    allowed: Bool[Tensor, "batch queries slots"], first: int, places: Int[Tensor, " slots"]
) -> list[Pattern]:
    """Patterns with queries from `first` on that reach as far back and ahead as these pairs do."""
    queries, slots = allowed.shape[1:]
    asking = first + torch.arange(queries, device=allowed.device)
    some = allowed.any(-1)
    earliest = torch.where(some, allowed.view(torch.uint8).argmax(-1), asking)
    latest = torch.where(some, slots - 1 - allowed.flip(-1).view(torch.uint8).argmax(-1), asking)
    back, ahead = int((asking - earliest).max()), int((latest - asking).max())
    if ahead <= 0:
        return [causal, both(causal, window(max(back, 0)))]
    return [window(max(back, ahead))]


def _fits(
    pattern: Pattern,
    first: int,
    allowed: Bool[Tensor, "batch queries slots"],
    real: Bool[Tensor, "batch slots"],
) -> bool:
    batch, queries, slots = allowed.shape
    rows = max(1, _AT_ONCE // (batch * slots))
    for start in range(0, queries, rows):
        stop = min(start + rows, queries)
        expected = pattern.mask(stop - start, slots, first + start, allowed.device)
        if not torch.equal(expected & real[:, None], allowed[:, start:stop]):
            return False
    return True
