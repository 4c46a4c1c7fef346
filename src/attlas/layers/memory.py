"""What an attention keeps of its source."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Memory:
    """Keys, values and which slots are real: a frozen value. Slots are axis −2.

    keys, values: (batch, slots, width), or (batch, key_heads, slots, width) for multi-head.
    real: (batch, slots) bool, True = a token; None = no padding. `remember` puts zeros in place of
    padding before anything is made of it, so that junk there (NaN, inf) can change nothing.
    """

    keys: Float[Tensor, "batch *key_heads slots key_width"]
    values: Float[Tensor, "batch *key_heads slots value_width"]
    real: Bool[Tensor, "batch slots"] | None = None

    @property
    def slots(self) -> int:
        """How many positions can be looked at, padding included."""
        return self.keys.shape[-2]

    def extend(self, new: "Memory") -> "Memory":
        """This memory followed by newer slots: a growing key/value cache."""
        real = None
        if self.real is not None or new.real is not None:
            real = torch.cat([_all_real(self), _all_real(new)], dim=1)
        keys = torch.cat([self.keys, new.keys], dim=-2)
        values = torch.cat([self.values, new.values], dim=-2)
        return replace(self, keys=keys, values=values, real=real)

    def select(self, rows: Int[Tensor, " chosen"]) -> "Memory":
        """These batch rows, in this order, repeats allowed: what beam search does."""
        real = None if self.real is None else self.real[rows]
        # Beam search does this at every step: index_select copies several times faster than [rows].
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return replace(self, keys=keys, values=values, real=real)


def _all_real(memory: Memory) -> Bool[Tensor, "batch slots"]:
    if memory.real is not None:
        return memory.real
    return torch.ones(
        memory.keys.shape[0], memory.slots, dtype=torch.bool, device=memory.keys.device
    )
