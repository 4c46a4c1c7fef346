"""Bahdanau's decoder: the previous state asks."""

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers import ScoredAttention
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.decoder import AttentionDecoder, Coverage
from attlas.models.rnn.encoder import Bridge
from attlas.ops.linear import Linear

# The output layer of Bahdanau's decoder.


class Readout(nn.Module):
    """t_ij = max(t̃_ij, t̃_i,j+l),  t̃_i = U s_i + V E y_{i−1} + C c_i    ("maxout").

    Bahdanau, Cho & Bengio, 2015, appendix A.2.2. The appendix reads the state s_{i−1}, equation 4
    of the paper s_i; here it is s_i, which knows the context. The two of a pair lie l apart, which
    renumbers the paper's rows 2j − 1 and 2j and changes nothing else. "tanh": t_i = tanh(t̃_i).
    """

    def __init__(
        self, input_dims: tuple[int, int, int], feature_dim: int, kind: Literal["maxout", "tanh"]
    ):
        super().__init__()
        self.pieces = 2 if kind == "maxout" else 1
        self.feature_dim = feature_dim
        self.proj = Linear(sum(input_dims), self.pieces * feature_dim)

    def forward(
        self,
        state: Float[Tensor, "*rows hidden_dim"],
        embedded: Float[Tensor, "*rows embed_dim"],
        context: Float[Tensor, "*rows source_dim"],
    ) -> Float[Tensor, "*rows dim"]:
        """The features of every row."""
        mixed: Tensor = self.proj(torch.cat([state, embedded, context], dim=-1))
        if self.pieces == 1:
            return torch.tanh(mixed)
        return torch.maximum(*mixed.chunk(2, dim=-1))


class BahdanauDecoder(AttentionDecoder):
    """c_i = attend(s_{i−1}, h);  s_i = RNN([E y_{i−1}; c_i], s_{i−1});  t_i = readout.

    Bahdanau, Cho & Bengio, 2015, section 3.1 and appendix A.2.2. With several layers the top
    layer's previous state asks. The steps of a whole target run in a loop; what does not depend on
    the loop (the embedding's part of the gates, the readout) is computed for all of them at once.
    """

    def __init__(
        self,
        bridge: Bridge,
        recurrence: Recurrence,
        attention: ScoredAttention,
        coverage: Coverage | None,
        readout: Readout,
    ) -> None:
        super().__init__(bridge, recurrence, attention, coverage)
        self.readout = readout
        self.feature_dim = readout.feature_dim

    def step(
        self, embedded: Float[Tensor, "batch embed_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch dim"], RecurrentState]:
        context, state = self.attend_step(state.hidden[0][:, -1], state)
        entering = torch.cat([embedded, context], dim=1)
        top, hidden = self.recurrence.step(entering, state.hidden)
        after = replace(state, hidden=hidden, position=state.position + 1)
        return self.readout(top, embedded, context), after

    def decode(
        self, embedded: Float[Tensor, "batch queries embed_dim"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        cache, coverage = self.expanded_cache(state)
        cells = self.recurrence.unrolled(embedded, state.hidden)
        contexts, tops, weights = [], [], []
        for position in range(state.position, state.position + embedded.shape[1]):
            output = self.attend(cells.top.unsqueeze(1), cache, coverage, position)
            context = output.context.squeeze(1)
            tops.append(cells.step(context))
            contexts.append(context)
            weights.append(output.weights)
            coverage = coverage + output.applied[:, 0, 0]
        self.record(weights, cache, state.position)
        features: Tensor = self.readout(
            torch.stack(tops, dim=1), embedded, torch.stack(contexts, dim=1)
        )
        return features
