"""Searches that go on step by step, and the few that are left of several, which go on as one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self

from jaxtyping import Bool, Int
from torch import Tensor

from attlas.decoding.constraints import Constraints
from attlas.decoding.hypothesis import Hypothesis
from attlas.decoding.penalties import Penalties
from attlas.layers.stacked import stacked
from attlas.models.sequence_to_sequence import Joinable, S, SequenceToSequence

_FEW = 32  # rows: a step of fewer is hardly faster, because it reads all weights for them


@dataclass(frozen=True, slots=True, eq=False)
class Search(ABC, Generic[S]):
    """Of some sentences at a time, one token a step: a value, which a step leaves as it was.

    A row is a hypothesis, of which a sentence has one or `width`. at: the number of each sentence.
    last: the token that the model reads next.
    """

    model: SequenceToSequence[S]
    penalties: Penalties
    constraints: Constraints
    state: S
    real: Bool[Tensor, "sentences slots"]
    at: Int[Tensor, " sentences"]
    tokens: Int[Tensor, "sentences *width length"]
    last: Int[Tensor, " rows"]

    @property
    def rows(self) -> int:
        """How many hypotheses are followed."""
        return len(self.last)

    @property
    def sentences(self) -> int:
        """How many sentences they are of."""
        return len(self.at)

    @property
    def length(self) -> int:
        """How many tokens each of them has."""
        return self.tokens.shape[-1]

    @property
    def joins(self) -> bool:
        """Whether the model's state can go on with that of another search: whether its very class
        says how, as of a class that inherits it there may be more to join.
        """
        return isinstance(self.state, Joinable) and "followed_by" in vars(type(self.state))

    @abstractmethod
    def step(self) -> tuple[Self | None, Mapping[int, list[Hypothesis]]]:
        """The search one token further, None where all are done, and what ended with this step:
        the hypotheses of sentences, by their numbers."""

    @abstractmethod
    def followed_by(self, other: Self) -> Self | None:
        """Both as one, where both are of the same length; None where they do not go together."""

    def _of_both(self, other: Self) -> dict[str, Any]:
        """What every search has, of the sentences of this one and then of the other."""
        state: Any = self.state
        return {
            "constraints": self.constraints.followed_by(other.constraints),
            "state": state.followed_by(other.state),
            "real": stacked(self.real, other.real),
            "at": stacked(self.at, other.at),
            "tokens": stacked(self.tokens, other.tokens),
            "last": stacked(self.last, other.last),
        }


def found_by(
    begun: Iterator[Search[Any]],
    *,
    together: bool,
    before_step: Callable[[], None] | None = None,
) -> dict[int, list[Hypothesis]]:
    """What all of them find.

    before_step: called before every step; what it raises ends all of them.

    together: of each search go on, once few of its sentences are left, with those of the next one
    that comes to the same length, instead of reading all weights for a few rows of each. The next
    is begun when that is so: with the searches that are over soon first, hardly any has to wait.
    """
    found: dict[int, list[Hypothesis]] = {}
    waiting: list[Search[Any]] = []
    while True:
        search, least = next(begun, None), 0.0
        if search is None:
            if not waiting:
                return found
            search = _with_those_at_its_length(_shortest_of(waiting), waiting)
        elif together and search.joins:
            least = search.sentences / 2  # who joins is less than a batch
        while search is not None and (search.rows >= _FEW or search.sentences >= least):
            if before_step is not None:
                before_step()
            search, ended = search.step()
            found.update(ended)
            if search is not None:
                search = _with_those_at_its_length(search, waiting)
        if search is not None:
            waiting.append(search)


def _shortest_of(waiting: list[Search[Any]]) -> Search[Any]:
    """It waits no more."""
    return waiting.pop(min(range(len(waiting)), key=lambda place: waiting[place].length))


def _with_those_at_its_length(search: Search[Any], waiting: list[Search[Any]]) -> Search[Any]:
    """Those that have joined wait no more."""
    for place in reversed(range(len(waiting))):
        if waiting[place].length == search.length:
            both = search.followed_by(waiting[place])
            if both is not None:
                search = both
                del waiting[place]
    return search
