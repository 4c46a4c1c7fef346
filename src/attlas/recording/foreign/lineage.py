"""Where a tensor comes from, as far as that makes it scores or weights of an attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attlas.recording.foreign.news import News

Step = tuple[Callable[..., Tensor], tuple[Any, ...], Mapping[str, Any]]
"""A function that took the weights first, with everything else that it was given."""


@dataclass(frozen=True, slots=True)
class Scored:
    """cap(scale · left right) + Σ masks: a product, and what has been done to it since.

    softcap: cap(s) = softcap · tanh(s / softcap), None = no cap. masks: float tensors that were
    added, and bool tensors (True = may see) that hid the rest.
    """

    left: Float[Tensor, "*batch queries width"]
    right: Float[Tensor, "*batch width slots"]
    scale: float = 1.0
    softcap: float | None = None
    masks: tuple[Shaped[Tensor, "..."], ...] = ()

    def scaled(self, factor: float) -> "Scored | None":
        """These scores times a number; None where that would show what a mask has hidden."""
        if self.masks and factor < 0:
            return None
        cap = None if self.softcap is None else self.softcap * factor
        masks = tuple(mask if mask.dtype == torch.bool else mask * factor for mask in self.masks)
        return replace(self, scale=self.scale * factor, softcap=cap, masks=masks)

    def capped(self) -> "Scored | None":
        """tanh of these scores; None where something was done before that it does not go with."""
        return None if self.masks or self.softcap is not None else replace(self, softcap=1.0)

    def masked(self, mask: Shaped[Tensor, "..."]) -> "Scored":
        """These scores with one more mask."""
        return replace(self, masks=(*self.masks, mask))

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

    def mask(self) -> Shaped[Tensor, "..."] | None:
        """All masks in one: bool where none of them is added, float otherwise; None = no mask."""
        shown = [mask for mask in self.masks if mask.dtype == torch.bool]
        added = [mask for mask in self.masks if mask.dtype != torch.bool]
        seen: Tensor | None = None
        for mask in shown:
            seen = mask if seen is None else seen & mask
        if not added:
            return seen
        total = added[0]
        for mask in added[1:]:
            total = total + mask
        return total if seen is None else torch.where(seen, total, -torch.inf)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A softmax over the last axis, and what has been done to it since.

    scores: of what, where that is known. origin: what the softmax gave, None = the tensor itself;
    steps: what was done to it since, dropout and changes of type or shape. news: who is to hear
    of it.
    """

    scores: Scored | None
    origin: Float[Tensor, "*batch queries slots"] | None = None
    steps: tuple[Step, ...] = ()
    news: News = field(default_factory=News)

    def after(self, origin: Tensor, step: Step) -> "Weighed":
        """What one more step makes of it; `origin` is the tensor of which this is said."""
        kept = origin if self.origin is None else self.origin
        return replace(self, origin=kept, steps=(*self.steps, step))

    def altered(self) -> "Weighed":
        """What is known of other weights that were made of these."""
        return Weighed(None, news=self.news.of_another())

    def turned(self, query: int) -> "Weighed":
        """The same of weights whose queries are another axis than the last but one."""
        if query == -2:
            return self
        origin = None if self.origin is None else self.origin.movedim(query, -2)
        steps = tuple(
            (_turned_back(function, query), rest, named) for function, rest, named in self.steps
        )
        return Weighed(None, origin, steps, self.news)

    def again(self, weights: Float[Tensor, "*batch queries slots"]) -> Tensor:
        """Other weights after the same steps."""
        for function, rest, named in self.steps:
            weights = function(weights, *rest, **named)
        return weights


def _turned_back(function: Callable[..., Tensor], query: int) -> Callable[..., Tensor]:
    """The function, of weights whose queries were moved to the last but one axis."""
    return lambda weights, *rest, **named: function(
        weights.movedim(-2, query), *rest, **named
    ).movedim(query, -2)


_NOTHING = None, 0


def in_place(function: Callable[..., Any]) -> bool:
    """Whether a function of torch changes its first argument, by its name."""
    name = getattr(function, "__name__", "")
    return name == "__setitem__" or name.startswith("__i") or (name[-1:] == "_" != name[-2:-1])


def _version(tensor: Tensor) -> int:
    """How often it, or what shares its memory, was changed in its place; inference forgets that."""
    return 0 if tensor.is_inference() else tensor._version


class Lineage:
    """What is known of tensors that are still alive; it keeps none of them alive itself.

    Of a tensor that was changed in its place, by whomever, nothing is known any more.
    """

    def __init__(self) -> None:
        self._known: Any = WeakIdKeyDictionary()

    def of(self, tensor: Any) -> Scored | Weighed | None:
        """What is known of this tensor."""
        fact, version = (
            self._known.get(tensor, _NOTHING) if isinstance(tensor, Tensor) else _NOTHING
        )
        return fact if fact is not None and version == _version(tensor) else None

    def learn(self, tensor: Any, fact: Scored | Weighed | None) -> None:
        """From now on this is known of it; None = nothing."""
        if fact is not None:
            self._known[tensor] = fact, _version(tensor)
        elif isinstance(tensor, Tensor) and tensor in self._known:
            del self._known[tensor]
