"""Head importance: ablation, gradients at head gates, and pruning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import Intervention, gradients_enabled
from attlas.errors import AttlasError
from attlas.recording import uniform, without
from attlas.recording.hooks import Allowed, WeightPatch, Weights
from attlas.recording.trace import Selection

# Ablation: what the metric loses without a head.


@dataclass(frozen=True, slots=True)
class AblatedHead:
    """A head, the metric without it, and its cost: the metric of the full model minus that."""

    layer: str
    head: int
    metric: float
    cost: float


@dataclass(frozen=True, slots=True)
class HeadAblation:
    """The metric of the full model, and its heads from the most to the least important.

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
    replacement: Literal["nothing", "uniform"] = "nothing",
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> HeadAblation:
    """cost_h = metric − metric without head h, one head at a time.

    Args:
        replacement: What replaces the head: zeros (Michel et al., 2019, section 3.2: ξ_h = 0), or
            the mean of all keys that a query sees, which keeps the scale of later layers.
        metric: Runs the model on its test data; greater = better, so return the negative of a loss
            or an error. It runs once for each head and once without a change, in eval mode and
            without gradients.
        layers, heads: Which are tried; None = all.

    Raises:
        AttlasError: For a metric that is no number; and as `Intervention`.
    """
    if replacement not in ("nothing", "uniform"):
        raise AttlasError(
            "replacement 'nothing' or 'uniform'", repr(replacement), "choose one of them"
        )
    selection = Selection.of(layers, heads)
    intervention = Intervention(model, metric, selection)
    counts: dict[str, int] = {}

    def count(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        counts[layer] = weights.shape[1]
        return weights

    with torch.no_grad():
        baseline = number_of(intervention.with_change(count))
        tried = []
        for layer, total in counts.items():
            for head in range(total) if selection.heads is None else selection.heads:
                metric_without = number_of(
                    intervention.with_change(_instead(layer, head, replacement))
                )
                tried.append(AblatedHead(layer, head, metric_without, baseline - metric_without))
    return HeadAblation(baseline, tuple(sorted(tried, key=lambda row: -row.cost)))


def _instead(layer: str, head: int, replacement: Literal["nothing", "uniform"]) -> WeightPatch:
    def change(weights: Weights, allowed: Allowed, path: str) -> Weights:
        if path != layer:
            return weights
        if replacement == "nothing":
            return without(head)(weights, allowed, path)
        new_weights = weights.clone()
        new_weights[:, head] = uniform(weights, allowed, path)[:, head]
        return new_weights

    return change


def number_of(metric: object) -> float:
    """Convert the result of a metric, a number of Python, torch or NumPy, to float.

    Raises:
        AttlasError: For anything but a finite number.
    """
    number = metric.item() if isinstance(metric, torch.Tensor) and metric.numel() == 1 else metric
    number = number.item() if isinstance(number, np.ndarray) and number.size == 1 else number
    if not isinstance(number, Real) or not isfinite(number):
        raise AttlasError(
            "a metric that is a finite number",
            str(number) if isinstance(number, Real) else f"a {type(number).__name__}",
            "return one number, greater = better",
        )
    return float(number)


# A gate on each head.


def gated(gates: Mapping[str, Float[Tensor, "..."]]) -> WeightPatch:
    """ξ_h · head_h: a change for `intervene` that multiplies the output of each head.

    Args:
        gates: For each layer, (heads) or (batch, heads); layers without a gate stay as they are. A
            head's output is linear in its weights, so the weights are multiplied. 0 = the head's
            output is zero; gradients flow to the gates. Michel et al., Are Sixteen Heads Really
            Better than One?, 2019, section 2.3.

    Raises:
        AttlasError: For gates that do not fit the layer.
    """

    def change(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        if layer not in gates:
            return weights
        gate, (batch, heads) = gates[layer], weights.shape[:2]
        if tuple(gate.shape) not in {(heads,), (1, heads), (batch, heads)}:
            raise AttlasError(
                f"gates of shape ({heads},) or ({batch}, {heads}) for layer {layer!r}",
                f"shape {tuple(gate.shape)}",
                "give one gate to each head",
            )
        return weights * gate.to(weights)[..., None, None]

    return change


@dataclass(frozen=True, slots=True)
class HeadImportance:
    """∂L / ∂ξ_bh of each layer, L the mean loss: one number for each example and head.

    Below 0 where more of the head would lessen the loss. Units: those of the loss.

    Args:
        heads: The heads that were chosen in every layer, None = all; the others have 0.
    """

    derivatives: Mapping[str, Float[Tensor, "batch heads"]]
    heads: tuple[int, ...] | None = None

    @property
    def scores(self) -> dict[str, Float[Tensor, " heads"]]:
        """I_h = E_x |∂L(x) / ∂ξ_h| = Σ_b |∂L / ∂ξ_bh|    Michel et al., 2019, section 4.1.

        The absolute value is taken for each example, because opposite signs would cancel.
        """
        return {layer: slopes.abs().sum(0) for layer, slopes in self.derivatives.items()}

    @property
    def normalised(self) -> dict[str, Float[Tensor, " heads"]]:
        """I_h / √Σ_h' I_h'² over the heads of a layer    as in section 4.1, after Molchanov et al.,
        2017; without it the layers' scales differ. A layer without effect has zeros.
        """
        return {
            layer: F.normalize(score, dim=0, eps=torch.finfo(score.dtype).tiny)
            for layer, score in self.scores.items()
        }

    def ranked(self) -> list[tuple[str, int]]:
        """All chosen (layer, head), from the least to the most important, normalised by layer."""
        importances = [
            (score, layer, head)
            for layer, scores in self.normalised.items()
            for head, score in enumerate(scores.tolist())
            if self.heads is None or head in self.heads
        ]
        return [(layer, head) for _, layer, head in sorted(importances, key=lambda item: item[0])]


def head_importance(
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> HeadImportance:
    """∂L / ∂ξ_bh at ξ = 1, where ξ_bh multiplies what head h reads for example b.

    All heads at once, by one backward pass. To first order, removing a head changes the loss by
    −∂L/∂ξ. Michel et al., Are Sixteen Heads Really Better than One?, 2019, section 4.1.

    Memory: that of explicit attention with a backward pass.

    Args:
        loss: Runs the model on a batch and returns its losses, one of each example or their mean.
            It runs once, in eval mode; the model's own gradients are left alone. Heads that were
            not chosen have a derivative of 0. Of a larger corpus, take the mean of the scores of
            its batches, each weighted by the examples it has.

    Raises:
        AttlasError: For a loss that is no number, or that has no gradient; and as `Intervention`.
    """
    gates: dict[str, Tensor] = {}

    def gate(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        if layer not in gates:
            dtype = torch.promote_types(weights.dtype, torch.float32)
            ones = torch.ones(weights.shape[:2], dtype=dtype, device=weights.device)
            gates[layer] = ones.requires_grad_()
        if len(gates[layer]) != len(weights):
            raise AttlasError(
                f"a loss whose calls of layer {layer!r} have one batch, of {len(gates[layer])}",
                f"one of {len(weights)}",
                "let it run one batch, and take the mean of the scores of several, weighted by "
                "their examples",
            )
        return gated(gates)(weights, allowed, layer)

    selection = Selection.of(layers, heads)
    with gradients_enabled():
        mean = _mean(Intervention(model, loss, selection).with_change(gate))
        slopes = torch.autograd.grad(mean, list(gates.values()), allow_unused=True)
    if all(slope is None for slope in slopes):
        raise _without_gradient()
    return HeadImportance(
        {
            # A layer that does not reach the loss has no gradient; its importance is 0.
            layer: torch.zeros_like(gate).detach() if slope is None else slope
            for (layer, gate), slope in zip(gates.items(), slopes, strict=True)
        },
        selection.heads,
    )


def _mean(loss: object) -> Float[Tensor, ""]:
    if not isinstance(loss, Tensor) or loss.ndim > 1 or not loss.is_floating_point():
        raise AttlasError(
            "a call that returns a loss, or one of each example: a tensor of shape () or (batch,)",
            f"{loss.dtype} of shape {tuple(loss.shape)}"
            if isinstance(loss, Tensor)
            else f"a {type(loss).__name__}",
            "return the loss alone, such as lambda: model(**batch).loss",
        )
    if not loss.requires_grad:
        raise _without_gradient()
    mean = loss.mean()
    if not bool(mean.isfinite()):
        raise AttlasError("a loss that is a number", str(mean.item()), "check model and batch")
    return mean


def _without_gradient() -> AttlasError:
    return AttlasError(
        "a loss that has a gradient with respect to what heads read",
        "one that has none",
        "leave torch.no_grad() and .detach() out of the call",
    )


# Pruning: the metric as more and more heads are removed.


@dataclass(frozen=True, slots=True)
class Pruned:
    """The number of pruned heads, their share of the order, and the metric."""

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

    Michel et al., Are Sixteen Heads Really Better than One?, 2019, section 4.2, who remove a tenth
    of the heads at a time, the least important first. The model is not retrained.

    Args:
        metric: As of `head_ablation`.
        order: (layer, head), the first to be pruned first, such as `head_importance(…).ranked()`.
        points: How many k besides 0, evenly spaced; fewer if there are fewer heads.

    Raises:
        AttlasError: For heads that the model has not; as of `Intervention`.
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
    pruned: Sequence[tuple[str, int]],
    order: Sequence[tuple[str, int]],
) -> float:
    called_layers: set[str] = set()

    def change(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        called_layers.add(layer)
        return without(*(head for path, head in pruned if path == layer))(weights, allowed, layer)

    metric_with_change = number_of(Intervention(model, metric).with_change(change))
    missing = {layer for layer, _ in order} - called_layers
    if missing:
        raise AttlasError(
            f"layers among those that were called, {sorted(called_layers)}",
            str(sorted(missing)),
            "take the order from this very model",
        )
    return metric_with_change
