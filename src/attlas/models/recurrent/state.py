"""What a recurrent decoder carries from token to token."""

from dataclasses import dataclass, replace

import torch
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
    model has no such thing. position: how many target tokens have been read. sources: which source
    each row translates, None = each its own; rows of one source have equal memories.
    """

    hidden: Hidden
    memory: Memory | None = None
    coverage: Float[Tensor, "batch slots"] | None = None
    attended: Float[Tensor, "batch width"] | None = None
    position: int = 0
    sources: Int[Tensor, " batch"] | None = None

    def covered(self) -> "RecurrentState":
        """The same: a decoder that looks counts in any case."""
        return self

    def select(self, rows: Int[Tensor, " chosen"]) -> "RecurrentState":
        """These batch rows, in this order, repeats allowed."""
        sources = rows if self.sources is None else self.sources.index_select(0, rows)
        memory = self.memory
        # The memory is by far the largest part, and most steps of a beam only reorder hypotheses
        # within their sentences: then each row has the memory it needs already.
        stays = self.sources is not None and torch.equal(sources, self.sources)
        if memory is not None and not stays:
            memory = memory.select(rows)
        return replace(
            self,
            hidden=tuple(part.index_select(0, rows) for part in self.hidden),
            memory=memory,
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
            attended=None if self.attended is None else self.attended.index_select(0, rows),
            sources=sources,
        )
