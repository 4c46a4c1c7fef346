"""Bahdanau's decoder: the previous state asks."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.layers import ScoredAttention
from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.coverage import Coverage
from attlas.models.recurrent.looking import LookingDecoder
from attlas.models.recurrent.readout import Readout
from attlas.models.recurrent.recurrence import Recurrence
from attlas.models.recurrent.state import RecurrentState


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
