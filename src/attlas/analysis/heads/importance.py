"""The importance of heads: how fast the loss changes as a head is faded out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.explanation.experiment import Experiment, differentiable
from attlas.analysis.heads.gate import gated
from attlas.errors import AttlasError
from attlas.recording.selection import Selection
from attlas.recording.tap import Seen, Weights


@dataclass(frozen=True, slots=True)
class HeadImportance:
    """∂L / ∂ξ_bh of each layer, L the mean loss: one number for each example and head.

    Below 0 where more of the head would lessen the loss. Units: those of the loss. heads: those
    that were asked for in every layer, None = all; the others have 0.
    """

    derivatives: Mapping[str, Float[Tensor, "batch heads"]]
    heads: tuple[int, ...] | None = None

    @property
    def scores(self) -> dict[str, Float[Tensor, " heads"]]:
        """I_h = E_x |∂L(x) / ∂ξ_h| = Σ_b |∂L / ∂ξ_bh|    Michel et al., 2019, section 4.1.

        The absolute value is taken of each example: else opposite ones would cancel.
        """
        return {layer: slopes.abs().sum(0) for layer, slopes in self.derivatives.items()}

    @property
    def normalised(self) -> dict[str, Float[Tensor, " heads"]]:
        """I_h / √Σ_h' I_h'² over the heads of a layer    as in section 4.1, after Molchanov et al.,
        2017; without it the layers' scales differ. A layer that does nothing has zeros.
        """
        return {
            layer: F.normalize(score, dim=0, eps=torch.finfo(score.dtype).tiny)
            for layer, score in self.scores.items()
        }

    def ranked(self) -> list[tuple[str, int]]:
        """(layer, head) of all that were asked for, from the least to the most important,
        normalised by layer.
        """
        scored = [
            (score, layer, head)
            for layer, scores in self.normalised.items()
            for head, score in enumerate(scores.tolist())
            if self.heads is None or head in self.heads
        ]
        return [(layer, head) for _, layer, head in sorted(scored, key=lambda item: item[0])]


def head_importance(
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> HeadImportance:
    """∂L / ∂ξ_bh at ξ = 1, where ξ_bh multiplies what head h reads for example b.

    All heads at once, by one pass back: to first order, what the loss changes by when a head is
    taken away is −∂L/∂ξ. Michel et al., Are Sixteen Heads Really Better than One?, 2019, section
    4.1.

    loss: runs the model on a batch and returns its losses, one of each example or their mean. It
    runs once, in eval mode; the model's own gradients are left alone. Heads that were not chosen
    have a derivative of 0. Of a larger corpus, take the mean of the scores of its batches, each
    weighted by the examples it has.
    Memory: that of explicit attention, with what the pass back needs.
    Errors: `AttlasError` for a loss that is none, or that has no gradient; as of `Experiment` too.
    """
    gates: dict[str, Tensor] = {}

    def gate(weights: Weights, seen: Seen, layer: str) -> Weights:
        if layer not in gates:
            precise = torch.promote_types(weights.dtype, torch.float32)
            ones = torch.ones(weights.shape[:2], dtype=precise, device=weights.device)
            gates[layer] = ones.requires_grad_()
        if len(gates[layer]) != len(weights):
            raise AttlasError(
                f"a loss whose calls of layer {layer!r} have one batch, of {len(gates[layer])}",
                f"one of {len(weights)}",
                "let it run one batch, and take the mean of the scores of several, weighted by "
                "their examples",
            )
        return gated(gates)(weights, seen, layer)

    chosen = Selection.of(layers, heads)
    with differentiable():
        mean = _mean(Experiment(model, loss, chosen).under(gate))
        slopes = torch.autograd.grad(mean, list(gates.values()), allow_unused=True)
    if all(slope is None for slope in slopes):
        raise _without_gradient()
    return HeadImportance(
        {
            # What no path leads from, such as a layer whose output is thrown away, changes nothing.
            layer: torch.zeros_like(own).detach() if slope is None else slope
            for (layer, own), slope in zip(gates.items(), slopes, strict=True)
        },
        chosen.heads,
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
