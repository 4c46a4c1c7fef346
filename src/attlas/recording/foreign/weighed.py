"""Weights: a softmax over slots, and what has been done to it; and its logarithm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.recording.foreign.news import News
from attlas.recording.foreign.scored import Loose, Scored, regrouped

Step = tuple[Callable[..., Tensor], tuple[Any, ...], Mapping[str, Any]]
"""A function that took the weights first, with everything else that it was given."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A softmax over slots, and what has been done to it since.

    scores: of what, where that is known. origin: what the softmax gave, None = the tensor itself;
    steps: what was done to it since, dropout and changes of type or shape. news: who is to hear
    of it. slots: which axis has the slots, counted from the last; queries: which has the queries,
    None = nobody knows. folded: whether texts, or heads, and queries are still one axis. pair: how
    many queries and slots there are where both are one axis.
    """

    scores: Scored | None
    origin: Float[Tensor, "..."] | None = None
    steps: tuple[Step, ...] = ()
    news: News = field(default_factory=News)
    slots: int = -1
    queries: int | None = None
    folded: bool = False
    pair: tuple[int, int] | None = None

    @property
    def has_rows(self) -> bool:
        """Whether the last two axes may be queries and slots, as a matrix product takes them."""
        return not self.folded and self.slots == -1 and self.queries in (None, -2)

    def after(self, origin: Tensor, step: Step) -> "Weighed":
        """What one more step makes of it; `origin` is the tensor of which this is said."""
        kept = origin if self.origin is None else self.origin
        return replace(self, origin=kept, steps=(*self.steps, step))

    def altered(self, *others: News) -> "Weighed":
        """What is known of other weights that were made of these, and of those with such news."""
        return self.elsewhere(self.slots, self.queries, *others)

    def unfolded(self, weights: Tensor, result: Tensor) -> "Weighed | None":
        """The same of folded weights whose texts and queries were told apart; None where not."""
        if result.ndim < 3 or result.shape[-1] != weights.shape[-1]:
            return None
        origin = None if self.origin is None else self.origin.reshape(result.shape)
        return replace(self, origin=origin, folded=False)

    def elsewhere(self, slots: int, queries: int | None, *others: News) -> "Weighed":
        """The same of weights that have their slots and queries in these axes."""
        news = self.news.of_another(*others)
        return Weighed(None, news=news, slots=slots, queries=queries, pair=self.pair)

    def regrouped(self, before: torch.Size, after: torch.Size) -> "Weighed | None":
        """The same where other axes than those of queries and slots, or the two of them, were
        folded or taken apart; None where it was not that, or nobody knows the queries."""
        if self.queries is None:
            return None
        found = regrouped((self.queries, self.slots), self.pair, before, after)
        if found is None:
            return None
        (queries, slots), pair = found
        return replace(self.elsewhere(slots, queries), pair=pair)

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
        return Weighed(None, origin, steps, self.news, slots, queries, pair=self.pair)

    def again(self, weights: Float[Tensor, "..."]) -> Tensor:
        """Other weights after the same steps."""
        for function, rest, named in self.steps:
            weights = function(weights, *rest, **named)
        return weights


@dataclass(eq=False, slots=True)
class Logarithms:
    """The logarithm of a softmax over an axis: of what scores or loose product, None = nobody
    knows; and who is to hear of the weights that its exponential is, once it was taken."""

    axis: int | None
    scores: Scored | None
    loose: Loose | None = None
    news: News | None = None


def back(order: Sequence[int]) -> list[int]:
    """The order that puts axes back to where they were."""
    return sorted(range(len(order)), key=order.__getitem__)


def _moved(function: Callable[..., Tensor], order: Sequence[int]) -> Callable[..., Tensor]:
    """The function, of weights whose axes were put into this order."""
    return lambda weights, *rest, **named: function(
        weights.permute(*back(order)), *rest, **named
    ).permute(*order)
