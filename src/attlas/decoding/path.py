"""One hypothesis per row, followed from token to token."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.constraints import Constraints
from attlas.decoding.hypothesis import Hypothesis
from attlas.decoding.penalties import Penalties
from attlas.decoding.prediction import predicted, sums
from attlas.models.sequence_to_sequence import S, SequenceToSequence

Choose = Callable[[Float[Tensor, "rows vocabulary"], Int[Tensor, " rows"], int], Tensor]


def follow(
    model: SequenceToSequence[S],
    state: S,
    real: Bool[Tensor, "batch slots"],
    constraints: Constraints,
    penalties: Penalties,
    choose: Choose,
) -> list[Hypothesis]:
    """The hypothesis of each row when `choose` picks every token.

    `choose(log_probabilities, rows, step) → tokens (rows,)` gets −∞ for what may not come, and
    which rows of the batch these are. A row that ended, or may not grow, leaves the batch.
    """
    found: dict[int, Hypothesis] = {}
    at = torch.arange(len(real), device=real.device)
    asked = constraints
    tokens = at.new_empty(len(real), 0)
    total = torch.zeros(len(real), dtype=sums(real.device), device=real.device)
    last = torch.full_like(at, BEGIN)
    while True:
        length = tokens.shape[1]
        before = state.coverage
        logits, state = model.step(last, state)
        log_p = asked.apply(predicted(logits), tokens)
        last = choose(log_p, at, length)
        gained = log_p.gather(1, last.unsqueeze(1)).squeeze(1)
        ended = (last == END) & (gained > float("-inf"))
        leaving = ended | asked.full(length) | torch.isneginf(gained)
        if leaving.any():
            log_p = torch.where(ended, total + gained, total)
            of_whole = penalties.score(log_p, length + 1, state.coverage, real[at])
            of_part = penalties.score(log_p, length, before, real[at])
            score = torch.where(ended, of_whole, of_part)
            for row, *hypothesis in zip(
                *(part[leaving].tolist() for part in (at, tokens, score, log_p, ended)), strict=True
            ):
                found[row] = Hypothesis(tuple(hypothesis[0]), *hypothesis[1:])
            if len(found) == len(real):
                return [found[row] for row in range(len(real))]
            staying = (~leaving).nonzero().squeeze(1)
            state, asked = state.select(staying), asked.select(staying)
            at, tokens, total = at[staying], tokens[staying], total[staying]
            last, gained = last[staying], gained[staying]
        tokens = torch.cat([tokens, last.unsqueeze(1)], dim=1)
        total = total + gained
