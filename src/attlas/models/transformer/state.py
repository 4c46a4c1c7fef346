"""What the Transformer's decoder carries from token to token."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas.layers.stacked import stacked
from attlas.models.joining import check_positions, of_both
from attlas.models.source_memory import SourceMemory
from attlas.models.transformer.target_memory import TargetMemory


@dataclass(frozen=True, slots=True)
class TransformerState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    source: what each layer keeps of the source. past: what each layer keeps of the target so far.
    coverage: Σ over the steps of the last layer's cross-attention, mean over heads; None until
    `covered` asks for it, because it costs the weights of every step.
    """

    source: SourceMemory
    past: TargetMemory = field(default_factory=TargetMemory)
    coverage: Float[Tensor, "batch slots"] | None = None

    @property
    def position(self) -> int:
        """How many target tokens have been read."""
        return self.past.length

    @property
    def rows(self) -> int:
        """How many hypotheses there are."""
        return self.source.layers[0].keys.shape[0] * self.source.each

    def covered(self) -> "TransformerState":
        """The same, and from here on the steps count where they look."""
        keys = self.source.layers[-1].keys
        precise = torch.promote_types(keys.dtype, torch.float32)
        nothing = torch.zeros(self.rows, keys.shape[-2], dtype=precise, device=keys.device)
        return replace(self, coverage=nothing)

    def followed_by(self, other: "TransformerState") -> "TransformerState":
        """These rows and then those of another state, which has read as many target tokens."""
        check_positions(self.position, other.position)
        return replace(
            self,
            source=self.source.followed_by(other.source),
            past=self.past.followed_by(other.past),
            coverage=of_both(self.coverage, other.coverage, stacked),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "TransformerState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            source=self.source.select(rows),
            past=self.past.select(rows),
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
        )
