"""What the decoders that look have in common."""

from abc import ABC
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import LocalMonotonic, Memory, ScoredAttention
from attlas.layers.attention import Look
from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.coverage import Coverage
from attlas.models.recurrent.decoder import Decoder
from attlas.models.recurrent.encoder import Encoded
from attlas.models.recurrent.recurrence import Recurrence
from attlas.models.recurrent.state import RecurrentState
from attlas.models.source_memory import SourceMemory


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
        self.attention.tap.across = True
        self.coverage = coverage

    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        memory = self.attention.remember(encoded.outputs, real)
        return RecurrentState(
            self.bridge(encoded.final),
            source=SourceMemory((memory,)),
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

    def glance(
        self, query: Float[Tensor, "batch hidden"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch value_width"], RecurrentState]:
        """The context of one query a row, noted, and the state with what it covered.

        Rows that share a source ask its one memory as so many queries, where nothing tells them
        apart but the query, and nobody listens, who would want a batch row for each.
        """
        memory, coverage = self._kept(state)
        source, tap = state.source, self.attention.tap
        assert source is not None  # `_kept` has asked
        at_one_place = isinstance(self.attention, LocalMonotonic) or self.coverage is not None
        if at_one_place or tap.heard or tap.intervened or source.each == 1:
            memory = source.spread(0)
            look = self.look(query.unsqueeze(1), memory, coverage, state.position)
            self.note([look.weights], memory, state.position)
            used = look.used[:, 0, 0]
        else:
            asked = query.view(-1, source.each, query.shape[1])
            look = self.attention.look(asked, memory, state.position)
            used = look.used.flatten(0, 2)
        covered = coverage + used
        return look.context.flatten(0, 1), replace(state, coverage=covered)

    def remembered(self, state: RecurrentState) -> tuple[Memory, Float[Tensor, "batch slots"]]:
        """What a state keeps of each row's source, and how much each slot has been read."""
        _, coverage = self._kept(state)
        assert state.source is not None
        return state.source.spread(0), coverage

    def _kept(self, state: RecurrentState) -> tuple[Memory, Float[Tensor, "batch slots"]]:
        if state.source is None or state.coverage is None:
            raise AttlasError(
                "a state with a memory of the source",
                "one of a model that cannot look",
                "start from this model's own `encode`",
            )
        return state.source.layers[0], state.coverage

    def note(
        self, weights: list[Float[Tensor, "batch 1 _ slots"]], memory: Memory, first: int
    ) -> None:
        """Tell who listens: one reading, its queries in order; `first` is the first one's place."""
        if self.attention.tap.heard:
            joined = torch.cat([part.detach() for part in weights], dim=2)
            self.attention.note(joined, memory, first)


def _nothing(outputs: Float[Tensor, "batch slots width"]) -> Float[Tensor, "batch slots"]:
    """No coverage yet; half precision would lose small weights from a long sum."""
    precise = torch.promote_types(outputs.dtype, torch.float32)
    return torch.zeros(outputs.shape[:2], dtype=precise, device=outputs.device)
