"""How good a model was after how long: the moments of a curve, and what there was by each.

This file needs nothing but Python, so that every peer's environment can read it.
"""

from collections.abc import Sequence
from typing import Any

Point = dict[str, Any]  # seconds of training, updates, and what belongs to that moment

BEAM = 5  # of the searches whose BLEU is drawn
LATE = 0.05  # of the way between two moments: a point may come so much later than its moment


def evenly(minutes: float, count: int) -> list[float]:
    """So many moments, in seconds, evenly apart; the last is the end."""
    return [60 * minutes * number / count for number in range(1, count + 1)]


def by(moment: float, points: Sequence[Point], apart: float) -> Point | None:
    """The newest point there was by this moment, which may be `LATE` · apart later; None: none.

    points: in the order of time; apart: of the moments, in seconds.
    """
    there = [point for point in points if point["seconds"] <= moment + LATE * apart]
    return there[-1] if there else None


def late(points: Sequence[Point], moments: Sequence[float]) -> bool:
    """Whether the last point came after the last moment."""
    return by(moments[-1], points, moments[0]) is not points[-1]


def of_training(events: Sequence[dict[str, Any]], there: Sequence[str]) -> list[Point]:
    """The points of a training of attlas, of what its `metrics.jsonl` tells.

    After each validation that found better weights than all before: those, as `attlas translate`
    would take them. At the end of the training the best of all, once more. Seconds are those of
    training over all sittings, validations included. there: the checkpoints that are still kept;
    points whose weights are gone are left out.
    """
    better = [one for one in events if one["event"] == "validated" and one["best"]]
    ended = [one for one in events[-1:] if one["event"] == "finished"]
    return [
        {"seconds": one["seconds"], "updates": one["update"], "weights": one["checkpoint"]}
        for one in [*better, *ended]
        if one["checkpoint"] in there
    ]


def chosen(points: Sequence[Point], moments: Sequence[float]) -> list[Point]:
    """Of many points those that the moments ask for, and the last, each once."""
    requested = [by(moment, points, moments[0]) for moment in moments]
    return [point for point in points if point is points[-1] or any(point is x for x in requested)]
