"""Bahdanau's decoder: the previous state asks."""

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers import ScoredAttention
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.decoder import Coverage, LookingDecoder
from attlas.models.rnn.encoder import Bridge
from attlas.ops.linear import Linear

# The output layer of Bahdanau's decoder.


class Readout(nn.Module):
    """t_ij = max(t̃_ij, t̃_i,j+l),  t̃_i = U s_i + V E y_{i−1} + C c_i    ("maxout").

    Bahdanau, Cho & Bengio, 2015, appendix A.2.2. The appendix reads the state s_{i−1}, equation 4
    of the paper s_i; here it is s_i, which knows the context. The two of a pair lie l apart, which
    renumbers the paper's rows 2j − 1 and 2j and changes nothing else. "tanh": t_i = tanh(t̃_i).
    """

    def __init__(self, widths: tuple[int, int, int], hidden: int, kind: Literal["maxout", "tanh"]):
        super().__init__()
        self.pieces = 2 if kind == "maxout" else 1
        self.width = hidden
        self.of_all = Linear(sum(widths), self.pieces * hidden)

    def forward(
        self,
        state: Float[Tensor, "*rows hidden"],
        embedded: Float[Tensor, "*rows embedding"],
        context: Float[Tensor, "*rows source_width"],
    ) -> Float[Tensor, "*rows width"]:
        """The features of every row."""
        mixed: Tensor = self.of_all(torch.cat([state, embedded, context], dim=-1))
        if self.pieces == 1:
            return torch.tanh(mixed)
        return torch.maximum(*mixed.chunk(2, dim=-1))


class BahdanauDecoder(LookingDecoder):
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
        self.width = readout.width

    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        context, state = self.glance(state.hidden[0][:, -1], state)
        entering = torch.cat([embedded, context], dim=1)
        top, hidden = self.recurrence.step(entering, state.hidden)
        after = replace(state, hidden=hidden, position=state.position + 1)
        return self.readout(top, embedded, context), after

    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        memory, coverage = self.remembered(state)
        cells = self.recurrence.unrolled(embedded, state.hidden)
        contexts, tops, weights = [], [], []
        for position in range(state.position, state.position + embedded.shape[1]):
            look = self.look(cells.top.unsqueeze(1), memory, coverage, position)
            context = look.context.squeeze(1)
            tops.append(cells.step(context))
            contexts.append(context)
            weights.append(look.weights)
            coverage = coverage + look.used[:, 0, 0]
        self.note(weights, memory, state.position)
        features: Tensor = self.readout(
            torch.stack(tops, dim=1), embedded, torch.stack(contexts, dim=1)
        )
        return features
