"""What a learner learns from."""

from typing import Protocol, Self, runtime_checkable

import torch


@runtime_checkable
class Learnt(Protocol):
    """What a model trains on at once."""

    @property
    def tokens(self) -> int:
        """How many predictions its loss is the sum of."""

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
