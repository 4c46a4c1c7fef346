"""Beam search."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.scoring import (
    Constraints,
    Finished,
    Hypothesis,
    Penalties,
    next_log_probabilities,
    sums,
    to_hypotheses,
)
from attlas.decoding.search import Search
from attlas.decoding.surface import Hashes, Surface, best_texts
from attlas.models.encoder_decoder import S, SequenceToSequence, join_optional
from attlas.ops.cache import pad_and_concat
from attlas.ops.topk import largest

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class BeamSearch(Search[S]):
    """A `beam_search` between two steps.

    Args:
        alive: Log P of the tokens, of each hypothesis.
        surface: What they read as, where texts have to be different.
        keys: The `hashes` of the texts of the alive ones, None where they need none.
        ceiling: The score of the best, once it is settled, which others of its list stay below;
            else ∞.
    """

    num_beams: int
    n_best: int
    exhaustive: bool
    alive: Float[Tensor, "sentences width"]
    finished: Finished
    surface: Surface | None
    hashes: Hashes | None
    keys: Int[Tensor, "sentences width"] | None
    ceiling: Float[Tensor, " sentences"]

    def step(self) -> tuple["BeamSearch[S] | None", Mapping[int, list[Hypothesis]]]:
        sentences, width, length = self.tokens.shape
        logits, state = self.model.step(self.last, self.state)
        log_p = self.constraints.apply(next_log_probabilities(logits), self.tokens.flatten(0, 1))

        # One more than the beam, so that enough are left when END is among them.
        best, ids = (part.view(sentences, width, -1) for part in largest(log_p, self.num_beams + 1))
        totals, is_end = self.alive.unsqueeze(-1) + best, ids == END
        best_of_all = largest(totals.flatten(1), self.num_beams)[1]
        is_best = torch.zeros_like(is_end.flatten(1)).scatter(1, best_of_all, True).view_as(is_end)
        # Each hypothesis has one END at most, and so one number that is left of its row.
        ended = totals.masked_fill(~(is_end & is_best), _NEVER).amax(-1)
        scores = self._scored(ended, length + 1, state.coverage)
        finished = self._joined(scores, ended)

        best_scores, order = largest(totals.masked_fill(is_end, _NEVER).flatten(1), self.num_beams)
        cut = self.constraints.full(length) | torch.isneginf(best_scores[:, 0])
        longest = self.constraints.max_length
        if not self.exhaustive:
            longest = torch.full_like(longest, length + 1)
        bound = self.penalties.bound(best_scores[:, 0], longest + 1)
        is_finished = cut | (bound <= finished.scores[:, self.n_best - 1])
        hypotheses: Mapping[int, list[Hypothesis]] = {}
        if is_finished.any():
            unfinished = self.alive.masked_fill(~(cut.unsqueeze(1) & ended.isneginf()), _NEVER)
            hypotheses = self._left(is_finished.nonzero().squeeze(1), finished, unfinished)
            if len(hypotheses) == sentences:
                return None, hypotheses

        staying = (~is_finished).nonzero().squeeze(1)
        # Best first, so what cannot be (−∞: few beginnings yet, a forced prefix) is at the end.
        possible = int((best_scores[staying] > _NEVER).sum(1).max())
        beam_scores, order = best_scores[staying, :possible], order[staying, :possible]
        parents = staying.unsqueeze(1) * width + order // ids.shape[-1]
        token_ids = ids.flatten(1)[staying].gather(1, order)
        sentence_ids, token_mask, constraints = self.at, self.token_mask, self.constraints
        keys, ceiling = self.keys, self.ceiling
        if keys is not None and self.hashes is not None:
            of_parents = keys.flatten()[parents]
            keys = self.hashes.grown(of_parents, token_ids, begins=length == 0)
        if self.n_best > 1:
            best = finished.scores[:, 0]
            ceiling = torch.where((bound <= best) & ceiling.isposinf(), best, ceiling)
        if len(staying) < sentences:
            sentence_ids, token_mask, constraints = (
                sentence_ids[staying],
                token_mask[staying],
                constraints.select(staying),
            )
            finished, ceiling = finished.select(staying), ceiling[staying]
        next_search = replace(
            self,
            constraints=constraints,
            state=_select_rows(state, parents.flatten(), sentences * width),
            token_mask=token_mask,
            at=sentence_ids,
            tokens=torch.cat([self.tokens.flatten(0, 1)[parents], token_ids.unsqueeze(-1)], dim=-1),
            alive=beam_scores,
            finished=finished,
            keys=keys,
            ceiling=ceiling,
            last=token_ids.flatten(),
        )
        return next_search, hypotheses

    def _joined(
        self,
        scores: Float[Tensor, "sentences width"],
        log_probabilities: Float[Tensor, "sentences width"],
    ) -> Finished:
        """The finished ones with those that end now, but for what comes too late to be the best."""
        if self.n_best > 1:
            late = scores > self.ceiling.unsqueeze(1)
            scores = scores.masked_fill(late, _NEVER)
            log_probabilities = log_probabilities.masked_fill(late, _NEVER)
        return self.finished.joined(self.tokens, scores, log_probabilities, self.keys)

    def _left(
        self,
        leaving: Int[Tensor, " leaving"],
        finished: Finished,
        unfinished: Float[Tensor, "sentences width"],
    ) -> dict[int, list[Hypothesis]]:
        """The lists of the sentences that leave.

        Args:
            unfinished: Log P of what is cut off, or −∞.
        """
        scores = self._scored(unfinished, self.length, self.state.coverage)
        hypotheses = finished.select(leaving).lists()
        parts = to_hypotheses(self.tokens[leaving], scores[leaving], unfinished[leaving])
        return {
            sentence: best_texts(ended + cut_off, self.n_best, self.surface)
            for sentence, ended, cut_off in zip(
                self.at[leaving].tolist(), hypotheses, parts, strict=True
            )
        }

    def _scored(
        self,
        log_probabilities: Float[Tensor, "sentences width"],
        factors: int,
        coverage: Float[Tensor, "rows keys"] | None,
    ) -> Float[Tensor, "sentences width"]:
        if coverage is not None:
            coverage = coverage.view(*log_probabilities.shape, -1)
        return self.penalties.score(
            log_probabilities, factors, coverage, self.token_mask.unsqueeze(1)
        )

    def concat(self, other: "BeamSearch[S]") -> "BeamSearch[S] | None":
        if self.tokens.shape[1] != other.tokens.shape[1]:  # prefixes: not as many are alive yet
            return None
        return replace(
            self,
            **self._of_both(other),
            alive=pad_and_concat(self.alive, other.alive),
            finished=self.finished.concat(other.finished),
            keys=join_optional(self.keys, other.keys, pad_and_concat),
            ceiling=pad_and_concat(self.ceiling, other.ceiling),
        )


def beam_search(
    model: SequenceToSequence[S],
    state: S,
    token_mask: Bool[Tensor, "sentences keys"],
    constraints: Constraints,
    penalties: Penalties,
    first: int = 0,
    *,
    num_beams: int,
    n_best: int,
    exhaustive: bool,
    surface: Surface | None = None,
) -> BeamSearch[S]:
    """The best sentences among those whose every beginning is among the `num_beams` most probable.

    At each step every alive hypothesis is continued by every token. Where END is among the
    `num_beams` most probable of all these continuations, its hypothesis finishes; of those by other
    tokens the `num_beams` most probable stay alive.

    The best one is settled when it scores at least log P / lp of the most probable alive one. lp is
    that of its present length and END: none alive could be better by ending next. This is the usual
    stop; a longer continuation, divided by a larger lp, might still have scored higher. If
    `exhaustive`, lp is that of the longest allowed: as log P only falls, stopping then loses
    nothing that the beam would have found, and a beam as wide as there are continuations of all
    beginnings finds the very best. Without a length penalty both are the same. A beam of 1 without
    penalties is greedy. Of equals, the first comes first: the lower id, the child of the better
    parent, the hypothesis that finished earlier.

    A sentence stops when the last place of its list is settled in the same way. What finishes after
    the best was settled and scores higher is left out: the best does not depend on n_best. With a
    `surface` all texts of a list are different; the tokens with the highest score stand for a text.

    At its maximum length a sentence fills the free places of its list with cut-off hypotheses,
    ranked after the finished ones. All sentences move at once, and those that are done leave the
    batch.

    The search before its first token; `first` is the number of its first sentence.
    """
    sentence_ids = torch.arange(first, first + len(token_mask), device=token_mask.device)
    beam_scores = torch.zeros(
        len(token_mask), 1, dtype=sums(token_mask.device), device=token_mask.device
    )
    surface = surface if n_best > 1 else None
    hashes = None if surface is None else surface.hashes
    # Where texts are compared by their bytes, some that differ may still read alike.
    capacity = n_best if surface is None else 2 * n_best
    return BeamSearch(
        model=model,
        penalties=penalties,
        constraints=constraints,
        state=state,
        token_mask=token_mask,
        at=sentence_ids,
        tokens=sentence_ids.new_empty(len(token_mask), 1, 0),
        last=torch.full_like(sentence_ids, BEGIN),
        num_beams=num_beams,
        n_best=n_best,
        exhaustive=exhaustive,
        alive=beam_scores,
        finished=Finished.none(len(token_mask), capacity, beam_scores, keyed=hashes is not None),
        surface=surface,
        hashes=hashes and hashes.to(token_mask.device),
        keys=torch.zeros_like(sentence_ids).unsqueeze(1) if hashes else None,
        ceiling=beam_scores.new_full((len(token_mask),), float("inf")),
    )


def _select_rows(state: S, rows: Int[Tensor, " chosen"], step: int) -> S:
    """The state of these rows; left as it is where they are all of its `step` rows, in order."""
    if len(rows) == step and torch.equal(rows, torch.arange(step, device=rows.device)):
        return state
    return state.select(rows)
