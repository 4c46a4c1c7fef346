"""Where a tensor comes from, as far as that makes it scores or weights of an attention."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attlas.recording.foreign.news import News
from attlas.recording.foreign.versions import Versions

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

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors of which this holds true for as long as nobody changes them."""
        return self.left, self.right, *self.masks

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

    def turned(self) -> "Scored | None":
        """The same of scores of two axes that changed places; None where a mask is in them."""
        return None if self.masks else replace(self, left=self.right.T, right=self.left.T)

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
    """A softmax over slots, and what has been done to it since.

    scores: of what, where that is known. origin: what the softmax gave, None = the tensor itself;
    steps: what was done to it since, dropout and changes of type or shape. news: who is to hear
    of it. slots: which axis has the slots, counted from the last; queries: which has the queries,
    None = nobody knows.
    """

    scores: Scored | None
    origin: Float[Tensor, "..."] | None = None
    steps: tuple[Step, ...] = ()
    news: News = field(default_factory=News)
    slots: int = -1
    queries: int | None = None

    @property
    def has_rows(self) -> bool:
        """Whether the last two axes may be queries and slots, as a matrix product takes them."""
        return self.slots == -1 and self.queries in (None, -2)

    def after(self, origin: Tensor, step: Step) -> "Weighed":
        """What one more step makes of it; `origin` is the tensor of which this is said."""
        kept = origin if self.origin is None else self.origin
        return replace(self, origin=kept, steps=(*self.steps, step))

    def altered(self) -> "Weighed":
        """What is known of other weights that were made of these."""
        return self.elsewhere(self.slots, self.queries)

    def elsewhere(self, slots: int, queries: int | None) -> "Weighed":
        """The same of weights that have their slots and queries in these axes."""
        return Weighed(None, news=self.news.of_another(), slots=slots, queries=queries)

    def moved(self, weights: Tensor, order: Sequence[int]) -> "Weighed":
        """The same where the axes of these weights were put into another order, as `permute` does.

        Where a step has made their shape, what the softmax gave has no such axes.
        """
        axes = len(order)
        if list(order) == list(range(axes)):
            return self
        origin: Tensor | None = None
        steps: tuple[Step, ...] = ()
        if self.origin is not None and self.origin.shape == weights.shape:
            origin = self.origin.permute(*order)
            steps = tuple((_moved(each, order), rest, named) for each, rest, named in self.steps)
        slots = order.index(self.slots % axes) - axes
        queries = None if self.queries is None else order.index(self.queries % axes) - axes
        return Weighed(None, origin, steps, self.news, slots, queries)

    def again(self, weights: Float[Tensor, "..."]) -> Tensor:
        """Other weights after the same steps."""
        for function, rest, named in self.steps:
            weights = function(weights, *rest, **named)
        return weights


@dataclass(eq=False, slots=True)
class Logarithms:
    """The logarithm of a softmax over an axis: of what scores, None = nobody knows; and who is to
    hear of the weights that its exponential is, once it was taken."""

    axis: int | None
    scores: Scored | None
    news: News | None = None


def back(order: Sequence[int]) -> list[int]:
    """The order that puts axes back to where they were."""
    return sorted(range(len(order)), key=order.__getitem__)


def _moved(function: Callable[..., Tensor], order: Sequence[int]) -> Callable[..., Tensor]:
    """The function, of weights whose axes were put into this order."""
    return lambda weights, *rest, **named: function(
        weights.permute(*back(order)), *rest, **named
    ).permute(*order)


class Lineage:
    """What is known of tensors that are still alive; it keeps none of them alive itself.

    Of scores that were changed in their place, or whose queries and keys were, by whomever, nothing
    is known any more. Weights that were changed are other weights.
    """

    def __init__(self) -> None:
        self._known: Any = WeakIdKeyDictionary()
        self._logarithms: Any = WeakIdKeyDictionary()
        self.versions = Versions()

    def of(self, tensor: Any) -> Scored | Weighed | None:
        """What is known of this tensor."""
        known = self._known.get(tensor) if isinstance(tensor, Tensor) else None
        if known is None:
            return None
        fact: Scored | Weighed = known[0]
        before, now = known[1], self._versions_of(tensor, fact)
        if now == before:
            return fact
        if isinstance(fact, Scored):
            return None
        itself, scores, origin = (one == other for one, other in zip(before, now, strict=True))
        left = fact if origin else replace(fact, origin=None, steps=())
        left = left if scores else replace(left, scores=None)
        left = left if itself else fact.altered()
        self.learn(tensor, left)
        return left

    def learn(self, tensor: Any, fact: Scored | Weighed | None) -> None:
        """From now on this is known of it; None = nothing."""
        if fact is not None:
            self._known[tensor] = fact, self._versions_of(tensor, fact)
        elif isinstance(tensor, Tensor) and tensor in self._known:
            del self._known[tensor]

    def learn_logarithms(self, tensor: Tensor, logarithms: Logarithms) -> None:
        """From now on this is known of it."""
        scores = logarithms.scores
        versions = self.versions(tensor), scores and self._versions_of(tensor, scores)
        self._logarithms[tensor] = versions, logarithms

    def logarithms(self, tensor: Any) -> Logarithms | None:
        """What is known of this tensor as a logarithm; None where it is none, or was changed."""
        known = self._logarithms.get(tensor) if isinstance(tensor, Tensor) else None
        if known is None:
            return None
        (itself, parts), logarithms = known
        if itself != self.versions(tensor):
            return None
        scores: Scored | None = logarithms.scores
        if scores is not None and parts != self._versions_of(tensor, scores):
            logarithms.scores = None
        found: Logarithms = logarithms
        return found

    def follow(self, known: Weighed, weights: Tensor, result: Any) -> None:
        """What a function has made of these weights are other weights, if it has as many slots.

        Of what it has changed in its place `of` knows by itself.
        """
        if not isinstance(result, Tensor) or result is weights or result.ndim != weights.ndim:
            return
        if result.is_floating_point() and result.shape[known.slots] == weights.shape[known.slots]:
            self.learn(result, known.altered())

    def _versions_of(self, tensor: Tensor, fact: Scored | Weighed) -> tuple[Any, ...]:
        """Those of the tensor itself, of what its scores are made of, and of its origin."""
        scores = fact if isinstance(fact, Scored) else fact.scores
        origin = None if isinstance(fact, Scored) else fact.origin
        return (
            self.versions(tensor),
            () if scores is None else tuple(map(self.versions, scores.parts)),
            None if origin is None else self.versions(origin),
        )
