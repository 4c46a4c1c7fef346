"""A module of a model, at work."""

from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attention happens that does not speak for itself.

    path: of the module in its model. cache: the memory of earlier steps that the module was given,
    if any; across: whether it was given something else to look at than what asks (None = nobody
    said).
    """

    path: str
    module: nn.Module
    cache: Any = field(default=None, compare=False)
    across: bool | None = None
