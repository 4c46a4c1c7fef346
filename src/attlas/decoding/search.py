"""Searches step by step, and the joining of searches with few rows left."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.scoring import Constraints, Hypothesis, Penalties, next_log_probabilities, sums
from attlas.models.encoder_decoder import Joinable, S, SequenceToSequence
from attlas.ops.cache import pad_and_concat
from attlas.ops.topk import largest

_FEW = 32  # rows: a step of fewer is hardly faster, because it reads all weights for them


@dataclass(frozen=True, slots=True, eq=False)
class Search(ABC, Generic[S]):
    """A search of some sentences, one token a step. It is a value: `step` returns a new one.

    A row is a hypothesis, of which a sentence has one or `width`.

    Args:
        at: The number of each sentence.
        last: The token that the model reads next.
    """

    model: SequenceToSequence[S]
    penalties: Penalties
    constraints: Constraints
    state: S
    token_mask: Bool[Tensor, "sentences keys"]
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
        """Return True if the model's state can go on with that of another search: whether its very
        class says how, as of a class that inherits it there may be more to join.
        """
        return isinstance(self.state, Joinable) and "concat" in vars(type(self.state))

    @abstractmethod
    def step(self) -> tuple[Self | None, Mapping[int, list[Hypothesis]]]:
        """The search one token further, None where all are done, and what ended with this step:
        the hypotheses of sentences, by their numbers."""

    @abstractmethod
    def concat(self, other: Self) -> Self | None:
        """Both as one, where both are of the same length; None where they do not go together."""

    def _of_both(self, other: Self) -> dict[str, Any]:
        """What every search has, of the sentences of this one and then of the other."""
        state: Any = self.state
        return {
            "constraints": self.constraints.concat(other.constraints),
            "state": state.concat(other.state),
            "token_mask": pad_and_concat(self.token_mask, other.token_mask),
            "at": pad_and_concat(self.at, other.at),
            "tokens": pad_and_concat(self.tokens, other.tokens),
            "last": pad_and_concat(self.last, other.last),
        }


def run_searches(
    searches: Iterator[Search[Any]],
    *,
    together: bool,
    before_step: Callable[[], None] | None = None,
    on_ended: Callable[[int], None] | None = None,
) -> dict[int, list[Hypothesis]]:
    """What all of them find.

    Args:
        before_step: Called before every step; what it raises ends all of them.
        on_ended: Called with the number of sentences that ended, after a step that ended some.
        together: Of each search go on, once few of its sentences are left, with those of the next
            one that comes to the same length, instead of reading all weights for a few rows of
            each. The next is begun when that is so: with the searches that are over soon first,
            hardly any has to wait.
    """
    hypotheses: dict[int, list[Hypothesis]] = {}
    pending: list[Search[Any]] = []
    while True:
        search, least = next(searches, None), 0.0
        if search is None:
            if not pending:
                return hypotheses
            search = _with_those_at_its_length(_shortest_of(pending), pending)
        elif together and search.joins:
            least = search.sentences / 2  # who joins is less than a batch
        while search is not None and (search.rows >= _FEW or search.sentences >= least):
            if before_step is not None:
                before_step()
            search, ended = search.step()
            hypotheses.update(ended)
            if ended and on_ended is not None:
                on_ended(len(ended))
            if search is not None:
                search = _with_those_at_its_length(search, pending)
        if search is not None:
            pending.append(search)


def _shortest_of(waiting: list[Search[Any]]) -> Search[Any]:
    """It waits no more."""
    return waiting.pop(min(range(len(waiting)), key=lambda index: waiting[index].length))


def _with_those_at_its_length(search: Search[Any], waiting: list[Search[Any]]) -> Search[Any]:
    """Those that have joined wait no more."""
    for index in reversed(range(len(waiting))):
        if waiting[index].length == search.length:
            joined = search.concat(waiting[index])
            if joined is not None:
                search = joined
                del waiting[index]
    return search


# One hypothesis per row, followed from token to token.


Choose = Callable[[Float[Tensor, "rows vocabulary"], Int[Tensor, " rows"], int], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class SingleHypothesisSearch(Search[S]):
    """The hypothesis of each row when `choose` picks every token.

    `choose(log_probabilities, at, length) → tokens (rows,)` gets −∞ for what may not come. A row
    that ended, or may not grow, leaves the batch.

    Args:
        total: Log P of the tokens.
    """

    choose: Choose
    total: Float[Tensor, " rows"]

    @classmethod
    def begun(
        cls,
        model: SequenceToSequence[S],
        state: S,
        token_mask: Bool[Tensor, "rows keys"],
        constraints: Constraints,
        penalties: Penalties,
        choose: Choose,
        first: int = 0,
    ) -> "SingleHypothesisSearch[S]":
        """Before the first token; `first` is the number of the first sentence."""
        sentence_ids = torch.arange(first, first + len(token_mask), device=token_mask.device)
        return cls(
            model=model,
            penalties=penalties,
            constraints=constraints,
            state=state,
            token_mask=token_mask,
            at=sentence_ids,
            tokens=sentence_ids.new_empty(len(token_mask), 0),
            last=torch.full_like(sentence_ids, BEGIN),
            choose=choose,
            total=torch.zeros(
                len(token_mask), dtype=sums(token_mask.device), device=token_mask.device
            ),
        )

    def step(self) -> tuple["SingleHypothesisSearch[S] | None", Mapping[int, list[Hypothesis]]]:
        logits, state = self.model.step(self.last, self.state)
        log_p = self.constraints.apply(next_log_probabilities(logits), self.tokens)
        last = self.choose(log_p, self.at, self.length)
        gained = log_p.gather(1, last.unsqueeze(1)).squeeze(1)
        ended = (last == END) & (gained > float("-inf"))
        is_finished = ended | self.constraints.full(self.length) | torch.isneginf(gained)
        next_search = replace(
            self,
            state=state,
            tokens=torch.cat([self.tokens, last.unsqueeze(1)], dim=1),
            last=last,
            total=self.total + gained,
        )
        if not is_finished.any():
            return next_search, {}
        hypotheses = self._left(is_finished, ended, gained, state.coverage)
        if len(hypotheses) == self.rows:
            return None, hypotheses
        return next_search._select((~is_finished).nonzero().squeeze(1)), hypotheses

    def _left(
        self,
        leaving: Bool[Tensor, " rows"],
        ended: Bool[Tensor, " rows"],
        gained: Float[Tensor, " rows"],
        coverage: Float[Tensor, "rows keys"] | None,
    ) -> dict[int, list[Hypothesis]]:
        """The hypotheses of the rows that leave: with END or, cut off, without their last token."""
        log_p = torch.where(ended, self.total + gained, self.total)
        of_whole = self.penalties.score(log_p, self.length + 1, coverage, self.token_mask)
        of_part = self.penalties.score(log_p, self.length, self.state.coverage, self.token_mask)
        score = torch.where(ended, of_whole, of_part)
        parts = (self.at, self.tokens, score, log_p, ended)
        return {
            sentence: [Hypothesis(tuple(tokens), *values)]
            for sentence, tokens, *values in zip(*(p[leaving].tolist() for p in parts), strict=True)
        }

    def _select(self, rows: Int[Tensor, " chosen"]) -> Self:
        return replace(
            self,
            constraints=self.constraints.select(rows),
            state=self.state.select(rows),
            token_mask=self.token_mask[rows],
            at=self.at[rows],
            tokens=self.tokens[rows],
            last=self.last[rows],
            total=self.total[rows],
        )

    def concat(self, other: "SingleHypothesisSearch[S]") -> "SingleHypothesisSearch[S] | None":
        if self.choose is not other.choose:
            return None
        return replace(self, **self._of_both(other), total=pad_and_concat(self.total, other.total))


# Greedy search.


def greedy_search(
    model: SequenceToSequence[S],
    state: S,
    token_mask: Bool[Tensor, "batch keys"],
    constraints: Constraints,
    penalties: Penalties,
    first: int = 0,
) -> SingleHypothesisSearch[S]:
    """y_t = argmax P(y | y_<t, X): the most probable token each time, one hypothesis a sentence.

    Equally probable tokens: the lowest id. The penalties make the score, not the choice. The search
    before its first token; `first` is the number of its first sentence.
    """
    return SingleHypothesisSearch.begun(
        model, state, token_mask, constraints, penalties, _most_probable, first
    )


def _most_probable(
    log_probabilities: Float[Tensor, "rows vocabulary"], rows: Int[Tensor, " rows"], step: int
) -> Int[Tensor, " rows"]:
    return largest(log_probabilities, 1)[1].squeeze(1)  # in a fraction of the time of argmax
