"""Luong's decoder: the current state asks."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import ScoredAttention
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.decoder import Coverage, LookingDecoder
from attlas.models.rnn.encoder import Bridge, Encoded
from attlas.ops.linear import Linear


class LuongDecoder(LookingDecoder):
    """s_t = RNN(E y_{t−1}, s_{t−1});  c_t = attend(s_t, h);  h̃_t = tanh(W_c [c_t; s_t]).

    Luong, Pham & Manning, 2015, section 3. A whole target is one RNN call and one batched read.
    With coverage the reads depend on each other and only they run in a loop.
    """

    def __init__(
        self,
        bridge: Bridge,
        recurrence: Recurrence,
        attention: ScoredAttention,
        coverage: Coverage | None,
        source_width: int,
    ) -> None:
        super().__init__(bridge, recurrence, attention, coverage)
        self.width = recurrence.rnn.hidden_size
        self.of_both = Linear(source_width + self.width, self.width, bias=False)

    def attentional(
        self,
        context: Float[Tensor, "*rows source_width"],
        state: Float[Tensor, "*rows hidden"],
    ) -> Float[Tensor, "*rows width"]:
        """h̃ = tanh(W_c [c; s])."""
        return torch.tanh(self.of_both(torch.cat([context, state], dim=-1)))

    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        top, hidden = self.recurrence.step(embedded, state.hidden)
        context, state = self.glance(top, state)
        after = replace(state, hidden=hidden, position=state.position + 1)
        return self.attentional(context, top), after

    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        memory, coverage = self.remembered(state)
        outputs = self.recurrence(embedded, state.hidden)
        if self.coverage is None:
            look = self.look(outputs, memory, coverage, state.position)
            self.note([look.weights], memory, state.position)
            return self.attentional(look.context, outputs)
        contexts, weights = [], []
        for position, query in enumerate(outputs.split(1, dim=1), start=state.position):
            look = self.look(query, memory, coverage, position)
            coverage = coverage + look.used[:, 0, 0]
            contexts.append(look.context)
            weights.append(look.weights)
        self.note(weights, memory, state.position)
        return self.attentional(torch.cat(contexts, dim=1), outputs)


class InputFeedingDecoder(LuongDecoder):
    """s_t = RNN([E y_{t−1}; h̃_{t−1}], s_{t−1}), h̃_0 = 0    Luong et al., 2015, section 3.3."""

    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        state = super().start(encoded, real)
        nothing = state.hidden[0].new_zeros(len(encoded.outputs), self.width)
        return replace(state, attended=nothing)

    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        fed = torch.cat([embedded, self.fed(state)], dim=1)
        attended, after = super().step(fed, state)
        return attended, replace(after, attended=attended)

    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        memory, coverage = self.remembered(state)
        cells = self.recurrence.unrolled(embedded, state.hidden)
        attended = self.fed(state)
        features, weights = [], []
        for position in range(state.position, state.position + embedded.shape[1]):
            top = cells.step(attended)
            look = self.look(top.unsqueeze(1), memory, coverage, position)
            attended = self.attentional(look.context.squeeze(1), top)
            coverage = coverage + look.used[:, 0, 0]
            features.append(attended)
            weights.append(look.weights)
        self.note(weights, memory, state.position)
        return torch.stack(features, dim=1)

    @staticmethod
    def fed(state: RecurrentState) -> Float[Tensor, "batch width"]:
        """h̃_{t−1}."""
        if state.attended is None:
            raise AttlasError(
                "a state with the last attentional vector",
                "one of a model without input feeding",
                "start from this model's own `encode`",
            )
        return state.attended
