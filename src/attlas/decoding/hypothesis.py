"""What a search finds."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One target sentence and how probable the model holds it.

    tokens: ids without BEGIN and END. log_probability: Σ log P(token | before, source) under the
    model itself (natural logarithm, no temperature), END's factor included where it is finished.
    score: what ranks it, see `Penalties`. finished: whether it ended with END; False = it was cut
    off at the maximum length.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool


def listed(
    tokens: Int[Tensor, "sentences places longest"],
    scores: Float[Tensor, "sentences places"],
    log_probabilities: Float[Tensor, "sentences places"],
    lengths: Int[Tensor, "sentences places"] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, but those of probability 0.

    lengths: of finished ones; None = they are cut off, and all as long as `tokens`.
    """
    finished = lengths is not None
    if lengths is None:
        lengths = torch.full_like(scores, tokens.shape[2], dtype=torch.long)
    return [
        [
            Hypothesis(tuple(ids[:length]), score, log_probability, finished)
            for ids, length, score, log_probability in zip(*of_sentence, strict=True)
            if log_probability > float("-inf")
        ]
        for of_sentence in zip(
            *(part.tolist() for part in (tokens, lengths, scores, log_probabilities)), strict=True
        )
    ]


def ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Best first: finished ones before cut-off ones, then by score; equals keep their order."""
    return sorted(hypotheses, key=lambda one: (not one.finished, -one.score))
