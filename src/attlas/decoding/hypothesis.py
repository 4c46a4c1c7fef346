"""What a search finds."""

from dataclasses import dataclass


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


def ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Best first: finished ones before cut-off ones, then by score; equals keep their order."""
    return sorted(hypotheses, key=lambda one: (not one.finished, -one.score))
