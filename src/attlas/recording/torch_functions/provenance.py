"""Scores: a product of queries and keys, and what has been done to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from attlas.recording.hooks import CallSite, Listener, RecorderProtocol
from attlas.recording.torch_functions.contents import Content
from attlas.recording.torch_functions.tensors import Versions, WhileAlive, memory

# One map: which recorders wait for it, and which have recorded it.


@dataclass(eq=False, slots=True)
class PendingMap:
    """One softmax is one map at each place, however many values its weights are multiplied with.

    Args:
        callbacks: What ends the wait of each recorder that was notified of the softmax.
        factors: Where the numbers lie of what was multiplied to scores, where that is known.
        sources: The news of the softmaxes that the map was made of; () = it is one itself.
    """

    callbacks: list[Callable[[], None]] = field(default_factory=list)
    factors: tuple[int, ...] = ()
    sources: tuple["PendingMap", ...] = ()
    _recorded: list[tuple[RecorderProtocol | None, str, int]] = field(default_factory=list)

    def combined_with(self, *others: "PendingMap") -> "PendingMap":
        """Those of a map that was made of this one and of others: a recorder waits for any."""
        sources = [
            source for pending in (self, *others) for source in pending.sources or (pending,)
        ]
        return PendingMap(sources=tuple(dict.fromkeys(sources)))

    def confirm(self) -> None:
        """The softmax turned out to be attention: no recorder waits any more."""
        for source in self.sources or (self,):
            while source.callbacks:
                source.callbacks.pop()()

    def is_new_for(self, listener: Listener, site: CallSite, query: int) -> bool:
        """Return True if this recorder has not recorded the map yet, with queries on that axis,
        there.
        """
        recorder = listener.recorder
        if any(
            other is recorder and (path, axis) == (site.path, query)
            for other, path, axis in self._recorded
        ):
            return False
        self._recorded.append((recorder, site.path, query))
        return True


NOTHING = 800.0  # e⁻⁸⁰⁰ is 0 in every precision that there is


@dataclass(frozen=True, slots=True)
class ScoreInfo:
    """cap(scale · left right) + Σ masks: a product, and what has been done to it since.

    Args:
        softcap: cap(s) = softcap · tanh(s / softcap), None = no cap.
        masks: Float tensors that were added, and bool tensors (True = may see) that hid the rest.
        shifted: Whether a number was added to all of them, which no softmax sees, but a cap.
        margin: How far the hidden ones are below the lowest seen, where they hold a number.
        content: What the keys on the right hold, if known.
    """

    left: Float[Tensor, "*#batch queries dim"]
    right: Float[Tensor, "*#batch dim keys"]
    scale: float = 1.0
    softcap: float | None = None
    masks: tuple[Shaped[Tensor, "..."], ...] = ()
    shifted: bool = False
    margin: float = torch.inf
    content: Content | None = None

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors of which this holds true for as long as they are not changed."""
        return self.left, self.right, *self.masks

    def scaled(self, factor: float) -> "ScoreInfo | None":
        """These scores times a number; None where that would show what a mask has hidden."""
        margin = self.margin * abs(factor)
        if (self.masks and factor < 0) or margin < NOTHING:
            return None
        cap = None if self.softcap is None else self.softcap * factor
        masks = tuple(mask if mask.dtype == torch.bool else mask * factor for mask in self.masks)
        return replace(self, scale=self.scale * factor, softcap=cap, masks=masks, margin=margin)

    def capped(self) -> "ScoreInfo | None":
        """tanh of these scores; None where something was done before that it does not go with."""
        fits = not self.masks and self.softcap is None and not self.shifted
        return replace(self, softcap=1.0) if fits else None

    def masked(self, mask: Shaped[Tensor, "..."]) -> "ScoreInfo | None":
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
        raised = torch.where(shown, mask, -torch.inf).amax(-1)
        # Other rows are padding, and see nothing.
        raised = raised[raised > torch.finfo(mask.dtype).min / 2]
        hidden = float(torch.where(shown, -torch.inf, mask).max())
        return max(0.0, hidden - float(raised.min())) if len(raised) else 0.0

    def floored(self, lowest: float) -> "ScoreInfo":
        """These scores, none of which is below a number so low that it hides a key."""
        masks = tuple(m if m.dtype == torch.bool else m.clamp(min=lowest) for m in self.masks)
        return replace(self, masks=masks)

    def reshaped_axes(self, old_shape: torch.Size, new_shape: torch.Size) -> "ScoreInfo | None":
        """The same of scores whose axes before queries and keys were folded or taken apart, from
        one shape to the other; None where it was not that."""
        if len(new_shape) < 2 or old_shape[-2:] != new_shape[-2:]:
            return None

        def part(tensor: Tensor) -> Tensor:
            tensor = tensor if tensor.ndim > 1 else tensor.expand(1, -1)
            last = tensor.shape[-2:]
            return tensor.expand(*old_shape[:-2], *last).reshape(*new_shape[:-2], *last)

        masks = tuple(part(mask) for mask in self.masks)
        return replace(self, left=part(self.left), right=part(self.right), masks=masks)

    def loosely(self) -> "ProductInfo":
        """What is left to say when it is no longer known what was done to it."""
        return ProductInfo((-2, -1), (memory(self.right),))

    def turned(self) -> "ScoreInfo | None":
        """The same of scores of two axes that changed places; None where a mask is in them."""
        return (
            None
            if self.masks
            else replace(self, left=self.right.T, right=self.left.T, content=None)
        )

    def shown(self) -> Bool[Tensor, "..."] | None:
        """All masks that hide in one; None = no such mask."""
        allowed: Tensor | None = None
        for mask in self.masks:
            if mask.dtype == torch.bool:
                allowed = mask if allowed is None else allowed & mask
        return allowed

    def mask(self) -> Shaped[Tensor, "..."] | None:
        """All masks in one: bool where none of them is added, float otherwise; None = no mask."""
        allowed, biases = self.shown(), [mask for mask in self.masks if mask.dtype != torch.bool]
        if not biases:
            return allowed
        total = biases[0]
        for mask in biases[1:]:
            total = total + mask
        return total if allowed is None else torch.where(allowed, total, -torch.inf)


@dataclass(frozen=True, slots=True)
class ProductInfo:
    """Two axes, counted from the last, of which one has the queries of a product and one its keys.

    It is a product whose axes lie in another order than a matrix product has them, or whose queries
    are folded into the axis of texts: it may be scores, but is not kept as queries and keys.

    Args:
        factors: Where the numbers lie of what was multiplied.
        folded: Whether texts, or heads, and queries are one axis of two.
        pair: How many there are in each of both axes where these have become one.
    """

    axes: tuple[int, int]
    factors: tuple[int, ...]
    folded: bool = False
    pair: tuple[int, int] | None = None

    def reshaped_axes(self, old_shape: torch.Size, new_shape: torch.Size) -> "ProductInfo | None":
        """The same where texts, heads and queries were folded or taken apart; None where not."""
        axes = reshaped_axes(self.axes, self.pair, old_shape, new_shape)
        if axes is not None:
            return replace(self, axes=axes[0], pair=axes[1])
        is_matrix = (
            len(new_shape) > 1 and old_shape[-1:] == new_shape[-1:] and self.axes == (-2, -1)
        )
        return replace(self, folded=len(new_shape) == 2) if is_matrix else None

    def moved(self, axes: Sequence[int | None]) -> "ProductInfo | None":
        """The same with its two axes in these places, counted from the last; None = gone."""
        first, second = axes
        return None if first is None or second is None else replace(self, axes=(first, second))

    def beside(self, keys: int) -> int | None:
        """Where the queries are if the keys are here; None if they are not."""
        return sum(self.axes) - keys if keys in self.axes and self.pair is None else None


def reshaped_axes(
    axes: tuple[int, int],
    pair: tuple[int, int] | None,
    old_shape: Sequence[int],
    new_shape: Sequence[int],
) -> tuple[tuple[int, int], tuple[int, int] | None] | None:
    """Where two axes of one shape are in another of as many numbers, counted from the last, and how
    many there are in each if both have become one; None where they are not whole any more."""
    first, second = axes
    inner_size = prod(old_shape[second % len(old_shape) + 1 :])
    if pair is not None:  # may be distinguished again
        for axis in range(-1, -len(new_shape), -1):
            sizes = new_shape[axis - 1], new_shape[axis]
            if sizes == pair and prod(new_shape[axis % len(new_shape) + 1 :]) == inner_size:
                return (axis - 1, axis), None
    places = _carried_axis(first, old_shape, new_shape), _carried_axis(second, old_shape, new_shape)
    if places[0] is not None and places[1] is not None and (places[0] != places[1]) == (not pair):
        return (places[0], places[1]), pair
    if pair is None and second == first + 1:
        pair = old_shape[first], old_shape[second]
        for axis in range(-1, -len(new_shape) - 1, -1):
            if (new_shape[axis], prod(new_shape[axis % len(new_shape) + 1 :])) == (
                prod(pair),
                inner_size,
            ):
                return (axis, axis), pair
    return None


def _carried_axis(axis: int, old_shape: Sequence[int], new_shape: Sequence[int]) -> int | None:
    inner_size = prod(old_shape[axis % len(old_shape) + 1 :])
    for index in range(-1, -len(new_shape) - 1, -1):
        if (
            new_shape[index] == old_shape[axis]
            and prod(new_shape[index % len(new_shape) + 1 :]) == inner_size
        ):
            return index
    return None


# Weights: a softmax over keys, and what has been done to it; and its logarithm.


Step = tuple[Callable[..., Tensor], tuple[Any, ...], Mapping[str, Any]]
"""A function that took the weights first, with everything else that it was given."""


@dataclass(frozen=True, slots=True)
class WeightInfo:
    """A softmax over keys, and what has been done to it since.

    Args:
        scores: Of what, where that is known.
        origin: What the softmax gave, None = the tensor itself.
        steps: What was done to it since, dropout and changes of type or shape.
        pending: The recorders to notify of it.
        keys: Which axis has the keys, counted from the last.
        queries: Which has the queries, None = unknown.
        folded: Whether texts, or heads, and queries are still one axis.
        pair: How many queries and keys there are where both are one axis.
    """

    scores: ScoreInfo | None
    origin: Float[Tensor, "..."] | None = None
    steps: tuple[Step, ...] = ()
    pending: PendingMap = field(default_factory=PendingMap)
    keys: int = -1
    queries: int | None = None
    folded: bool = False
    pair: tuple[int, int] | None = None

    @property
    def has_rows(self) -> bool:
        """Return True if the last two axes may be queries and keys, as a matrix product takes
        them.
        """
        return not self.folded and self.keys == -1 and self.queries in (None, -2)

    @property
    def is_transposed(self) -> bool:
        """Return True if the last two axes are surely keys and queries, in this order."""
        return not self.folded and self.keys == -2 and self.queries == -1

    def after(self, origin: Tensor, step: Step) -> "WeightInfo":
        """What one more step makes of it; `origin` is the tensor of which this is said."""
        first_origin = origin if self.origin is None else self.origin
        return replace(self, origin=first_origin, steps=(*self.steps, step))

    def altered(self, *others: PendingMap) -> "WeightInfo":
        """What is known of other weights that were made of these, and of those with such news."""
        return self.elsewhere(self.keys, self.queries, *others)

    def unfolded(self, weights: Tensor, result: Tensor) -> "WeightInfo | None":
        """The same of folded weights whose texts and queries were distinguished; None where not."""
        if result.ndim < 3 or result.shape[-1] != weights.shape[-1]:
            return None
        origin = None if self.origin is None else self.origin.reshape(result.shape)
        return replace(self, origin=origin, folded=False)

    def elsewhere(self, keys: int, queries: int | None, *others: PendingMap) -> "WeightInfo":
        """The same of weights that have their keys and queries in these axes."""
        pending = self.pending.combined_with(*others)
        return WeightInfo(None, pending=pending, keys=keys, queries=queries, pair=self.pair)

    def reshaped_axes(self, old_shape: torch.Size, new_shape: torch.Size) -> "WeightInfo | None":
        """The same where other axes than those of queries and keys, or the two of them, were
        folded or taken apart; None where it was not that, or nobody knows the queries."""
        if self.queries is None:
            return None
        axes = reshaped_axes((self.queries, self.keys), self.pair, old_shape, new_shape)
        if axes is None:
            return None
        (queries, keys), pair = axes
        return replace(self.elsewhere(keys, queries), pair=pair)

    def moved(self, weights: Tensor, order: Sequence[int]) -> "WeightInfo":
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
            steps = tuple(
                (_permuted_function(position, order), args, kwargs)
                for position, args, kwargs in self.steps
            )
        keys = order.index(self.keys % axes) - axes
        queries = None if self.queries is None else order.index(self.queries % axes) - axes
        return WeightInfo(None, origin, steps, self.pending, keys, queries, pair=self.pair)

    def again(self, weights: Float[Tensor, "..."]) -> Tensor:
        """Other weights after the same steps."""
        for function, args, kwargs in self.steps:
            weights = function(weights, *args, **kwargs)
        return weights


@dataclass(eq=False, slots=True)
class LogWeightInfo:
    """The logarithm of a softmax over an axis: of what scores or loose product, None = nobody
    knows; and who is to hear of the weights that its exponential is, once it was taken."""

    axis: int | None
    scores: ScoreInfo | None
    loose: ProductInfo | None = None
    pending: PendingMap | None = None


def back(order: Sequence[int]) -> list[int]:
    """The order that puts axes back to where they were."""
    return sorted(range(len(order)), key=order.__getitem__)


def _permuted_function(
    function: Callable[..., Tensor], order: Sequence[int]
) -> Callable[..., Tensor]:
    """The function, of weights whose axes were put into this order."""
    return lambda weights, *args, **kwargs: function(
        weights.permute(*back(order)), *args, **kwargs
    ).permute(*order)


# Where a tensor comes from, as far as that makes it scores or weights of an attention.


class Provenance:
    """What is known of tensors that are still alive; it keeps none of them alive itself.

    Of scores that were changed in their place, or whose queries and keys were, by whomever, nothing
    is known any more. Weights that were changed are other weights.
    """

    def __init__(self) -> None:
        self._known: WhileAlive[tuple[ScoreInfo | WeightInfo, tuple[Any, ...]]] = WhileAlive()
        self._logarithms: WhileAlive[tuple[Any, LogWeightInfo]] = WhileAlive()
        self._loose: WhileAlive[ProductInfo] = WhileAlive()
        self.versions = Versions()

    @property
    def knows(self) -> bool:
        """Return True if anything is known of any tensor."""
        return bool(self._known or self._loose or self._logarithms)

    @property
    def has_logarithms(self) -> bool:
        """Return True if any tensor is known to be a logarithm of weights."""
        return bool(self._logarithms)

    def first(self, values: Iterable[Any]) -> tuple[Any, ScoreInfo | WeightInfo | None]:
        """The first of these, of lists of them too, of which something is known, and what."""
        if not self._known:
            return None, None
        for value in values:
            if isinstance(value, tuple | list):
                info = self.first(value)
                if info[1] is not None:
                    return info
            elif (fact := self.of(value)) is not None:
                return value, fact
        return None, None

    def of(self, tensor: Any) -> ScoreInfo | WeightInfo | None:
        """What is known of this tensor."""
        entry = self._known.of(tensor)
        if entry is None:
            return None
        fact, version = entry
        versions = self._versions_of(tensor, fact)
        if versions == version:
            return fact
        if isinstance(fact, ScoreInfo):
            self.learn(tensor, None)
            self.learn_loose(tensor, fact.loosely())  # a product it was all the same
            return None
        is_same, scores, origin = (
            before_ == now_ for before_, now_ in zip(version, versions, strict=True)
        )
        remaining = fact if origin else replace(fact, origin=None, steps=())
        remaining = remaining if scores else replace(remaining, scores=None)
        remaining = remaining if is_same else fact.altered()
        self.learn(tensor, remaining)
        return remaining

    def learn(self, tensor: Any, fact: ScoreInfo | WeightInfo | None) -> None:
        """From now on this is known of it; None = nothing."""
        if fact is not None:
            self._known.learn(tensor, (fact, self._versions_of(tensor, fact)))
        elif isinstance(tensor, Tensor):
            self._known.forget(tensor)

    def learn_loose(self, tensor: Any, loose: ProductInfo | None) -> None:
        """From now on this is known of it; None = nothing new."""
        if loose is not None and isinstance(tensor, Tensor) and tensor.is_floating_point():
            self._loose.learn(tensor, loose)

    def loose(self, tensor: Any) -> ProductInfo | None:
        """What is known of this tensor as a product."""
        return self._loose.of(tensor)

    def as_loose(self, tensor: Any) -> ProductInfo | None:
        """What is known of this tensor as a product, whatever else is known of it."""
        info = self.of(tensor)
        return info.loosely() if isinstance(info, ScoreInfo) else self.loose(tensor)

    def follow_loose(
        self, inputs: Iterable[Tensor], facts: Iterable[tuple[Tensor, Any]], result: Any
    ) -> None:
        """What a function makes of a product is one where its queries and keys are as many, in the
        same axes.

        Args:
            facts: What was known of some of the tensors that it was given, before it ran.
        """
        if not isinstance(result, Tensor) or self.of(result) is not None:
            return
        products = [
            (tensor, fact.loosely()) for tensor, fact in facts if isinstance(fact, ScoreInfo)
        ]
        products += [
            (tensor, loose) for tensor in inputs if (loose := self.loose(tensor)) is not None
        ]
        for tensor, loose in products:
            same_axes = tensor.ndim == result.ndim
            if same_axes and all(tensor.shape[axis] == result.shape[axis] for axis in loose.axes):
                self.learn_loose(result, loose)
                return

    @property
    def has_loose(self) -> bool:
        """Return True if there are products of which no more is known than that."""
        return len(self._loose) > 0

    def pass_on(self, args: tuple[Any, ...], result: Any) -> None:
        """What is made of a loose product by masks and factors lies as it does."""
        if not self._loose:
            return
        for tensor in args[:3] if isinstance(result, Tensor) else ():
            loose = self.loose(tensor)
            if loose is not None and result is not tensor and result.shape == tensor.shape:
                self.learn_loose(result, loose)

    def learn_logarithms(self, tensor: Tensor, logarithms: LogWeightInfo) -> None:
        """From now on this is known of it."""
        scores = logarithms.scores
        versions = self.versions(tensor), scores and self._versions_of(tensor, scores)
        self._logarithms.learn(tensor, (versions, logarithms))

    def logarithms(self, tensor: Any) -> LogWeightInfo | None:
        """What is known of this tensor as a logarithm; None where it is none, or was changed."""
        entry = self._logarithms.of(tensor)
        if entry is None:
            return None
        (itself, parts), logarithms = entry
        if itself != self.versions(tensor):
            return None
        scores: ScoreInfo | None = logarithms.scores
        if scores is not None and parts != self._versions_of(tensor, scores):
            logarithms.scores = None
        info: LogWeightInfo = logarithms
        return info

    def follow(self, info: WeightInfo, weights: Tensor, result: Any, *others: WeightInfo) -> None:
        """What a function has made of these weights are other weights, if it has as many keys.

        Args:
            others: What is known of other weights that it was given. Of what it has changed in its
                place `of` knows by itself, but for what came of others.
        """
        if not isinstance(result, Tensor) or result.ndim != weights.ndim:
            return
        if result is weights and not others:
            return
        if result.is_floating_point() and result.shape[info.keys] == weights.shape[info.keys]:
            self.learn(result, info.altered(*(other.pending for other in others)))

    def _versions_of(self, tensor: Tensor, fact: ScoreInfo | WeightInfo) -> tuple[Any, ...]:
        """Those of the tensor itself, of what its scores are made of, and of its origin."""
        scores = fact if isinstance(fact, ScoreInfo) else fact.scores
        origin = None if isinstance(fact, ScoreInfo) else fact.origin
        return (
            self.versions(tensor),
            () if scores is None else tuple(map(self.versions, scores.parts)),
            None if origin is None else self.versions(origin),
        )
