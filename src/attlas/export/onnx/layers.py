"""The layers of a Transformer as nodes of a graph."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attlas.export.base import Linear, all_heads
from attlas.export.onnx.attention import (
    GraphAttention,
    GraphPatternAttention,
    Heads,
    SourceInputs,
    attended,
)
from attlas.export.onnx.builder import Graph, GraphNumbers
from attlas.layers import LearnedPositions, MultiheadAttention, Positions, SinusoidalPositions
from attlas.models.classifier import (
    AttentivePooling,
    FirstPooling,
    MaxPooling,
    MeanPooling,
    Pooling,
)
from attlas.models.embedding import Embedding, Output
from attlas.models.transformer.block import TransformerEncoder
from attlas.models.transformer.config import BlockConfig
from attlas.patterns import everywhere
from attlas.runs.loaded import unsupported

# From one vector for each token to one for the whole text, as nodes of a graph.


_FLOAT_OF_GRAPH_POOLING, _INT32 = 1, 6  # the numbers that onnx.TensorProto gives these types
_LEAST = float(np.finfo(np.float32).min)


def pool_graph(graph: Graph, vectors: str, token_mask: str, pooling: Pooling) -> str:
    """(batch, keys, dim) → (batch, dim); a text without a token pools to 0."""
    mask = graph.node("Unsqueeze", token_mask, graph.integers(2))
    match pooling:
        case MeanPooling():
            tokens = graph.node("Where", mask, vectors, graph.number(0.0))
            total = graph.node("ReduceSum", tokens, graph.integers(1), keepdims=0)
            ones = graph.node("Cast", token_mask, to=_FLOAT_OF_GRAPH_POOLING)
            count = graph.node("ReduceSum", ones, graph.integers(1), keepdims=1)
            return graph.node("Div", total, graph.node("Max", count, graph.number(1.0)))
        case MaxPooling():
            tokens = graph.node("Where", mask, vectors, graph.number(_LEAST))
            maximum = graph.node("ReduceMax", tokens, graph.integers(1), keepdims=0)
            return _of_texts(graph, maximum, token_mask)
        case FirstPooling():
            ones = graph.node("Cast", token_mask, to=_INT32)
            first = graph.node("ArgMax", ones, axis=1, keepdims=1)
            return _of_texts(
                graph, graph.node("GatherND", vectors, first, batch_dims=1), token_mask
            )
        case AttentivePooling():
            attention = GraphAttention(graph, pooling.attention)
            source = SourceInputs(attention.keys(vectors), vectors, token_mask)
            query = graph.constant(pooling.query.unsqueeze(0))  # the same for every text
            return attention.look(query, source, None)[0]
        case _:
            raise unsupported(
                "ONNX", "mean, max, first or attentive pooling", type(pooling).__name__
            )


def _of_texts(graph: Graph, vectors: str, token_mask: str) -> str:
    """The vectors of texts that have a token, and zeros."""
    ones = graph.node("Cast", token_mask, to=_INT32)
    any_ = graph.node("ReduceMax", ones, graph.integers(1), keepdims=1)
    has_tokens = graph.node("Cast", any_, to=9)
    return graph.node("Where", has_tokens, vectors, graph.number(0.0))


# Layers of GRU or LSTM cells as nodes of a graph.


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
        """(batch, keys, dim) → outputs (batch, keys, directions · hidden_dim), and of each part
        each layer's last state (directions, batch, hidden_dim).

        lengths (batch,) int32: where each row ends; the backward direction begins there.
        """
        graph = self.graph
        x = graph.node("Transpose", x, perm=[1, 0, 2])
        final: list[list[str]] = [[] for _ in range(self.parts)]
        for layer in range(self.rnn.num_layers):
            outputs, *ends = self._layer(layer, x, lengths)
            by_step = graph.node("Transpose", outputs, perm=[0, 2, 1, 3])
            x = graph.reshaped(by_step, 0, 0, self.directions * self.rnn.hidden_size)
            for part, end in zip(final, ends, strict=True):
                part.append(end)
        return graph.node("Transpose", x, perm=[1, 0, 2]), final

    def step(self, entering: str, previous: list[str]) -> tuple[str, list[str]]:
        """(batch, dim), and of each part what was before (batch, layers, hidden_dim) → the top
        layer's h (batch, hidden_dim), and what is after.
        """
        graph = self.graph
        x = graph.node("Unsqueeze", entering, graph.integers(0))
        layers: list[list[str]] = [[] for _ in previous]
        for layer in range(self.rnn.num_layers):
            states = [
                graph.node("Unsqueeze", self.of(state, layer), graph.integers(0))
                for state in previous
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
        """One layer (batch, hidden_dim) of a part (batch, layers, hidden_dim)."""
        return self.graph.node("Gather", part, self.graph.number(layer, np.int64), axis=1)

    def _layer(self, layer: int, x: str, lengths: str, *states: str) -> list[str]:
        """(keys, batch, dim) → (keys, directions, batch, hidden_dim), and the last state."""
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


# Where ids become vectors, and features the logits of ids, as nodes of a graph.


def embedded(graph: Graph, ids: str, embedding: Embedding) -> str:
    """The vectors of these ids (…,): (…, dim)."""
    return graph.node("Gather", _rows(graph, embedding), ids)


def logits(graph: Graph, features: str, output: Output, embedding: Embedding) -> str:
    """W f + b of features (batch, dim); tied, W is the embedding, behind a bottleneck or not."""
    if output.bottleneck is not None:
        features = graph.mapped(features, output.bottleneck.weight)
    weight = output.weight
    rows = _rows(graph, embedding) if weight is None else graph.constant(weight)
    return graph.node("Gemm", features, rows, graph.constant(output.bias), transB=1)


def _rows(graph: Graph, embedding: Embedding) -> str:
    return graph.constant(embedding.weight, f"{embedding.side} embedding")  # once in a graph


_FLOAT_OF_GRAPH_LAYERS, _DOUBLE = 1, 11  # the numbers that onnx.TensorProto gives these types


@dataclass(frozen=True, slots=True)
class RotaryAngles:
    """Positions (count,), and sines and cosines of their angles (count, half a width)."""

    positions: str
    sine: str
    cosine: str


class GraphLayers:
    """What `attlas.layers` and the Transformer compute, in the words of ONNX.

    Every method takes names of values and gives back the name of another; x is (batch, positions,
    dim).
    """

    def __init__(self, graph: Graph, config: BlockConfig) -> None:
        self.graph = graph
        self.num_heads = config.num_heads
        self.embed_dim = config.embed_dim
        self.rotary = config.positions == "rotary"
        self.activation = config.activation
        self.pre = config.norm == "pre"

    def embedded(self, ids: str, embedding: Embedding) -> str:
        """Their vectors, times √width."""
        vectors = embedded(self.graph, ids, embedding)
        return self.graph.node("Mul", vectors, self.graph.number(math.sqrt(self.embed_dim)))

    def positions(self, token_positions: str) -> RotaryAngles:
        """p · 10000^(−2i/d), in double precision as in `attlas.layers.positional`."""
        graph = self.graph
        width = self.embed_dim // self.num_heads if self.rotary else self.embed_dim
        frequencies = np.exp(np.arange(0, width, 2) * (-math.log(10_000.0) / width))
        double_positions = graph.node("Cast", token_positions, to=_DOUBLE)
        angles = graph.node(
            "Mul",
            graph.node("Unsqueeze", double_positions, graph.integers(1)),
            graph.constant(frequencies.astype(np.float64)),
        )
        sine, cosine = (
            graph.node("Cast", graph.node(operator, angles), to=_FLOAT_OF_GRAPH_LAYERS)
            for operator in ("Sin", "Cos")
        )
        return RotaryAngles(token_positions, sine, cosine)

    def placed(self, x: str, positions: Positions, turns: RotaryAngles) -> str:
        """The embeddings with their positions."""
        graph = self.graph
        if isinstance(positions, LearnedPositions):
            table = graph.constant(positions.vectors.weight)
            return graph.node("Add", x, graph.node("Gather", table, turns.positions))
        if isinstance(positions, SinusoidalPositions):
            pairs = self._paired(turns.sine, turns.cosine)
            return graph.node("Add", x, graph.reshaped(pairs, -1, self.embed_dim))
        return x

    def key_mask(self, token_mask: str) -> str:
        """Which keys may be looked at, for every head and query."""
        return self.graph.node("Unsqueeze", token_mask, self.graph.integers(1, 2))

    def around(self, x: str, residual: Any, sublayer: Callable[[str], str]) -> str:
        """A sublayer with add & norm."""
        update = sublayer(self.normed(x, residual.norm) if self.pre else x)
        x = self.graph.node("Add", x, update) if residual.residual else update
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
        """The feed-forward, where there is one."""
        if layer.feed_forward is None:
            return x
        return self.around(x, layer.around_feed_forward, lambda y: self._fed(y, layer.feed_forward))

    def remembered(
        self, x: str, attention: MultiheadAttention, turns: RotaryAngles | None
    ) -> Heads:
        """Keys and values.

        Args:
            turns: Where these positions are.
        """
        _, key, value = all_heads(attention)
        keys = self.normed(self._apart(self._mapped(x, key)), attention.k_norm)
        keys = self._turned(keys, turns)
        return Heads(keys, self._apart(self._mapped(x, value)))

    def longer(self, past: Heads, new: Heads) -> Heads:
        """The past and what is new behind it."""
        return Heads(
            self.graph.node("Concat", past.keys, new.keys, axis=2),
            self.graph.node("Concat", past.values, new.values, axis=2),
        )

    def queries(self, x: str, attention: MultiheadAttention, turns: RotaryAngles | None) -> str:
        """q / √d of each head, (batch, heads, queries, width of a head)."""
        query, _, _ = all_heads(attention)
        queries = self.normed(self._apart(self._mapped(x, query)), attention.q_norm)
        queries = self._turned(queries, turns)
        return self.graph.node(
            "Mul", queries, self.graph.number((self.embed_dim // self.num_heads) ** -0.5)
        )

    def merged(self, context: str, attention: MultiheadAttention) -> str:
        """What the heads read, as one context."""
        merged = self.graph.node("Transpose", context, perm=[0, 2, 1, 3])
        return self._of(self.graph.reshaped(merged, 0, 0, self.embed_dim), attention.out_proj)

    def read(
        self,
        x: str,
        heads: Heads,
        attention: MultiheadAttention,
        mask: str | None,
        turns: RotaryAngles | None,
    ) -> str:
        """softmax(q kᵀ / √d) v per head, over the seen keys, merged."""
        queries = self.queries(x, attention, turns)
        return self.merged(attended(self.graph, queries, heads, mask), attention)

    def _fed(self, x: str, feed_forward: Any) -> str:
        graph = self.graph
        inner = self._of(x, feed_forward.inner)
        match self.activation:
            case "swiglu":
                silu = graph.node("Mul", inner, graph.node("Sigmoid", inner))
                inner = graph.node("Mul", silu, self._of(x, feed_forward.gate))
            case "gelu":
                error = graph.node("Erf", graph.node("Mul", inner, graph.number(math.sqrt(0.5))))
                half_inner = graph.node("Mul", inner, graph.number(0.5))
                inner = graph.node("Mul", half_inner, graph.node("Add", error, graph.number(1.0)))
            case _:
                inner = graph.node("Relu", inner)
        return self._of(inner, feed_forward.outer)

    def _of(self, x: str, linear: nn.Linear) -> str:
        return self._mapped(x, (linear.weight, linear.bias))

    def _mapped(self, x: str, linear: Linear) -> str:
        return self.graph.mapped(x, *linear)

    def _apart(self, x: str) -> str:
        """(batch, positions, dim) as (batch, heads, positions, width of a head)."""
        split = self.graph.reshaped(x, 0, 0, self.num_heads, self.embed_dim // self.num_heads)
        return self.graph.node("Transpose", split, perm=[0, 2, 1, 3])

    def _turned(self, vectors: str, turns: RotaryAngles | None) -> str:
        """Rotary positions, where the model has them and a position is given."""
        if turns is None or not self.rotary:
            return vectors
        graph = self.graph
        width = self.embed_dim // self.num_heads
        pairs = graph.reshaped(vectors, 0, 0, 0, width // 2, 2)
        even = graph.node("Gather", pairs, graph.number(0, np.int64), axis=-1)
        odd = graph.node("Gather", pairs, graph.number(1, np.int64), axis=-1)

        def times(first: str, second: str) -> str:
            return graph.node("Mul", first, second)

        rotated = self._paired(
            graph.node("Sub", times(even, turns.cosine), times(odd, turns.sine)),
            graph.node("Add", times(even, turns.sine), times(odd, turns.cosine)),
        )
        return graph.reshaped(rotated, 0, 0, 0, width)

    def _paired(self, first: str, second: str) -> str:
        """Both side by side on a new last axis."""
        graph = self.graph
        ends = (graph.node("Unsqueeze", tensor, graph.integers(-1)) for tensor in (first, second))
        return graph.node("Concat", *ends, axis=-1)


# The Transformer's encoder as nodes of a graph.


def encoded(
    layers: GraphLayers,
    source: str,
    token_mask: str,
    embedding: Embedding,
    positions: Positions,
    encoder: TransformerEncoder,
) -> str:
    """One vector for each id of a source (batch, keys): (batch, keys, dim).

    token_mask (batch, keys): True = a token; other ids are not read.
    """
    graph = layers.graph
    n = GraphNumbers(graph)
    source = graph.node(
        "Where", token_mask, source, graph.number(0, np.int64)
    )  # padding may be no valid id
    turns = layers.positions(n.up_to(n.size(source, 1)))
    x = layers.placed(layers.embedded(source, embedding), positions, turns)
    mask = layers.key_mask(token_mask)

    def look(attention: MultiheadAttention, y: str) -> str:
        memory = layers.remembered(y, attention, turns)
        if attention.pattern == everywhere:
            return layers.read(y, memory, attention, mask, turns)
        pattern_attention = GraphPatternAttention(graph, attention.pattern, token_mask)
        return layers.merged(
            pattern_attention.read(layers.queries(y, attention, turns), memory), attention
        )

    each: Any = encoder.layers
    for layer in each:
        x = layers.around(x, layer.around_self_attention, partial(look, layer.self_attention))
        x = layers.thought(x, layer)
    return layers.normed(x, encoder.norm)
