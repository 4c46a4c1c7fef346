"""What the decoders that look have in common."""

from abc import ABC

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import Memory, ScoredAttention
from attlas.layers.attention import Look
from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.coverage import Coverage
from attlas.models.recurrent.decoder import Decoder
from attlas.models.recurrent.encoder import Encoded
from attlas.models.recurrent.recurrence import Recurrence
from attlas.models.recurrent.state import RecurrentState
from attlas.recording import DenseReading


class LookingDecoder(Decoder, ABC):
    """A decoder with an attention: it remembers the source, looks, and tells who listens.

    In a loop over a target the weights of every step become one reading; `step` notes its own.
    """

    def __init__(
        self,
        bridge: Bridge,
        recurrence: Recurrence,
        attention: ScoredAttention,
        coverage: Coverage | None,
    ) -> None:
        super().__init__(bridge, recurrence)
        self.attention = attention
        self.coverage = coverage

    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        memory = self.attention.remember(encoded.outputs, real)
        return RecurrentState(
            self.bridge(encoded.final),
            memory=memory,
            coverage=_nothing(encoded.outputs),
        )

    def look(
        self,
        query: Float[Tensor, "batch queries hidden"],
        memory: Memory,
        coverage: Float[Tensor, "batch slots"],
        first: int,
    ) -> Look:
        """Read the memory as the attention does; noting is left to the caller."""
        if self.coverage is not None:
            memory = self.coverage(memory, coverage)
        return self.attention.look(query, memory, first)

    def remembered(self, state: RecurrentState) -> tuple[Memory, Float[Tensor, "batch slots"]]:
        """What a state keeps of the source, and how much each slot has been read."""
        if state.memory is None or state.coverage is None:
            raise AttlasError(
                "a state with a memory of the source",
                "one of a model that cannot look",
                "start from this model's own `encode`",
            )
        return state.memory, state.coverage

    def note(self, weights: list[Float[Tensor, "batch 1 _ slots"]]) -> None:
        """Tell who listens: one reading, its queries in order."""
        if self.attention.tap.heard:
            joined = torch.cat([part.detach() for part in weights], dim=2)
            self.attention.tap.note(DenseReading(joined))


def _nothing(outputs: Float[Tensor, "batch slots width"]) -> Float[Tensor, "batch slots"]:
    """No coverage yet; half precision would lose small weights from a long sum."""
    precise = torch.promote_types(outputs.dtype, torch.float32)
    return torch.zeros(outputs.shape[:2], dtype=precise, device=outputs.device)
