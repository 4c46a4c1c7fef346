"""What every recurrent decoder answers."""

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers import LocalMonotonic, ScoredAttention
from attlas.layers.base import Look
from attlas.models.cache import SourceMemory
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.encoder import Bridge, Encoded
from attlas.ops.cache import Memory

# Coverage: the attention knows where it has looked.


class Coverage(nn.Module):
    """v · tanh(W s + U h_j + w_c c_j),  c_j = Σ of the weights on slot j so far.

    See, Liu & Manning, 2017, eq. 10 and 11; Tu et al., 2016. The term that coverage adds depends
    on the slot alone, so it is added to the keys that the attention remembers.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.of_coverage = nn.Linear(1, hidden, bias=False)

    def forward(self, memory: Memory, coverage: Float[Tensor, "batch slots"]) -> Memory:
        """The memory as it looks once the coverage is known."""
        covered = coverage.unsqueeze(-1).to(memory.keys.dtype)
        return replace(memory, keys=memory.keys + self.of_coverage(covered))


class Decoder(nn.Module, ABC):
    """Embedded target tokens in, features before the vocabulary layer out.

    `step` and `features` are twins: one token, or a whole target from a state. `width` is that of
    the features.
    """

    width: int

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__()
        self.bridge = bridge
        self.recurrence = recurrence

    @abstractmethod
    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        """The state before the first target token."""

    @abstractmethod
    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        """The features of one token, and the state that follows."""

    @abstractmethod
    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        """The features of every token of a target."""


# What the decoders that look have in common.


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


# The decoder without attention.


class PlainDecoder(Decoder):
    """s_t = RNN(y_{t−1}, s_{t−1})    Sutskever, Vinyals & Le, 2014: a decoder that cannot look.

    The source reaches it through its initial state alone (Cho et al., 2014, pass a summary of the
    source to every step as well). A whole target is one RNN call.
    """

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__(bridge, recurrence)
        self.width = recurrence.rnn.hidden_size

    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.final))

    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        top, hidden = self.recurrence.step(embedded, state.hidden)
        return top, replace(state, hidden=hidden, position=state.position + 1)

    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        outputs: Tensor = self.recurrence(embedded, state.hidden)
        return outputs
