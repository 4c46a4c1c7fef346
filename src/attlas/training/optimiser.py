"""The optimiser, and its state by the names of the parameters."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.training.adam import AdamConfig, AdamWConfig
from attlas.training.muon import MuonConfig


def _adam_unless_said(optimiser: Any) -> Any:
    return {"kind": "adam", **optimiser} if isinstance(optimiser, Mapping) else optimiser


OptimiserConfig = Annotated[
    AdamConfig | AdamWConfig | MuonConfig,
    Field(discriminator="kind"),
    BeforeValidator(_adam_unless_said),
]


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
    ordered = (id(p) for group in optimiser.param_groups for p in group["params"])
    order = {known: place for place, known in enumerate(ordered)}
    places = {name: order[id(p)] for name, p in model.named_parameters()}
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
