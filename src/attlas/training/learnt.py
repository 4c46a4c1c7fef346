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


@runtime_checkable
class Weighted(Protocol):
    """What is learnt from, where some predictions count more than others."""

    @property
    def weight(self) -> float:
        """The sum of the weights of its predictions, over which the loss is averaged."""


def weight_of(batch: Learnt) -> float:
    """The weights of its predictions, summed: how many they are, where all weigh 1."""
    return batch.weight if isinstance(batch, Weighted) else float(batch.tokens)
