"""Searches that go on step by step, and the few that are left of several, which go on as one."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self, runtime_checkable

from attlas.decoding.hypothesis import Hypothesis
from attlas.models.sequence_to_sequence import S

_FEW = 32  # rows: a step of fewer is hardly faster, because it reads all weights for them


@runtime_checkable
class Search(Protocol):
    """Of some sentences at a time, one token a step: a value, which a step leaves as it was."""

    @property
    def rows(self) -> int:
        """How many hypotheses are followed."""

    @property
    def sentences(self) -> int:
        """How many sentences they are of."""

    @property
    def length(self) -> int:
        """How many tokens each of them has."""

    @property
    def joins(self) -> bool:
        """Whether the model's state can go on with that of another search."""

    def step(self) -> tuple[Self | None, Mapping[int, list[Hypothesis]]]:
        """The search one token further, None where all are done, and what ended with this step:
        the hypotheses of sentences, by their numbers."""

    def followed_by(self, other: Self) -> Self | None:
        """Both as one, where both are of the same length; None where they do not go together."""


def found_by(begun: Iterator[Search], *, together: bool) -> dict[int, list[Hypothesis]]:
    """What all of them find.

    together: of each search go on, once few of its sentences are left, with those of the next one
    that comes to the same length, instead of reading all weights for a few rows of each. The next
    is begun when that is so: with the searches that are over soon first, hardly any has to wait.
    """
    found: dict[int, list[Hypothesis]] = {}
    waiting: list[Search] = []
    while True:
        search, least = next(begun, None), 0.0
        if search is None:
            if not waiting:
                return found
            search = _with_those_at_its_length(_shortest_of(waiting), waiting)
        elif together and search.joins:
            least = search.sentences / 2  # who joins is less than a batch
        while search is not None and (search.rows >= _FEW or search.sentences >= least):
            search, ended = search.step()
            found.update(ended)
            if search is not None:
                search = _with_those_at_its_length(search, waiting)
        if search is not None:
            waiting.append(search)


def _shortest_of(waiting: list[Search]) -> Search:
    """It waits no more."""
    return waiting.pop(min(range(len(waiting)), key=lambda place: waiting[place].length))


def _with_those_at_its_length(search: Search, waiting: list[Search]) -> Search:
    """Those that have joined wait no more."""
    for place in reversed(range(len(waiting))):
        if waiting[place].length == search.length:
            both = search.followed_by(waiting[place])
            if both is not None:
                search = both
                del waiting[place]
    return search


def can_join(state: object) -> bool:
    """Whether its very class says how: of a class that inherits it there may be more to join."""
    return "followed_by" in vars(type(state))


def one_state(state: S, other: S) -> S:
    """The rows of both; of a class that can join."""
    both: Any = state
    joined: S = both.followed_by(other)
    return joined
