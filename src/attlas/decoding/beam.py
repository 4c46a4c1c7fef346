"""Beam search."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.constraints import Constraints
from attlas.decoding.finished import Finished
from attlas.decoding.hypothesis import Hypothesis, listed, ranked
from attlas.decoding.largest import largest
from attlas.decoding.penalties import Penalties
from attlas.decoding.prediction import predicted, sums
from attlas.decoding.search import Search
from attlas.layers.stacked import stacked
from attlas.models.sequence_to_sequence import S, SequenceToSequence

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class Beams(Search[S]):
    """A `beam_search` between two steps.

    alive: log P of the tokens, of each hypothesis.
    """

    beam: int
    n_best: int
    exhaustive: bool
    alive: Float[Tensor, "sentences width"]
    finished: Finished

    def step(self) -> tuple["Beams[S] | None", Mapping[int, list[Hypothesis]]]:
        sentences, width, length = self.tokens.shape
        logits, state = self.model.step(self.last, self.state)
        log_p = self.constraints.apply(predicted(logits), self.tokens.flatten(0, 1))

        # One more than the beam, so that enough are left when END is among them.
        best, ids = (part.view(sentences, width, -1) for part in largest(log_p, self.beam + 1))
        totals, is_end = self.alive.unsqueeze(-1) + best, ids == END
        best_of_all = largest(totals.flatten(1), self.beam)[1]
        among = torch.zeros_like(is_end.flatten(1)).scatter(1, best_of_all, True).view_as(is_end)
        # Each hypothesis has one END at most, and so one number that is left of its row.
        ended = totals.masked_fill(~(is_end & among), _NEVER).amax(-1)
        scores = self._scored(ended, length + 1, state.coverage)
        finished = self.finished.joined(self.tokens, scores, ended)

        kept, order = largest(totals.masked_fill(is_end, _NEVER).flatten(1), self.beam)
        cut = self.constraints.full(length) | torch.isneginf(kept[:, 0])
        longest = self.constraints.max_length
        if not self.exhaustive:
            longest = torch.full_like(longest, length + 1)
        hopeless = self.penalties.bound(kept[:, 0], longest + 1) <= finished.worst
        leaving = cut | hopeless
        found: Mapping[int, list[Hypothesis]] = {}
        if leaving.any():
            unfinished = self.alive.masked_fill(~(cut.unsqueeze(1) & ended.isneginf()), _NEVER)
            found = self._left(leaving.nonzero().squeeze(1), finished, unfinished)
            if len(found) == sentences:
                return None, found

        staying = (~leaving).nonzero().squeeze(1)
        # Best first, so what cannot be (−∞: few beginnings yet, a forced prefix) is at the end.
        possible = int((kept[staying] > _NEVER).sum(1).max())
        alive, order = kept[staying, :possible], order[staying, :possible]
        parents = staying.unsqueeze(1) * width + order // ids.shape[-1]
        chosen = ids.flatten(1)[staying].gather(1, order)
        at, real, constraints = self.at, self.real, self.constraints
        if len(staying) < sentences:
            at, real, constraints = at[staying], real[staying], constraints.select(staying)
            finished = finished.select(staying)
        grown = replace(
            self,
            constraints=constraints,
            state=_moved(state, parents.flatten(), sentences * width),
            real=real,
            at=at,
            tokens=torch.cat([self.tokens.flatten(0, 1)[parents], chosen.unsqueeze(-1)], dim=-1),
            alive=alive,
            finished=finished,
            last=chosen.flatten(),
        )
        return grown, found

    def _left(
        self,
        leaving: Int[Tensor, " leaving"],
        finished: Finished,
        unfinished: Float[Tensor, "sentences width"],
    ) -> dict[int, list[Hypothesis]]:
        """The lists of the sentences that leave; unfinished: log P of what is cut off, or −∞."""
        scores = self._scored(unfinished, self.length, self.state.coverage)
        whole = finished.select(leaving).lists()
        parts = listed(self.tokens[leaving], scores[leaving], unfinished[leaving])
        return {
            sentence: ranked(ended + cut_off)[: self.n_best]
            for sentence, ended, cut_off in zip(
                self.at[leaving].tolist(), whole, parts, strict=True
            )
        }

    def _scored(
        self,
        log_probabilities: Float[Tensor, "sentences width"],
        factors: int,
        coverage: Float[Tensor, "rows slots"] | None,
    ) -> Float[Tensor, "sentences width"]:
        if coverage is not None:
            coverage = coverage.view(*log_probabilities.shape, -1)
        return self.penalties.score(log_probabilities, factors, coverage, self.real.unsqueeze(1))

    def followed_by(self, other: "Beams[S]") -> "Beams[S] | None":
        if self.tokens.shape[1] != other.tokens.shape[1]:  # prefixes: not as many are alive yet
            return None
        return replace(
            self,
            **self._of_both(other),
            alive=stacked(self.alive, other.alive),
            finished=self.finished.followed_by(other.finished),
        )


def beam_search(
    model: SequenceToSequence[S],
    state: S,
    real: Bool[Tensor, "sentences slots"],
    constraints: Constraints,
    penalties: Penalties,
    first: int = 0,
    *,
    beam: int,
    n_best: int,
    exhaustive: bool,
) -> Beams[S]:
    """The best sentences among those whose every beginning is among the `beam` most probable.

    At each step every alive hypothesis is continued by every token. Where END is among the `beam`
    most probable of all these continuations, its hypothesis finishes; of those by other tokens the
    `beam` most probable stay alive.

    A sentence stops when its n_best-th finished hypothesis scores at least log P / lp of the most
    probable alive one. lp is that of its present length and END: none alive could enter the list by
    ending next. This is the usual stop; a longer continuation, divided by a larger lp, might still
    have scored higher. If `exhaustive`, lp is that of the longest allowed: as log P only falls,
    stopping then loses nothing that the beam would have found, and a beam as wide as there are
    continuations of all beginnings finds the very best. Without a length penalty both are the same.
    A beam of 1 without penalties is greedy. Of equals, the first comes first: the lower id, the
    child of the better parent, the hypothesis that finished earlier.

    At its maximum length a sentence fills the free places of its list with cut-off hypotheses,
    ranked after the finished ones; a list is shorter than n_best only where nothing else exists.
    All sentences move at once, and those that are done leave the batch.

    The search before its first token; `first` is the number of its first sentence.
    """
    at = torch.arange(first, first + len(real), device=real.device)
    alive = torch.zeros(len(real), 1, dtype=sums(real.device), device=real.device)
    return Beams(
        model, penalties, constraints, state, real, at,
        tokens=at.new_empty(len(real), 1, 0),
        last=torch.full_like(at, BEGIN),
        beam=beam,
        n_best=n_best,
        exhaustive=exhaustive,
        alive=alive,
        finished=Finished.none(len(real), n_best, alive),
    )  # fmt: skip


def _moved(state: S, rows: Int[Tensor, " chosen"], now: int) -> S:
    """The state of these rows; left as it is where they are all of its `now` rows, in order."""
    if len(rows) == now and torch.equal(rows, torch.arange(now, device=rows.device)):
        return state
    return state.select(rows)
