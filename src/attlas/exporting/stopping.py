"""What the beam search of attlas would have found by the time it stops."""

import math
from collections.abc import Sequence

from attlas.decoding import Hypothesis


def length_penalty(factors: int, alpha: float) -> float:
    """((5 + factors) / 6)^α, as in `Penalties`."""
    return float(((5.0 + factors) / 6.0) ** alpha)


def found_in_time(
    hypotheses: Sequence[Hypothesis],
    sums: Sequence[Sequence[float]],
    texts: Sequence[str],
    n_best: int,
    alpha: float,
) -> list[Hypothesis]:
    """The hypotheses of one sentence, without those that come after attlas would have stopped.

    `beam_search` takes the best for settled when it scores at least log P / lp of the most probable
    alive one, lp being that of its present length and END; what finishes later and scores higher is
    left out. It stops when the n_best-th of different texts is settled in the same way. Of the
    alive ones those are known that became one of the hypotheses.

    sums[h][n]: log P of the first n + 1 tokens of hypothesis h. With something lower in its place
    the stop comes too early, never too late: what is found then is found in any case.
    """
    ceiling = math.inf
    for step in range(max(len(one.tokens) for one in hypotheses)):
        finished = [
            (one, text)
            for one, text in zip(hypotheses, texts, strict=True)
            if one.finished and len(one.tokens) <= step and one.score <= ceiling
        ]
        alive = max(
            of[step] for one, of in zip(hypotheses, sums, strict=True) if len(one.tokens) > step
        )
        of_texts: dict[str, float] = {}
        for one, text in finished:
            of_texts[text] = max(one.score, of_texts.get(text, one.score))
        scores = sorted(of_texts.values(), reverse=True)
        bound = alive / length_penalty(step + 2, alpha)
        if len(scores) >= n_best and bound <= scores[n_best - 1]:
            return [one for one, _ in finished]
        if scores and bound <= scores[0]:
            ceiling = min(ceiling, scores[0])
    return [one for one in hypotheses if not one.finished or one.score <= ceiling]
