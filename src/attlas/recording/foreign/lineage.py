"""Where a tensor comes from, as far as that makes it scores or weights of an attention."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor

from attlas.recording.foreign.alive import WhileAlive
from attlas.recording.foreign.scored import Loose, Scored
from attlas.recording.foreign.versions import Versions
from attlas.recording.foreign.weighed import Logarithms, Weighed


class Lineage:
    """What is known of tensors that are still alive; it keeps none of them alive itself.

    Of scores that were changed in their place, or whose queries and keys were, by whomever, nothing
    is known any more. Weights that were changed are other weights.
    """

    def __init__(self) -> None:
        self._known: WhileAlive[tuple[Scored | Weighed, tuple[Any, ...]]] = WhileAlive()
        self._logarithms: WhileAlive[tuple[Any, Logarithms]] = WhileAlive()
        self._loose: WhileAlive[Loose] = WhileAlive()
        self.versions = Versions()

    @property
    def knows(self) -> bool:
        """Whether anything is known of any tensor."""
        return bool(self._known or self._loose or self._logarithms)

    @property
    def has_logarithms(self) -> bool:
        """Whether any tensor is known to be a logarithm of weights."""
        return bool(self._logarithms)

    def first(self, given: Iterable[Any]) -> tuple[Any, Scored | Weighed | None]:
        """The first of these, of lists of them too, of which something is known, and what."""
        if not self._known:
            return None, None
        for one in given:
            if isinstance(one, tuple | list):
                found = self.first(one)
                if found[1] is not None:
                    return found
            elif (fact := self.of(one)) is not None:
                return one, fact
        return None, None

    def of(self, tensor: Any) -> Scored | Weighed | None:
        """What is known of this tensor."""
        known = self._known.of(tensor)
        if known is None:
            return None
        fact, before = known
        now = self._versions_of(tensor, fact)
        if now == before:
            return fact
        if isinstance(fact, Scored):
            self.learn(tensor, None)
            self.learn_loose(tensor, fact.loosely())  # a product it was all the same
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
            self._known.learn(tensor, (fact, self._versions_of(tensor, fact)))
        elif isinstance(tensor, Tensor):
            self._known.forget(tensor)

    def learn_loose(self, tensor: Any, loose: Loose | None) -> None:
        """From now on this is known of it; None = nothing new."""
        if loose is not None and isinstance(tensor, Tensor) and tensor.is_floating_point():
            self._loose.learn(tensor, loose)

    def loose(self, tensor: Any) -> Loose | None:
        """What is known of this tensor as a product."""
        return self._loose.of(tensor)

    def as_loose(self, tensor: Any) -> Loose | None:
        """What is known of this tensor as a product, whatever else is known of it."""
        known = self.of(tensor)
        return known.loosely() if isinstance(known, Scored) else self.loose(tensor)

    def follow_loose(
        self, given: Iterable[Tensor], facts: Iterable[tuple[Tensor, Any]], result: Any
    ) -> None:
        """What a function makes of a product is one where its queries and slots are as many, in
        the same axes.

        facts: what was known of some of the tensors that it was given, before it ran.
        """
        if not isinstance(result, Tensor) or self.of(result) is not None:
            return
        known = [(one, fact.loosely()) for one, fact in facts if isinstance(fact, Scored)]
        known += [(one, loose) for one in given if (loose := self.loose(one)) is not None]
        for one, loose in known:
            alike = one.ndim == result.ndim
            if alike and all(one.shape[axis] == result.shape[axis] for axis in loose.axes):
                self.learn_loose(result, loose)
                return

    @property
    def has_loose(self) -> bool:
        """Whether there are products of which no more is known than that."""
        return len(self._loose) > 0

    def pass_on(self, args: tuple[Any, ...], result: Any) -> None:
        """What is made of a loose product by masks and factors lies as it does."""
        if not self._loose:
            return
        for one in args[:3] if isinstance(result, Tensor) else ():
            loose = self.loose(one)
            if loose is not None and result is not one and result.shape == one.shape:
                self.learn_loose(result, loose)

    def learn_logarithms(self, tensor: Tensor, logarithms: Logarithms) -> None:
        """From now on this is known of it."""
        scores = logarithms.scores
        versions = self.versions(tensor), scores and self._versions_of(tensor, scores)
        self._logarithms.learn(tensor, (versions, logarithms))

    def logarithms(self, tensor: Any) -> Logarithms | None:
        """What is known of this tensor as a logarithm; None where it is none, or was changed."""
        known = self._logarithms.of(tensor)
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

    def follow(self, known: Weighed, weights: Tensor, result: Any, *others: Weighed) -> None:
        """What a function has made of these weights are other weights, if it has as many slots.

        others: what is known of other weights that it was given. Of what it has changed in its
        place `of` knows by itself, but for what came of others.
        """
        if not isinstance(result, Tensor) or result.ndim != weights.ndim:
            return
        if result is weights and not others:
            return
        if result.is_floating_point() and result.shape[known.slots] == weights.shape[known.slots]:
            self.learn(result, known.altered(*(other.news for other in others)))

    def _versions_of(self, tensor: Tensor, fact: Scored | Weighed) -> tuple[Any, ...]:
        """Those of the tensor itself, of what its scores are made of, and of its origin."""
        scores = fact if isinstance(fact, Scored) else fact.scores
        origin = None if isinstance(fact, Scored) else fact.origin
        return (
            self.versions(tensor),
            () if scores is None else tuple(map(self.versions, scores.parts)),
            None if origin is None else self.versions(origin),
        )
