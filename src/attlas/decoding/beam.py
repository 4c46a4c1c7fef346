"""Beam search."""

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
from attlas.models.sequence_to_sequence import S, SequenceToSequence

_NEVER = float("-inf")


def beam_search(
    model: SequenceToSequence[S],
    state: S,
    real: Bool[Tensor, "batch slots"],
    constraints: Constraints,
    penalties: Penalties,
    *,
    beam: int,
    n_best: int,
    exhaustive: bool,
) -> list[list[Hypothesis]]:
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
    """
    found: list[list[Hypothesis]] = [[] for _ in range(len(real))]
    at = torch.arange(len(real), device=real.device)  # which sentence each row of the search is
    tokens = at.new_empty(len(real), 1, 0)
    alive = torch.zeros(len(real), 1, dtype=sums(real.device), device=real.device)
    finished = Finished.none(len(real), n_best, alive)
    last = torch.full_like(at, BEGIN)
    asked, source_real = constraints, real
    while True:
        sentences, width, length = tokens.shape
        before = state.coverage
        logits, state = model.step(last, state)
        log_p = asked.apply(predicted(logits), tokens.flatten(0, 1))

        # One more than the beam, so that enough are left when END is among them.
        best, ids = (part.view(sentences, width, -1) for part in largest(log_p, beam + 1))
        totals, is_end = alive.unsqueeze(-1) + best, ids == END
        best_of_all = largest(totals.flatten(1), beam)[1]
        among = torch.zeros_like(is_end.flatten(1)).scatter(1, best_of_all, True).view_as(is_end)
        # Each hypothesis has one END at most, and so one number that is left of its row.
        ended = totals.masked_fill(~(is_end & among), _NEVER).amax(-1)
        scores = _scored(penalties, ended, length + 1, state.coverage, source_real)
        finished = finished.joined(tokens, scores, ended)

        kept, order = largest(totals.masked_fill(is_end, _NEVER).flatten(1), beam)
        cut = asked.full(length) | torch.isneginf(kept[:, 0])
        longest = asked.max_length if exhaustive else torch.full_like(at, length + 1)
        hopeless = penalties.bound(kept[:, 0], longest + 1) <= finished.worst
        leaving = cut | hopeless
        if leaving.any():
            unfinished = alive.masked_fill(~(cut.unsqueeze(1) & ended.isneginf()), _NEVER)
            scores = _scored(penalties, unfinished, length, before, source_real)
            done = leaving.nonzero().squeeze(1)
            whole = finished.select(done).lists()
            parts = listed(tokens[done], scores[done], unfinished[done])
            for sentence, ended_, cut_off in zip(at[done].tolist(), whole, parts, strict=True):
                found[sentence] = ranked(ended_ + cut_off)[:n_best]
            if len(done) == sentences:
                return found

        staying = (~leaving).nonzero().squeeze(1)
        # Best first, so what cannot be (−∞: few beginnings yet, a forced prefix) is at the end.
        possible = int((kept[staying] > _NEVER).sum(1).max())
        alive, order = kept[staying, :possible], order[staying, :possible]
        parents = staying.unsqueeze(1) * width + order // ids.shape[-1]
        chosen = ids.flatten(1)[staying].gather(1, order)
        tokens = torch.cat([tokens.flatten(0, 1)[parents], chosen.unsqueeze(-1)], dim=-1)
        last = chosen.flatten()
        if len(staying) < sentences:
            at, source_real = at[staying], source_real[staying]
            asked, finished = asked.select(staying), finished.select(staying)
        state = _moved(state, parents.flatten(), sentences * width)


def _moved(state: S, rows: Int[Tensor, " chosen"], now: int) -> S:
    """The state of these rows; left as it is where they are all of its `now` rows, in order."""
    if len(rows) == now and torch.equal(rows, torch.arange(now, device=rows.device)):
        return state
    return state.select(rows)


def _scored(
    penalties: Penalties,
    log_probabilities: Float[Tensor, "sentences width"],
    factors: int,
    coverage: Float[Tensor, "rows slots"] | None,
    real: Bool[Tensor, "sentences slots"],
) -> Float[Tensor, "sentences width"]:
    if coverage is not None:
        coverage = coverage.view(*log_probabilities.shape, -1)
    return penalties.score(log_probabilities, factors, coverage, real.unsqueeze(1))
