"""Permutation and uniform weights: does it matter which key gets which weight?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import (
    Intervention,
    baseline_output,
    output_with_change,
    total_variation,
)
from attlas.errors import AttlasError
from attlas.recording import permuted, uniform
from attlas.recording.hooks import Allowed, Weights
from attlas.recording.trace import Selection


@dataclass(frozen=True, slots=True)
class PermutationDistance:
    """How far each draw moved the output of each example, in total variation, 0 … 1."""

    distances: Float[Tensor, "draws *examples"]

    @property
    def median(self) -> Float[Tensor, "*examples"]:
        """The median over the draws; of an even number, the mean of the middle two."""
        sorted_distances, count = self.distances.sort(dim=0).values, len(self.distances)
        return (sorted_distances[(count - 1) // 2] + sorted_distances[count // 2]) / 2


def permutation_distance(
    model: nn.Module,
    call: Callable[[], Tensor],
    *,
    seed: int,
    draws: int = 100,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> PermutationDistance:
    """median_π ½ Σ_y |p(y | α) − p(y | π α)|: each query's weights shuffled among what it sees.

    If weights are uneven, small values say that the output does not depend on where the model
    looked. Jain & Wallace, Attention is not Explanation, 2019, section 4.2.1, who take 100 draws.
    Every draw shuffles each chosen layer, head and query by itself.

    Args:
        call: Runs the model on a batch and returns its logits, (*examples, labels); it runs draws +
            2 times, in eval mode and without gradients. Memory: that of explicit attention.

    Raises:
        AttlasError: As of `Intervention` and `distribution`.
    """
    if draws < 1:
        raise AttlasError("at least one draw", str(draws), "use e.g. 100")
    intervention = Intervention(model, call, Selection.of(layers, heads))
    generator = torch.Generator().manual_seed(seed)

    def shuffle(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        # A seed for each layer and call; otherwise layers of one shape would share a permutation.
        row_seed = int(torch.randint(2**62, (), generator=generator))
        return permuted(row_seed)(weights, allowed, layer)

    with torch.no_grad():
        baseline = baseline_output(intervention)
        distances = [
            total_variation(baseline, output_with_change(intervention, shuffle))
            for _ in range(draws)
        ]
    return PermutationDistance(torch.stack(distances))


# Uniform weights: does it matter that the weights differ?


def uniform_distance(
    model: nn.Module,
    call: Callable[[], Tensor],
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
) -> Float[Tensor, "*examples"]:
    """½ Σ_y |p(y | α) − p(y | u)|, u = 1 / n on each of the n keys that a query sees; 0 … 1.

    The model is not trained for uniform weights, as it is by Wiegreffe & Pinter, Attention is not
    not Explanation, 2019, section 3.1: this asks whether it needs the weights that it has.

    Args:
        call: Runs the model on a batch and returns its logits, (*examples, labels); it runs three
            times, in eval mode and without gradients.

    Raises:
        AttlasError: As of `Intervention` and `distribution`.
    """
    intervention = Intervention(model, call, Selection.of(layers, heads))
    with torch.no_grad():
        return total_variation(
            baseline_output(intervention), output_with_change(intervention, uniform)
        )
