"""What a learner makes small, as a function and as a module."""

from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.training.learnt import Learnt

_M = TypeVar("_M", bound=nn.Module, contravariant=True)
_B = TypeVar("_B", bound=Learnt, contravariant=True)


@runtime_checkable
class Loss(Protocol[_M, _B]):
    """What a task wants to be small."""

    def __call__(
        self,
        model: _M,
        batch: _B,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[nn.Parameter],
    ) -> Float[Tensor, ""]:
        """The loss at update `number`, summed over the predictions of a batch.

        Its gradient will be multiplied by `scale`, see `sequence_loss`, and is wanted for these
        parameters. generator: the chance of this update, on the model's device.
        """


class Objective(nn.Module):
    """The loss as a forward pass: that is where DDP and FSDP join in."""

    def __init__(self, model: nn.Module, loss: Any) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(
        self, batch: Any, number: int, scale: float, generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The summed loss; None in place of a batch: 0, with gradients of 0."""
        # FSDP's parameters are whole in here and nowhere else.
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        if batch is None:
            return torch.stack([p.sum() for p in parameters]).sum() * 0.0
        loss: Tensor = self._loss(self.model, batch, number, scale, generator, parameters)
        return loss
