"""What the values of one call of a layer were made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Source:
    """The vectors that were projected to values, a slot for each; and what came of it.

    Texts are first, and their places second; or the other way round, where a layer has them so.

    read: what all heads read, side by side, as the layer's output projection was given it; None =
    not known. By it `ValueNorms` sees whether the layer does more than project.
    """

    slots: Float[Tensor, "batch slots source_width"]
    read: Float[Tensor, "_ _ all_heads"] | None = None  # batch, queries

    @classmethod
    def joined(cls, steps: Sequence["Source"]) -> "Source":
        """That of a cached generation, which is heard step by step: the source of the whole map."""
        read = [step.read for step in steps if step.read is not None]
        axis = 1 if len({len(step.slots) for step in steps}) == 1 else 0  # places first
        whole = torch.cat(read, axis) if len(read) == len(steps) else None
        return cls(torch.cat([step.slots for step in steps], axis), whole)

    def turned(self) -> "Source":
        """The same of a layer that has places first and texts second."""
        return Source(
            self.slots.transpose(0, 1), None if self.read is None else self.read.transpose(0, 1)
        )
