"""The layers of a Transformer as nodes of a graph."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from attlas.exporting.attentions import Linear, all_heads
from attlas.exporting.graph import Graph
from attlas.exporting.graph_heads import Heads, attended
from attlas.exporting.graph_vocabulary import embedded
from attlas.layers import LearnedPositions, MultiHead, Positions, SinusoidalPositions
from attlas.models.block import BlockConfig
from attlas.models.embedding import Embedding

_FLOAT, _DOUBLE = 1, 11  # the numbers that onnx.TensorProto gives these types


@dataclass(frozen=True, slots=True)
class Turns:
    """Positions (count,), and sines and cosines of their angles (count, half a width)."""

    positions: str
    sine: str
    cosine: str


class GraphLayers:
    """What `attlas.layers` and the Transformer compute, in the words of ONNX.

    Every method takes names of values and gives back the name of another; x is (batch, positions,
    width).
    """

    def __init__(self, graph: Graph, config: BlockConfig) -> None:
        self.graph = graph
        self.heads = config.heads
        self.width = config.width
        self.rotary = config.positions == "rotary"
        self.activation = config.activation
        self.pre = config.placement == "pre"

    def embedded(self, ids: str, embedding: Embedding) -> str:
        """Their vectors, times √width."""
        vectors = embedded(self.graph, ids, embedding)
        return self.graph.node("Mul", vectors, self.graph.number(math.sqrt(self.width)))

    def positions(self, places: str) -> Turns:
        """p · 10000^(−2i/d), in double precision as in `attlas.layers.positions`."""
        graph = self.graph
        width = self.width // self.heads if self.rotary else self.width
        frequencies = np.exp(np.arange(0, width, 2) * (-math.log(10_000.0) / width))
        exact = graph.node("Cast", places, to=_DOUBLE)
        angles = graph.node(
            "Mul",
            graph.node("Unsqueeze", exact, graph.integers(1)),
            graph.constant(frequencies.astype(np.float64)),
        )
        sine, cosine = (
            graph.node("Cast", graph.node(operator, angles), to=_FLOAT)
            for operator in ("Sin", "Cos")
        )
        return Turns(places, sine, cosine)

    def placed(self, x: str, positions: Positions, turns: Turns) -> str:
        """The embeddings with their positions."""
        graph = self.graph
        if isinstance(positions, LearnedPositions):
            table = graph.constant(positions.vectors.weight)
            return graph.node("Add", x, graph.node("Gather", table, turns.positions))
        if isinstance(positions, SinusoidalPositions):
            pairs = self._paired(turns.sine, turns.cosine)
            return graph.node("Add", x, graph.reshaped(pairs, -1, self.width))
        return x

    def seen(self, real: str) -> str:
        """Which slots may be looked at, for every head and query."""
        return self.graph.node("Unsqueeze", real, self.graph.integers(1, 2))

    def around(self, x: str, residual: Any, sublayer: Callable[[str], str]) -> str:
        """A sublayer with add & norm."""
        added = sublayer(self.normed(x, residual.norm) if self.pre else x)
        x = self.graph.node("Add", x, added)
        return x if self.pre else self.normed(x, residual.norm)

    def normed(self, x: str, norm: nn.Module | None) -> str:
        """LayerNorm or RMSNorm; x itself where there is none."""
        graph = self.graph
        if norm is None:
            return x
        if isinstance(norm, nn.LayerNorm):
            scale, bias = graph.constant(norm.weight), graph.constant(norm.bias)
            return graph.node("LayerNormalization", x, scale, bias, epsilon=norm.eps)
        assert isinstance(norm, nn.RMSNorm)
        assert norm.eps is not None
        mean = graph.node("ReduceMean", graph.node("Mul", x, x), graph.integers(-1))
        root = graph.node("Sqrt", graph.node("Add", mean, graph.number(norm.eps)))
        return graph.node("Mul", graph.node("Div", x, root), graph.constant(norm.weight))

    def thought(self, x: str, layer: Any) -> str:
        """The feed-forward."""
        return self.around(x, layer.around_feedforward, lambda y: self._fed(y, layer.feedforward))

    def remembered(self, x: str, attention: MultiHead, turns: Turns | None) -> Heads:
        """Keys and values; turns: where these positions are."""
        _, key, value = all_heads(attention)
        keys = self._turned(self._apart(self._mapped(x, key)), turns)
        return Heads(keys, self._apart(self._mapped(x, value)))

    def longer(self, past: Heads, new: Heads) -> Heads:
        """The past and what is new behind it."""
        return Heads(
            self.graph.node("Concat", past.keys, new.keys, axis=2),
            self.graph.node("Concat", past.values, new.values, axis=2),
        )

    def asked(self, x: str, attention: MultiHead, turns: Turns | None) -> str:
        """q / √d of each head, (batch, heads, queries, width of a head)."""
        query, _, _ = all_heads(attention)
        asked = self._turned(self._apart(self._mapped(x, query)), turns)
        return self.graph.node("Mul", asked, self.graph.number((self.width // self.heads) ** -0.5))

    def merged(self, context: str, attention: MultiHead) -> str:
        """What the heads read, as one context."""
        merged = self.graph.node("Transpose", context, perm=[0, 2, 1, 3])
        return self._of(self.graph.reshaped(merged, 0, 0, self.width), attention.of_heads)

    def read(
        self, x: str, kept: Heads, attention: MultiHead, seen: str | None, turns: Turns | None
    ) -> str:
        """softmax(q kᵀ / √d) v per head, over the seen slots, merged."""
        asked = self.asked(x, attention, turns)
        return self.merged(attended(self.graph, asked, kept, seen), attention)

    def _fed(self, x: str, feedforward: Any) -> str:
        graph = self.graph
        inner = self._of(x, feedforward.inner)
        match self.activation:
            case "swiglu":
                silu = graph.node("Mul", inner, graph.node("Sigmoid", inner))
                inner = graph.node("Mul", silu, self._of(x, feedforward.gate))
            case "gelu":
                error = graph.node("Erf", graph.node("Mul", inner, graph.number(math.sqrt(0.5))))
                half = graph.node("Mul", inner, graph.number(0.5))
                inner = graph.node("Mul", half, graph.node("Add", error, graph.number(1.0)))
            case _:
                inner = graph.node("Relu", inner)
        return self._of(inner, feedforward.outer)

    def _of(self, x: str, linear: nn.Linear) -> str:
        return self._mapped(x, (linear.weight, linear.bias))

    def _mapped(self, x: str, linear: Linear) -> str:
        return self.graph.mapped(x, *linear)

    def _apart(self, x: str) -> str:
        """(batch, positions, width) as (batch, heads, positions, width of a head)."""
        split = self.graph.reshaped(x, 0, 0, self.heads, self.width // self.heads)
        return self.graph.node("Transpose", split, perm=[0, 2, 1, 3])

    def _turned(self, vectors: str, turns: Turns | None) -> str:
        """Rotary positions, where the model has them and a position is given."""
        if turns is None or not self.rotary:
            return vectors
        graph = self.graph
        width = self.width // self.heads
        pairs = graph.reshaped(vectors, 0, 0, 0, width // 2, 2)
        even = graph.node("Gather", pairs, graph.number(0, np.int64), axis=-1)
        odd = graph.node("Gather", pairs, graph.number(1, np.int64), axis=-1)

        def times(first: str, second: str) -> str:
            return graph.node("Mul", first, second)

        turned = self._paired(
            graph.node("Sub", times(even, turns.cosine), times(odd, turns.sine)),
            graph.node("Add", times(even, turns.sine), times(odd, turns.cosine)),
        )
        return graph.reshaped(turned, 0, 0, 0, width)

    def _paired(self, first: str, second: str) -> str:
        """Both side by side on a new last axis."""
        graph = self.graph
        ends = (graph.node("Unsqueeze", one, graph.integers(-1)) for one in (first, second))
        return graph.node("Concat", *ends, axis=-1)
