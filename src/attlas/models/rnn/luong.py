"""Luong's decoder: the current state is the query."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import ScoredAttention
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.decoder import AttentionDecoder, Coverage
from attlas.models.rnn.encoder import Bridge, Encoded
from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_reads import deferred_gradient
from attlas.ops.linear import Linear
from attlas.recording.hooks import has_hooks


class LuongDecoder(AttentionDecoder):
    """s_t = RNN(E y_{t−1}, s_{t−1});  c_t = attend(s_t, h);  h̃_t = tanh(W_c [c_t; s_t]).

    Luong, Pham & Manning, 2015, section 3. A whole target is one RNN call and one batched read.
    With coverage the reads depend on each other and only they run in a loop.

    Args:
        is_linear: whether the vocabulary layer reads [s_t; c_t] in place of h̃_t, so that it is all
            that there is.
    """

    def __init__(
        self,
        bridge: Bridge,
        recurrence: Recurrence,
        attention: ScoredAttention,
        coverage: Coverage | None,
        source_dim: int,
        is_linear: bool = False,
    ) -> None:
        super().__init__(bridge, recurrence, attention, coverage)
        joined_dim = source_dim + recurrence.rnn.hidden_size
        self.feature_dim = joined_dim if is_linear else recurrence.rnn.hidden_size
        self.concat_proj: Linear | None = None
        if not is_linear:
            self.concat_proj = Linear(joined_dim, self.feature_dim, bias=False)

    def attentional(
        self,
        context: Float[Tensor, "*rows source_dim"],
        state: Float[Tensor, "*rows hidden_dim"],
    ) -> Float[Tensor, "*rows dim"]:
        """h̃ = tanh(W_c [c; s]); [s; c] of a linear readout."""
        if self.concat_proj is None:
            return torch.cat([state, context], dim=-1)
        return torch.tanh(self.concat_proj(torch.cat([context, state], dim=-1)))

    def step(
        self, embedded: Float[Tensor, "batch embed_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch dim"], RecurrentState]:
        top, hidden = self.recurrence.step(embedded, state.hidden)
        context, state = self.attend_step(top, state)
        after = replace(state, hidden=hidden, position=state.position + 1)
        return self.attentional(context, top), after

    def decode(
        self, embedded: Float[Tensor, "batch queries embed_dim"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        cache, coverage = self.expanded_cache(state)
        outputs = self.recurrence(embedded, state.hidden)
        if self.coverage is None:
            output = self.attend(outputs, cache, coverage, state.position)
            self.record([output.weights], cache, state.position)
            return self.attentional(output.context, outputs)
        contexts, weights = [], []
        for position, query in enumerate(outputs.split(1, dim=1), start=state.position):
            output = self.attend(query, cache, coverage, position)
            coverage = coverage + output.applied[:, 0, 0]
            contexts.append(output.context)
            weights.append(output.weights)
        self.record(weights, cache, state.position)
        return self.attentional(torch.cat(contexts, dim=1), outputs)


class InputFeedingDecoder(LuongDecoder):
    """s_t = RNN([E y_{t−1}; h̃_{t−1}], s_{t−1}), h̃_0 = 0    Luong et al., 2015, section 3.3."""

    def start(
        self, encoded: Encoded, token_mask: Bool[Tensor, "batch keys"] | None
    ) -> RecurrentState:
        state = super().start(encoded, token_mask)
        zeros = state.hidden[0].new_zeros(len(encoded.outputs), self.feature_dim)
        return replace(state, attended=zeros)

    def step(
        self, embedded: Float[Tensor, "batch embed_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch dim"], RecurrentState]:
        rnn_input = torch.cat([embedded, self.last_attentional(state)], dim=1)
        attended, after = super().step(rnn_input, state)
        return attended, replace(after, attended=attended)

    def decode(
        self, embedded: Float[Tensor, "batch queries embed_dim"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        cache, coverage = self.expanded_cache(state)
        cells = self.recurrence.unrolled(embedded, state.hidden)
        attended = self.last_attentional(state)
        attentional = self._attentional_of_steps(cache)
        features, weights = [], []
        for position in range(state.position, state.position + embedded.shape[1]):
            top = cells.step(attended)
            output = self.attend(top.unsqueeze(1), cache, coverage, position)
            attended = attentional(output.context.squeeze(1), top)
            if self.coverage is not None:
                coverage = coverage + output.applied[:, 0, 0]
            features.append(attended)
            weights.append(output.weights)
        self.record(weights, cache, state.position)
        return torch.stack(features, dim=1)

    def _attentional_of_steps(self, cache: KeyValueCache) -> Callable[[Tensor, Tensor], Tensor]:
        """`attentional`; with a long source, the gradient of its matrix waits for the last step."""
        deferred, proj = deferred_gradient(cache.values), self.concat_proj
        if (
            deferred is None
            or not (type(proj) is Linear and proj.bias is None)
            or has_hooks([proj])
        ):
            return self.attentional
        step = deferred.step_linear(proj.weight)
        return lambda context, state: torch.tanh(step(torch.cat([context, state], dim=-1)))

    @staticmethod
    def last_attentional(state: RecurrentState) -> Float[Tensor, "batch dim"]:
        """h̃_{t−1}."""
        if state.attended is None:
            raise AttlasError(
                "a state with the last attentional vector",
                "one of a model without input feeding",
                "start from this model's own `encode`",
            )
        return state.attended
