"""Adam, as torch has it."""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from attlas.config import Config
from attlas.training.sharing import Sharing

_FUSED = {"cpu", "cuda"}  # where torch has a fused step

Beta = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Adam(Config):
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)

    def _settings(self, model: nn.Module) -> dict[str, Any]:
        return {**self.model_dump(exclude={"kind"}), "fused": fused(model)}


class AdamConfig(_Adam):
    """Adam    Kingma & Ba, 2015."""

    kind: Literal["adam"] = "adam"

    def build(
        self, model: nn.Module, rate: float, sharing: Sharing | None = None
    ) -> torch.optim.Optimizer:
        """The optimiser of all parameters of a model that is already on its device.

        sharing: Adam, which steps every number by itself, has no need of it.
        """
        return torch.optim.Adam(model.parameters(), lr=rate, **self._settings(model))


class AdamWConfig(_Adam):
    """AdamW, whose weight decay is apart from the gradient    Loshchilov & Hutter, 2019."""

    kind: Literal["adamw"] = "adamw"

    def build(
        self, model: nn.Module, rate: float, sharing: Sharing | None = None
    ) -> torch.optim.Optimizer:
        """As of Adam."""
        return torch.optim.AdamW(model.parameters(), lr=rate, **self._settings(model))


def fused(model: nn.Module) -> bool:
    """Whether torch has a fused step of Adam where this model is."""
    return next(model.parameters()).device.type in _FUSED
