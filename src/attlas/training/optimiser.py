"""The optimiser, and its state by the names of the parameters."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from attlas.config import Config
from attlas.errors import AttlasError

_Beta = Annotated[float, Field(ge=0.0, lt=1.0)]

_KINDS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
_FUSED = {"cpu", "cuda"}  # where torch has a fused step


class OptimiserConfig(Config):
    """Adam (Kingma & Ba, 2015), or AdamW, whose weight decay is decoupled (Loshchilov & Hutter,
    2019).
    """

    kind: Literal["adam", "adamw"] = "adam"
    betas: tuple[_Beta, _Beta] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)

    def build(self, model: nn.Module, rate: float) -> torch.optim.Adam:
        """The optimiser of all parameters of a model that is already on its device."""
        parameters = list(model.parameters())
        return _KINDS[self.kind](
            parameters,
            lr=rate,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=parameters[0].device.type in _FUSED,
        )


def moments(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The state of every parameter as `parameter/key` → tensor: steps and moments."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def restore_moments(
    optimiser: torch.optim.Optimizer,
    model: nn.Module,
    saved: Mapping[str, Tensor],
    part: Callable[[Tensor, Tensor], Tensor] = lambda tensor, like: tensor,
) -> None:
    """Put back what `moments` gave; `part` takes from a moment what belongs to a parameter here.

    Errors: `AttlasError` for the state of a parameter that the model does not have.
    """
    places = {name: place for place, (name, _) in enumerate(model.named_parameters())}
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in saved.items():
        parameter, _, key = name.rpartition("/")
        if parameter not in places:
            raise AttlasError(
                "the optimiser's state of a parameter of this model",
                repr(parameter),
                "resume with the recipe that the run began with",
            )
        own = model.get_parameter(parameter)
        mine = part(value, own) if value.shape == own.shape else value  # `step` is one number
        state.setdefault(places[parameter], {})[key] = mine.clone()
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
