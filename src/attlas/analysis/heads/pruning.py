"""Pruning: the metric as more and more heads are taken away."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from attlas.analysis.explanation.experiment import Experiment
from attlas.analysis.heads.ablation import number_of
from attlas.errors import AttlasError
from attlas.recording import without
from attlas.recording.tap import Seen, Weights


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many heads are gone, which share of those in the order, and the metric then."""

    count: int
    share: float
    metric: float


def pruning_curve(
    model: nn.Module,
    metric: Callable[[], float],
    order: Sequence[tuple[str, int]],
    *,
    points: int = 10,
) -> tuple[Pruned, ...]:
    """metric(ξ = 0 for the first k heads of the order), for k from 0 to all of them.

    Michel et al., Are Sixteen Heads Really Better than One?, 2019, section 4.2, who take away a
    tenth of the heads at a time, from the least important on. Heads are not trained anew.

    metric: as of `head_ablation`; order: (layer, head), the first to go first, such as
    `head_importance(…).ranked()`; points: how many k beside 0, evenly spaced; fewer where there
    are fewer heads. Errors: `AttlasError` for heads that the model has not; as of `Experiment`.
    """
    if points < 1 or not order or len(set(order)) < len(order):
        raise AttlasError(
            "at least one point, and an order of heads that names each once",
            f"{points} and {len(order)} heads, {len(set(order))} of them distinct",
            "pass e.g. head_importance(…).ranked()",
        )
    total = len(order)
    counts = sorted({round(total * point / points) for point in range(points + 1)})
    with torch.no_grad():
        return tuple(
            Pruned(count, count / total, _metric(model, metric, order[:count], order))
            for count in counts
        )


def _metric(
    model: nn.Module,
    metric: Callable[[], float],
    gone: Sequence[tuple[str, int]],
    order: Sequence[tuple[str, int]],
) -> float:
    heard: set[str] = set()

    def change(weights: Weights, seen: Seen, layer: str) -> Weights:
        heard.add(layer)
        return without(*(head for path, head in gone if path == layer))(weights, seen, layer)

    found = number_of(Experiment(model, metric).under(change))
    missing = {layer for layer, _ in order} - heard
    if missing:
        raise AttlasError(
            f"layers among those that were heard, {sorted(heard)}",
            str(sorted(missing)),
            "take the order from this very model",
        )
    return found
