"""Uniformity: does it matter that the weights differ at all?"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.explanation.experiment import Experiment
from attlas.analysis.explanation.output import output_under, plain_output, total_variation
from attlas.recording import uniform
from attlas.recording.selection import Selection


def uniform_distance(
    model: nn.Module,
    call: Callable[[], Tensor],
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> Float[Tensor, "*examples"]:
    """½ Σ_y |p(y | α) − p(y | u)|, u = 1 / n on each of the n slots that a query sees; 0 … 1.

    The model is not trained for uniform weights, as it is by Wiegreffe & Pinter, Attention is not
    not Explanation, 2019, section 3.1: this asks whether it needs the weights that it has.

    call: runs the model on a batch and returns its logits, (*examples, labels); it runs three
    times, in eval mode and without gradients.
    Errors: `AttlasError` as of `Experiment` and `distribution`.
    """
    experiment = Experiment(model, call, Selection.of(layers, heads))
    with torch.no_grad():
        return total_variation(plain_output(experiment), output_under(experiment, uniform))
