"""What a recurrent decoder carries from token to token."""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from attlas.layers.stacked import stacked
from attlas.models.joining import check_positions, of_both
from attlas.models.source_memory import SourceMemory

Hidden = tuple[Float[Tensor, "batch layers hidden"], ...]
"""The recurrent state, rows first: (h,) of a GRU, (h, c) of an LSTM."""


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    source: what the attention keeps of the source, held once per source. coverage: Σ of the weights
    each slot was read with so far. attended: Luong's last attentional vector, where it is fed back.
    None where the model has no such thing. position: how many target tokens have been read.
    """

    hidden: Hidden
    source: SourceMemory | None = None
    coverage: Float[Tensor, "batch slots"] | None = None
    attended: Float[Tensor, "batch width"] | None = None
    position: int = 0

    @property
    def rows(self) -> int:
        """How many hypotheses there are."""
        return self.hidden[0].shape[0]

    def covered(self) -> "RecurrentState":
        """The same: a decoder that looks counts in any case."""
        return self

    def followed_by(self, other: "RecurrentState") -> "RecurrentState":
        """These rows and then those of another state, which has read as many target tokens."""
        check_positions(self.position, other.position)
        hidden = zip(self.hidden, other.hidden, strict=True)
        return replace(
            self,
            hidden=tuple(stacked(*parts) for parts in hidden),
            source=of_both(self.source, other.source, SourceMemory.followed_by),
            coverage=of_both(self.coverage, other.coverage, stacked),
            attended=of_both(self.attended, other.attended, stacked),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "RecurrentState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            hidden=tuple(part.index_select(0, rows) for part in self.hidden),
            source=None if self.source is None else self.source.select(rows),
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
            attended=None if self.attended is None else self.attended.index_select(0, rows),
        )
