"""One hypothesis per row, followed from token to token."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.constraints import Constraints
from attlas.decoding.hypothesis import Hypothesis
from attlas.decoding.penalties import Penalties
from attlas.decoding.prediction import predicted, sums
from attlas.decoding.search import Search
from attlas.layers.stacked import stacked
from attlas.models.sequence_to_sequence import S, SequenceToSequence

Choose = Callable[[Float[Tensor, "rows vocabulary"], Int[Tensor, " rows"], int], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Paths(Search[S]):
    """The hypothesis of each row when `choose` picks every token.

    `choose(log_probabilities, at, length) → tokens (rows,)` gets −∞ for what may not come. A row
    that ended, or may not grow, leaves the batch. total: log P of the tokens.
    """

    choose: Choose
    total: Float[Tensor, " rows"]

    @classmethod
    def begun(
        cls,
        model: SequenceToSequence[S],
        state: S,
        real: Bool[Tensor, "rows slots"],
        constraints: Constraints,
        penalties: Penalties,
        choose: Choose,
        first: int = 0,
    ) -> "Paths[S]":
        """Before the first token; `first` is the number of the first sentence."""
        at = torch.arange(first, first + len(real), device=real.device)
        return cls(
            model, penalties, constraints, state, real, at,
            tokens=at.new_empty(len(real), 0),
            last=torch.full_like(at, BEGIN),
            choose=choose,
            total=torch.zeros(len(real), dtype=sums(real.device), device=real.device),
        )  # fmt: skip

    def step(self) -> tuple["Paths[S] | None", Mapping[int, list[Hypothesis]]]:
        logits, state = self.model.step(self.last, self.state)
        log_p = self.constraints.apply(predicted(logits), self.tokens)
        last = self.choose(log_p, self.at, self.length)
        gained = log_p.gather(1, last.unsqueeze(1)).squeeze(1)
        ended = (last == END) & (gained > float("-inf"))
        leaving = ended | self.constraints.full(self.length) | torch.isneginf(gained)
        grown = replace(
            self,
            state=state,
            tokens=torch.cat([self.tokens, last.unsqueeze(1)], dim=1),
            last=last,
            total=self.total + gained,
        )
        if not leaving.any():
            return grown, {}
        found = self._left(leaving, ended, gained, state.coverage)
        if len(found) == self.rows:
            return None, found
        return grown._select((~leaving).nonzero().squeeze(1)), found

    def _left(
        self,
        leaving: Bool[Tensor, " rows"],
        ended: Bool[Tensor, " rows"],
        gained: Float[Tensor, " rows"],
        coverage: Float[Tensor, "rows slots"] | None,
    ) -> dict[int, list[Hypothesis]]:
        """The hypotheses of the rows that leave: with END or, cut off, without their last token."""
        log_p = torch.where(ended, self.total + gained, self.total)
        of_whole = self.penalties.score(log_p, self.length + 1, coverage, self.real)
        of_part = self.penalties.score(log_p, self.length, self.state.coverage, self.real)
        score = torch.where(ended, of_whole, of_part)
        parts = (self.at, self.tokens, score, log_p, ended)
        return {
            sentence: [Hypothesis(tuple(tokens), *told)]
            for sentence, tokens, *told in zip(*(p[leaving].tolist() for p in parts), strict=True)
        }

    def _select(self, rows: Int[Tensor, " chosen"]) -> Self:
        return replace(
            self,
            constraints=self.constraints.select(rows),
            state=self.state.select(rows),
            real=self.real[rows],
            at=self.at[rows],
            tokens=self.tokens[rows],
            last=self.last[rows],
            total=self.total[rows],
        )

    def followed_by(self, other: "Paths[S]") -> "Paths[S] | None":
        if self.choose is not other.choose:
            return None
        return replace(self, **self._of_both(other), total=stacked(self.total, other.total))
