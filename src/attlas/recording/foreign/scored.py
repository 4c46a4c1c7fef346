"""Scores: a product of queries and keys, and what has been done to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from attlas.recording.foreign.contents import Content
from attlas.recording.foreign.versions import memory

NOTHING = 800.0  # e⁻⁸⁰⁰ is 0 in every precision that there is


@dataclass(frozen=True, slots=True)
class Scored:
    """cap(scale · left right) + Σ masks: a product, and what has been done to it since.

    softcap: cap(s) = softcap · tanh(s / softcap), None = no cap. masks: float tensors that were
    added, and bool tensors (True = may see) that hid the rest. shifted: whether a number was added
    to all of them, which no softmax sees, but a cap. margin: how far the hidden ones are below the
    lowest seen, where they hold a number. content: what the keys on the right hold, if known.
    """

    left: Float[Tensor, "*#batch queries width"]
    right: Float[Tensor, "*#batch width slots"]
    scale: float = 1.0
    softcap: float | None = None
    masks: tuple[Shaped[Tensor, "..."], ...] = ()
    shifted: bool = False
    margin: float = torch.inf
    content: Content | None = None

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors of which this holds true for as long as nobody changes them."""
        return self.left, self.right, *self.masks

    def scaled(self, factor: float) -> "Scored | None":
        """These scores times a number; None where that would show what a mask has hidden."""
        margin = self.margin * abs(factor)
        if (self.masks and factor < 0) or margin < NOTHING:
            return None
        cap = None if self.softcap is None else self.softcap * factor
        masks = tuple(mask if mask.dtype == torch.bool else mask * factor for mask in self.masks)
        return replace(self, scale=self.scale * factor, softcap=cap, masks=masks, margin=margin)

    def capped(self) -> "Scored | None":
        """tanh of these scores; None where something was done before that it does not go with."""
        fits = not self.masks and self.softcap is None and not self.shifted
        return replace(self, softcap=1.0) if fits else None

    def masked(self, mask: Shaped[Tensor, "..."]) -> "Scored | None":
        """These scores with one more mask; None where that may show what another has hidden."""
        margin = self.margin
        if margin < torch.inf and mask.dtype != torch.bool:
            margin -= self._raised(mask)
        if margin < NOTHING:
            return None
        return replace(self, masks=(*self.masks, mask), margin=margin)

    def _raised(self, mask: Shaped[Tensor, "..."]) -> float:
        """By how much adding these numbers may lift what is hidden above the most that is seen."""
        shown = self.shown()
        if shown is None or not mask.numel():
            return 0.0
        seen = torch.where(shown, mask, -torch.inf).amax(-1)
        # Other rows are padding, and see nothing.
        seen = seen[seen > torch.finfo(mask.dtype).min / 2]
        hidden = float(torch.where(shown, -torch.inf, mask).max())
        return max(0.0, hidden - float(seen.min())) if len(seen) else 0.0

    def floored(self, lowest: float) -> "Scored":
        """These scores, none of which is below a number so low that it hides a slot."""
        masks = tuple(m if m.dtype == torch.bool else m.clamp(min=lowest) for m in self.masks)
        return replace(self, masks=masks)

    def regrouped(self, before: torch.Size, after: torch.Size) -> "Scored | None":
        """The same of scores whose axes before queries and slots were folded or taken apart, from
        one shape to the other; None where it was not that."""
        if len(after) < 2 or before[-2:] != after[-2:]:
            return None

        def part(tensor: Tensor) -> Tensor:
            tensor = tensor if tensor.ndim > 1 else tensor.expand(1, -1)
            last = tensor.shape[-2:]
            return tensor.expand(*before[:-2], *last).reshape(*after[:-2], *last)

        masks = tuple(part(mask) for mask in self.masks)
        return replace(self, left=part(self.left), right=part(self.right), masks=masks)

    def loosely(self) -> "Loose":
        """What is left to say when nobody knows any more what was done to it."""
        return Loose((-2, -1), (memory(self.right),))

    def turned(self) -> "Scored | None":
        """The same of scores of two axes that changed places; None where a mask is in them."""
        return (
            None
            if self.masks
            else replace(self, left=self.right.T, right=self.left.T, content=None)
        )

    def shown(self) -> Bool[Tensor, "..."] | None:
        """All masks that hide in one; None = no such mask."""
        seen: Tensor | None = None
        for mask in self.masks:
            if mask.dtype == torch.bool:
                seen = mask if seen is None else seen & mask
        return seen

    def mask(self) -> Shaped[Tensor, "..."] | None:
        """All masks in one: bool where none of them is added, float otherwise; None = no mask."""
        seen, added = self.shown(), [mask for mask in self.masks if mask.dtype != torch.bool]
        if not added:
            return seen
        total = added[0]
        for mask in added[1:]:
            total = total + mask
        return total if seen is None else torch.where(seen, total, -torch.inf)


@dataclass(frozen=True, slots=True)
class Loose:
    """Two axes, counted from the last, of which one has the queries of a product and one its slots.

    It is a product whose axes lie in another order than a matrix product has them, or whose queries
    are folded into the axis of texts: it may be scores, but is not kept as queries and keys.

    factors: where the numbers lie of what was multiplied. folded: whether texts, or heads, and
    queries are one axis of two. pair: how many there are in each of both axes where these have
    become one.
    """

    axes: tuple[int, int]
    factors: tuple[int, ...]
    folded: bool = False
    pair: tuple[int, int] | None = None

    def regrouped(self, before: torch.Size, after: torch.Size) -> "Loose | None":
        """The same where texts, heads and queries were folded or taken apart; None where not."""
        found = regrouped(self.axes, self.pair, before, after)
        if found is not None:
            return replace(self, axes=found[0], pair=found[1])
        whole = len(after) > 1 and before[-1:] == after[-1:] and self.axes == (-2, -1)
        return replace(self, folded=len(after) == 2) if whole else None

    def moved(self, places: Sequence[int | None]) -> "Loose | None":
        """The same with its two axes in these places, counted from the last; None = gone."""
        first, second = places
        return None if first is None or second is None else replace(self, axes=(first, second))

    def beside(self, slots: int) -> int | None:
        """Where the queries are if the slots are here; None if they are not."""
        return sum(self.axes) - slots if slots in self.axes and self.pair is None else None


def regrouped(
    axes: tuple[int, int],
    pair: tuple[int, int] | None,
    before: Sequence[int],
    after: Sequence[int],
) -> tuple[tuple[int, int], tuple[int, int] | None] | None:
    """Where two axes of one shape are in another of as many numbers, counted from the last, and how
    many there are in each if both have become one; None where they are not whole any more."""
    first, second = axes
    behind = prod(before[second % len(before) + 1 :])
    if pair is not None:  # may be told apart again
        for place in range(-1, -len(after), -1):
            apart = after[place - 1], after[place]
            if apart == pair and prod(after[place % len(after) + 1 :]) == behind:
                return (place - 1, place), None
    places = _carried(first, before, after), _carried(second, before, after)
    if places[0] is not None and places[1] is not None and (places[0] != places[1]) == (not pair):
        return (places[0], places[1]), pair
    if pair is None and second == first + 1:
        pair = before[first], before[second]
        for place in range(-1, -len(after) - 1, -1):
            if (after[place], prod(after[place % len(after) + 1 :])) == (prod(pair), behind):
                return (place, place), pair
    return None


def _carried(axis: int, before: Sequence[int], after: Sequence[int]) -> int | None:
    behind = prod(before[axis % len(before) + 1 :])
    for place in range(-1, -len(after) - 1, -1):
        if after[place] == before[axis] and prod(after[place % len(after) + 1 :]) == behind:
            return place
    return None
