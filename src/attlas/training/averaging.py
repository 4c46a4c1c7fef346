"""Averages of weights, which often generalise better than each of them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from attlas.config import Config


class NoAveraging(Config):
    """The weights as they are."""

    kind: Literal["none"] = "none"


class LastAveraging(Config):
    """At the end, the mean of the last `count` checkpoints    Vaswani et al., 2017, section 6.1.

    Of fewer where no more were saved, which is reported.
    """

    kind: Literal["last"] = "last"
    count: int = Field(default=5, ge=2)
    """How many checkpoints are averaged."""


class MovingAveraging(Config):
    """After every update, average ← average + (1 − decay_u) (weights − average).

    decay_u = min(decay, (1 + u) / (10 + u)) forgets the random beginning sooner.
    """

    kind: Literal["ema"] = "ema"
    decay: float = Field(default=0.999, gt=0.0, lt=1.0)
    """How much of the average stays with each update."""

    def share(self, update: int) -> float:
        """1 − decay_u: how much the newest weights count."""
        return 1.0 - min(self.decay, (1.0 + update) / (10.0 + update))


AveragingConfig = Annotated[
    NoAveraging | LastAveraging | MovingAveraging, Field(discriminator="kind")
]


def mean_weights(states: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """(1 / n) Σ_i weights_i, summed in float64; of what is not a float, the last."""
    sums: dict[str, Tensor] = {}
    last: Mapping[str, Tensor] = {}
    count = 0
    for last in states:
        count += 1
        for name, tensor in last.items():
            if tensor.is_floating_point():
                sums[name] = sums[name] + tensor if name in sums else tensor.double()
    return {
        name: (sums[name] / count).to(tensor.dtype) if name in sums else tensor
        for name, tensor in last.items()
    }


@torch.no_grad()
def update_average(average: Mapping[str, Tensor], model: nn.Module, share: float | Tensor) -> None:
    """Move an average towards the weights of a model, in place; a share may be one number on the
    device.
    """
    shares: dict[torch.dtype, float | Tensor] = {}  # one cast for all tensors of a type
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            if tensor.dtype not in shares:
                own = share.to(tensor.dtype) if isinstance(share, Tensor) else share
                shares[tensor.dtype] = own
            average[name].lerp_(tensor, shares[tensor.dtype])
        else:
            average[name].copy_(tensor)
