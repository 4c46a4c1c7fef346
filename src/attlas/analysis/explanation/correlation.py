"""Correlation: do greater weights go to the slots that matter more?"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.analysis.explanation.focus import Focus
from attlas.analysis.explanation.kendall import kendall_tau
from attlas.analysis.explanation.output import total_variation
from attlas.analysis.explanation.rows import Rows


@dataclass(frozen=True, slots=True)
class Correlation:
    """Kendall's τ_b between the weights of the visible slots and how much they matter.

    tau: −1 … 1 of each example; NaN where the weights, or what matters, are all equal, or fewer
    than two slots are visible.
    """

    tau: Float[Tensor, " batch"]
    weights: Float[Tensor, "batch slots"]
    importance: Float[Tensor, "batch slots"]
    visible: Bool[Tensor, "batch slots"]


def gradient_correlation(
    model: nn.Module, call: Callable[[], Tensor], focus: Focus | None = None
) -> Correlation:
    """τ_b(a, g),  g_j = |Σ_r ∂p(ŷ) / ∂α_rj|, ŷ the label that is decided for.

    After Jain & Wallace, 2019, section 4.1, who take the gradient with respect to the input, the
    weights held fixed. This one asks about the weights themselves, as Serrano & Smith, 2019,
    section 5.2, do: each by itself, without the rest giving way.

    call: runs the model on a batch and returns the logits of each example, (batch, labels); it
    runs four times, in eval mode. focus: which rows; of several, a slot's weight a is its mean.
    Errors: `AttlasError` as of `Rows` and `slope`.
    """
    rows = Rows.of(model, call, focus or Focus())
    return _correlation(rows, rows.gradients().sum(1).abs())


def product_correlation(
    model: nn.Module, call: Callable[[], Tensor], focus: Focus | None = None
) -> Correlation:
    """τ_b(a, g),  g_j = |Σ_r α_rj ∂p(ŷ) / ∂α_rj|: what the output would lose with the slot's
    weight, to first order    Serrano & Smith, 2019, section 5.2.

    Otherwise as `gradient_correlation`.
    """
    rows = Rows.of(model, call, focus or Focus())
    return _correlation(rows, (rows.gradients() * rows.weights).sum(1).abs())


def leave_one_out_correlation(
    model: nn.Module, call: Callable[[], Tensor], focus: Focus | None = None
) -> Correlation:
    """τ_b(a, d),  d_j = ½ Σ_y |p(y) − p(y without slot j)|: its weight is 0, and the others
    are made to sum to what they all did.

    After Jain & Wallace, 2019, section 4.1, who take the token out of the text; here it stays, and
    is not looked at. The call runs once for each slot; otherwise as `gradient_correlation`.
    """
    rows = Rows.of(model, call, focus or Focus())
    moved = torch.zeros_like(rows.vector)
    with torch.no_grad():
        for slot in range(moved.shape[1]):
            gone = torch.zeros_like(rows.visible)
            gone[:, slot] = True
            moved[:, slot] = total_variation(rows.output, rows.output_of(rows.without(gone)))
    return _correlation(rows, moved)


def _correlation(rows: Rows, importance: Float[Tensor, "batch slots"]) -> Correlation:
    taus = [
        kendall_tau(weights[visible], matters[visible])
        for weights, matters, visible in zip(rows.vector, importance, rows.visible, strict=True)
    ]
    tau = torch.tensor(taus).to(importance)
    return Correlation(tau, rows.vector, importance, rows.visible)
