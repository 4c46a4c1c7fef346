"""Layers of GRU or LSTM cells as nodes of a graph."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attlas.exporting.graph import Graph

# Which of torch's gates stand where in ONNX: reset, update, new → update, reset, new of a GRU;
# in, forget, new, out → in, out, forget, new of an LSTM.
_GRU, _LSTM = (1, 0, 2), (0, 3, 1, 2)


class GraphRecurrence:
    """What `nn.GRU` or `nn.LSTM` computes, by the operators of the same names.

    A state has one part, h, or two, h and c.
    """

    def __init__(self, graph: Graph, rnn: nn.GRU | nn.LSTM) -> None:
        self.graph = graph
        self.rnn = rnn
        self.directions = 2 if rnn.bidirectional else 1
        self.parts = 2 if rnn.mode == "LSTM" else 1

    def read(self, x: str, lengths: str) -> tuple[str, list[list[str]]]:
        """(batch, slots, width) → outputs (batch, slots, directions · hidden), and of each part
        each layer's last state (directions, batch, hidden).

        lengths (batch,) int32: where each row ends; the backward direction begins there.
        """
        graph = self.graph
        x = graph.node("Transpose", x, perm=[1, 0, 2])
        final: list[list[str]] = [[] for _ in range(self.parts)]
        for layer in range(self.rnn.num_layers):
            outputs, *ends = self._layer(layer, x, lengths)
            apart = graph.node("Transpose", outputs, perm=[0, 2, 1, 3])
            x = graph.reshaped(apart, 0, 0, self.directions * self.rnn.hidden_size)
            for part, end in zip(final, ends, strict=True):
                part.append(end)
        return graph.node("Transpose", x, perm=[1, 0, 2]), final

    def step(self, entering: str, before: list[str]) -> tuple[str, list[str]]:
        """(batch, width), and of each part what was before (batch, layers, hidden) → the top
        layer's h (batch, hidden), and what is after.
        """
        graph = self.graph
        x = graph.node("Unsqueeze", entering, graph.integers(0))
        layers: list[list[str]] = [[] for _ in before]
        for layer in range(self.rnn.num_layers):
            states = [
                graph.node("Unsqueeze", self.of(one, layer), graph.integers(0)) for one in before
            ]
            _, *ends = self._layer(layer, x, "", *states)
            x = ends[0]  # of the one step of the one direction
            for part, end in zip(layers, ends, strict=True):
                part.append(end)
        after = [
            graph.node("Transpose", graph.node("Concat", *part, axis=0), perm=[1, 0, 2])
            for part in layers
        ]
        return graph.node("Squeeze", x, graph.integers(0)), after

    def of(self, part: str, layer: int) -> str:
        """One layer (batch, hidden) of a part (batch, layers, hidden)."""
        return self.graph.node("Gather", part, self.graph.number(layer, np.int64), axis=1)

    def _layer(self, layer: int, x: str, lengths: str, *states: str) -> list[str]:
        """(slots, batch, width) → (slots, directions, batch, hidden), and the last state."""
        first = layer * self.directions
        of_input, of_state, *biases = (
            torch.stack([self._ordered(part) for part in parts])
            for parts in zip(*self.rnn.all_weights[first : first + self.directions], strict=True)
        )
        attributes: dict[str, Any] = {"hidden_size": self.rnn.hidden_size}
        if self.directions == 2:
            attributes["direction"] = "bidirectional"
        if self.parts == 1:
            attributes["linear_before_reset"] = 1  # the reset gate acts behind the matrix
        weights = (of_input, of_state, torch.cat(biases, dim=1))
        constants = (self.graph.constant(weight) for weight in weights)
        return self.graph.several(
            1 + self.parts, self.rnn.mode, x, *constants, lengths, *states, **attributes
        )

    def _ordered(self, weight: Tensor) -> Tensor:
        order = _LSTM if self.parts == 2 else _GRU
        gates = weight.detach().chunk(len(order))
        return torch.cat([gates[number] for number in order])
