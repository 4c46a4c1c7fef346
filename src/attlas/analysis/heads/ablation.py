"""Ablation of heads: what the metric loses when a head does not look."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Literal

import numpy as np
import torch
from torch import nn

from attlas.analysis.explanation.experiment import Experiment
from attlas.errors import AttlasError
from attlas.recording import uniform, without
from attlas.recording.selection import Selection
from attlas.recording.tap import Rewrite, Seen, Weights


@dataclass(frozen=True, slots=True)
class AblatedHead:
    """A head, the metric without it, and the metric of the whole model less that."""

    layer: str
    head: int
    metric: float
    cost: float


@dataclass(frozen=True, slots=True)
class HeadAblation:
    """The metric of the whole model, and its heads from the dearest to the cheapest.

    A cost below 0 is a gain. Heads of equal cost stand in the order of the model.
    """

    metric: float
    heads: tuple[AblatedHead, ...]

    def __str__(self) -> str:
        """A table with one line per head."""
        width = max((len(row.layer) for row in self.heads), default=0)
        width = max(width, len("layer"), len("(whole model)"))
        lines = [f"{'layer':<{width}}  head  {'metric':>10}  {'cost':>10}"]
        lines.append(
            f"{'(whole model)':<{width}}  {'':>4}  {self.metric:>10.4g}  {'':>10}".rstrip()
        )
        lines += [
            f"{row.layer:<{width}}  {row.head:>4}  {row.metric:>10.4g}  {row.cost:>+10.3g}"
            for row in self.heads
        ]
        return "\n".join(lines)


def head_ablation(
    model: nn.Module,
    metric: Callable[[], float],
    *,
    reading: Literal["nothing", "uniform"] = "nothing",
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> HeadAblation:
    """cost_h = metric − metric without head h, one head at a time.

    reading: what the head does instead: it reads nothing (Michel et al., 2019, section 3.2: ξ_h =
    0), or the mean of all slots that a query sees, which keeps the scale of what comes after.
    metric: runs the model over whatever it is measured on; greater = better, so of a loss or an
    error return the negative. It runs once for each head and once without a change, in eval mode
    and without gradients. layers, heads: which are tried; None = all.
    Errors: `AttlasError` for a metric that is no number; as of `Experiment` too.
    """
    if reading not in ("nothing", "uniform"):
        raise AttlasError("reading 'nothing' or 'uniform'", repr(reading), "choose one of them")
    chosen = Selection.of(layers, heads)
    experiment = Experiment(model, metric, chosen)
    counts: dict[str, int] = {}

    def count(weights: Weights, seen: Seen, layer: str) -> Weights:
        counts[layer] = weights.shape[1]
        return weights

    with torch.no_grad():
        whole = number_of(experiment.under(count))
        tried = []
        for layer, total in counts.items():
            for head in range(total) if chosen.heads is None else chosen.heads:
                found = number_of(experiment.under(_instead(layer, head, reading)))
                tried.append(AblatedHead(layer, head, found, whole - found))
    return HeadAblation(whole, tuple(sorted(tried, key=lambda row: -row.cost)))


def _instead(layer: str, head: int, reading: Literal["nothing", "uniform"]) -> Rewrite:
    def change(weights: Weights, seen: Seen, here: str) -> Weights:
        if here != layer:
            return weights
        if reading == "nothing":
            return without(head)(weights, seen, here)
        changed = weights.clone()
        changed[:, head] = uniform(weights, seen, here)[:, head]
        return changed

    return change


def number_of(metric: object) -> float:
    """What a metric returned, as a number: Python's, or one of torch or NumPy.

    Errors: `AttlasError` for what is none, and for infinity.
    """
    found = metric.item() if isinstance(metric, torch.Tensor) and metric.numel() == 1 else metric
    found = found.item() if isinstance(found, np.ndarray) and found.size == 1 else found
    if not isinstance(found, Real) or not isfinite(found):
        raise AttlasError(
            "a metric that is a finite number",
            str(found) if isinstance(found, Real) else f"a {type(found).__name__}",
            "return one number, greater = better",
        )
    return float(found)
