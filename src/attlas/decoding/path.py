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
    tokens = at.new_empty(len(real), 0)
    total = torch.zeros(len(real), dtype=sums(real.device), device=real.device)
    last = torch.full_like(at, BEGIN)
    while True:
        length = tokens.shape[1]
        before = state.coverage
        logits, state = model.step(last, state)
        asked = constraints.select(at)
        log_p = asked.apply(predicted(logits), tokens)
        last = choose(log_p, at, length)
        gained = log_p.gather(1, last.unsqueeze(1)).squeeze(1)
        ended = (last == END) & (gained > float("-inf"))
        leaving = ended | asked.full(length) | torch.isneginf(gained)
        if leaving.any():
            whole = total + gained
            of_whole = penalties.score(whole, length + 1, state.coverage, real[at])
            of_part = penalties.score(total, length, before, real[at])
            for row in leaving.nonzero().squeeze(1).tolist():
                done = bool(ended[row])
                score, log_probability = (of_whole, whole) if done else (of_part, total)
                found[int(at[row])] = Hypothesis(
                    tuple(tokens[row].tolist()),
                    float(score[row]),
                    float(log_probability[row]),
                    done,
                )
            if leaving.all():
                return [found[row] for row in range(len(real))]
            staying = (~leaving).nonzero().squeeze(1)
            state = state.select(staying)
            at, tokens, total = at[staying], tokens[staying], total[staying]
            last, gained = last[staying], gained[staying]
        tokens = torch.cat([tokens, last.unsqueeze(1)], dim=1)
        total = total + gained
