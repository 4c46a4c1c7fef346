"""What a recurrent decoder carries from token to token."""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from attlas.layers import Memory

Hidden = tuple[Float[Tensor, "batch layers hidden"], ...]
"""The recurrent state, rows first: (h,) of a GRU, (h, c) of an LSTM."""


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    memory: what the attention keeps of the source. coverage: Σ of the weights each slot was read
    with so far. attended: Luong's last attentional vector, where it is fed back. None where the
    model has no such thing. position: how many target tokens have been read.
    """

    hidden: Hidden
    memory: Memory | None = None
    coverage: Float[Tensor, "batch slots"] | None = None
    attended: Float[Tensor, "batch width"] | None = None
    position: int = 0

    def select(self, rows: Int[Tensor, " chosen"]) -> "RecurrentState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            hidden=tuple(part[rows] for part in self.hidden),
            memory=None if self.memory is None else self.memory.select(rows),
            coverage=None if self.coverage is None else self.coverage[rows],
            attended=None if self.attended is None else self.attended[rows],
        )
