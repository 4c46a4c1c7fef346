"""What the beam search of attlas would have found by the time it stops."""

from collections.abc import Sequence

from attlas.decoding import Hypothesis


def length_penalty(factors: int, alpha: float) -> float:
    """((5 + factors) / 6)^α, as in `Penalties`."""
    return float(((5.0 + factors) / 6.0) ** alpha)


def found_in_time(
    hypotheses: Sequence[Hypothesis],
    sums: Sequence[Sequence[float]],
    n_best: int,
    alpha: float,
) -> list[Hypothesis]:
    """The hypotheses of one sentence, without those that come after attlas would have stopped.

    `beam_search` stops a sentence when its n_best-th finished hypothesis scores at least log P / lp
    of the most probable alive one, lp being that of its present length and END. Of the alive ones
    those are known that became one of the hypotheses.

    sums[h][n]: log P of the first n + 1 tokens of hypothesis h. With something lower in its place
    the stop comes too early, never too late: what is found then is found in any case.
    """
    for step in range(max(len(one.tokens) for one in hypotheses)):
        finished = [one for one in hypotheses if one.finished and len(one.tokens) <= step]
        alive = max(
            of[step] for one, of in zip(hypotheses, sums, strict=True) if len(one.tokens) > step
        )
        scores = sorted((one.score for one in finished), reverse=True)
        if len(scores) >= n_best and alive / length_penalty(step + 2, alpha) <= scores[n_best - 1]:
            return finished
    return list(hypotheses)
