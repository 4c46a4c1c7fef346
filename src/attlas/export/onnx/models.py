"""The two graphs of a recurrent model: its encoder, and one step of its decoder."""

from typing import Any

import numpy as np
from torch import nn

from attlas.export.onnx.attention import GraphAttention, Heads, SourceInputs, allowed
from attlas.export.onnx.builder import Graph, GraphNumbers, Shape
from attlas.export.onnx.layers import GraphLayers, GraphRecurrence, embedded, encoded, logits
from attlas.layers import LocalMonotonicAttention
from attlas.models import RecurrentModel, Transformer, TransformerConfig
from attlas.models.rnn.bahdanau import BahdanauDecoder, Readout
from attlas.models.rnn.decoder import AttentionDecoder, PlainDecoder
from attlas.models.rnn.encoder import Bridge
from attlas.models.rnn.luong import InputFeedingDecoder, LuongDecoder
from attlas.patterns import causal
from attlas.runs.loaded import unsupported

_INT32 = 6  # the number that onnx.TensorProto gives this type

States = dict[str, tuple[type[np.generic], Shape]]
"""What a step hands on to the next, by name; the batch is always the first axis."""


def recurrent_encoder(model: RecurrentModel) -> Graph:
    """Source and token_mask (batch, keys) → the state before the first step, and where
    the decoder looks, what it looks at.
    """
    graph = Graph("encoder")
    source = graph.input("source", np.int64, ("batch", "keys"))
    token_mask = graph.input("token_mask", np.bool_, ("batch", "keys"))
    source = graph.node(
        "Where", token_mask, source, graph.number(0, np.int64)
    )  # padding may be no valid id
    shared = model.source_embedding
    x = embedded(graph, source, model.target_embedding if shared is None else shared)
    ones = graph.node("Cast", token_mask, to=_INT32)
    lengths = graph.node("ReduceSum", ones, graph.integers(1), keepdims=0)
    outputs, final = GraphRecurrence(graph, model.encoder.rnn).read(x, lengths)
    decoder = model.decoder
    if isinstance(decoder, AttentionDecoder):
        attention = GraphAttention(graph, decoder.attention)
        keys, values = _source_shapes(graph, model, decoder)
        graph.output(attention.keys(outputs), "source_keys", np.float32, keys)
        graph.output(outputs, "source_values", np.float32, values)
    first = dict(zip(_parts(model), _bridged(graph, decoder.bridge, final), strict=True))
    for name, (dtype, shape) in _states(model).items():
        value = first.get(name) or _zeros(graph, source, dtype, shape)
        graph.output(value, f"past_{name}", dtype, shape)
    return graph


def recurrent_decoder(model: RecurrentModel) -> Graph:
    """One step: tokens (batch,), the state before it, and what the decoder looks at → logits, the
    state after it, and the weights with which it looked.
    """
    graph = Graph("decoder")
    tokens = graph.input("tokens", np.int64, ("batch",))
    source = _source(graph, model)
    states = _states(model)
    past = {name: graph.input(f"past_{name}", *state) for name, state in states.items()}
    step = _Step(graph, model, source, past)
    features = step.taken(embedded(graph, tokens, model.target_embedding))
    scores = logits(graph, features, model.output, model.target_embedding)
    graph.output(scores, "logits", np.float32, ("batch", len(model.output.bias)))
    for name, state in states.items():
        graph.output(step.now[name], name, *state)
    if step.weights is not None:
        graph.output(step.weights, "weights", np.float32, ("batch", "keys"))
    return graph


class _Step:
    """One step of any of the decoders, as `attlas.models.rnn` takes it.

    now: the state after it. weights: where it looked, (batch, keys); None before, and where the
    decoder does not look.
    """

    def __init__(
        self, graph: Graph, model: RecurrentModel, source: SourceInputs | None, past: dict[str, str]
    ) -> None:
        self.graph, self.decoder, self.source, self.past = graph, model.decoder, source, past
        self.recurrence = GraphRecurrence(graph, model.decoder.recurrence.rnn)
        self.parts = _parts(model)
        self.now: dict[str, str] = {}
        self.weights: str | None = None

    def taken(self, token: str) -> str:
        """The features of an embedded token (batch, embedding)."""
        match self.decoder:
            case BahdanauDecoder():
                previous = self.recurrence.of(
                    self.past["hidden"], self.recurrence.rnn.num_layers - 1
                )
                context = self._attended(self.decoder, previous)
                state = self._advanced(self._joined(token, context))
                return self._read_out(self.decoder.readout, state, token, context)
            case LuongDecoder():
                feeding = isinstance(self.decoder, InputFeedingDecoder)
                rnn_input = self._joined(token, self.past["attended"]) if feeding else token
                state = self._advanced(rnn_input)
                context = self._attended(self.decoder, state)
                if self.decoder.concat_proj is None:
                    return self._joined(state, context)
                joined = self._joined(context, state)
                combined = self.graph.mapped(joined, self.decoder.concat_proj.weight)
                attentional = self.graph.node("Tanh", combined)
                if feeding:
                    self.now["attended"] = attentional
                return attentional
            case PlainDecoder():
                return self._advanced(token)
            case _:
                raise unsupported("ONNX", "a decoder that is known", type(self.decoder).__name__)

    def _advanced(self, entering: str) -> str:
        top, after = self.recurrence.step(entering, [self.past[name] for name in self.parts])
        self.now.update(zip(self.parts, after, strict=True))
        return top

    def _attended(self, decoder: AttentionDecoder, query: str) -> str:
        """The context of the query."""
        graph, source = self.graph, self.source
        assert source is not None
        position, coverage = self.past.get("position"), self.past.get("coverage")
        if decoder.coverage is not None and coverage is not None:
            column = graph.node("Unsqueeze", coverage, graph.integers(2))
            coverage_term = graph.mapped(column, decoder.coverage.coverage_proj.weight)
            keys = graph.node("Add", source.keys, coverage_term)
            source = SourceInputs(keys, source.values, source.token_mask)
        attention = GraphAttention(graph, decoder.attention)
        context, self.weights = attention.look(query, source, position)
        if coverage is not None:
            self.now["coverage"] = graph.node("Add", coverage, self.weights)
        if position is not None:
            self.now["position"] = graph.node("Add", position, graph.number(1, np.int64))
        return context

    def _read_out(self, readout: Readout, state: str, token: str, context: str) -> str:
        if readout.proj is None:
            return state if readout.kind == "linear_output" else self._joined(state, context)
        x = self._joined(state, token, context)
        projected = self.graph.mapped(x, readout.proj.weight, readout.proj.bias)
        if readout.kind == "tanh":
            return self.graph.node("Tanh", projected)
        sizes = self.graph.integers(readout.feature_dim, readout.feature_dim)
        return self.graph.node("Max", *self.graph.several(2, "Split", projected, sizes, axis=-1))

    def _joined(self, *vectors: str) -> str:
        return self.graph.node("Concat", *vectors, axis=-1)


def _states(model: RecurrentModel) -> States:
    """As `RecurrentState`, but only what the next step asks for."""
    decoder, rnn = model.decoder, model.decoder.recurrence.rnn
    shape = ("batch", rnn.num_layers, rnn.hidden_size)
    states: States = dict.fromkeys(_parts(model), (np.float32, shape))
    if isinstance(decoder, InputFeedingDecoder):
        states["attended"] = (np.float32, ("batch", decoder.feature_dim))
    if isinstance(decoder, AttentionDecoder) and decoder.coverage is not None:
        states["coverage"] = (np.float32, ("batch", "keys"))
    if isinstance(decoder, AttentionDecoder) and isinstance(
        decoder.attention, LocalMonotonicAttention
    ):
        states["position"] = (np.int64, ("batch",))
    return states


def _parts(model: RecurrentModel) -> tuple[str, ...]:
    """The names of the recurrent state's parts."""
    lstm = model.decoder.recurrence.rnn.mode == "LSTM"
    return ("hidden", "cell") if lstm else ("hidden",)


def _bridged(graph: Graph, bridge: Bridge, final: list[list[str]]) -> list[str]:
    """Each part of the initial state (batch, layers, hidden_dim), of the encoder's last one."""
    ends = [_read_by(graph, bridge, end) for part in final for end in part]
    outputs = []
    for matrix, end in zip(bridge.matrices, ends, strict=True):
        assert isinstance(matrix, nn.Linear)
        hidden = graph.node("Tanh", graph.mapped(end, matrix.weight, matrix.bias))
        outputs.append(graph.node("Unsqueeze", hidden, graph.integers(1)))
    layers = len(final[0])
    groups = (outputs[begin : begin + layers] for begin in range(0, len(outputs), layers))
    return [graph.node("Concat", *part, axis=1) for part in groups]


def _read_by(graph: Graph, bridge: Bridge, end: str) -> str:
    """Of a layer's end (directions, batch, dim) the last directions, side by side."""
    layers = range(-bridge.directions, 0)
    states = [graph.node("Gather", end, graph.number(index, np.int64), axis=0) for index in layers]
    return graph.node("Concat", *states, axis=-1)


def _zeros(graph: Graph, source: str, dtype: type[np.generic], shape: Shape) -> str:
    """Zeros of this shape, in which "batch" and "keys" are as in the source."""
    axes = {"batch": 0, "keys": 1}
    sizes = [
        graph.integers(size)
        if isinstance(size, int)
        else graph.node("Shape", source, start=axes[size], end=axes[size] + 1)
        for size in shape
    ]
    full_shape = graph.node("Concat", *sizes, axis=0)
    return graph.node("Expand", graph.number(0, dtype), full_shape)


def _source(graph: Graph, model: RecurrentModel) -> SourceInputs | None:
    """What the decoder looks at, as inputs; None where it cannot look."""
    decoder = model.decoder
    if not isinstance(decoder, AttentionDecoder):
        return None
    keys, values = _source_shapes(graph, model, decoder)
    return SourceInputs(
        token_mask=graph.input("token_mask", np.bool_, ("batch", "keys")),
        keys=graph.input("source_keys", np.float32, keys),
        values=graph.input("source_values", np.float32, values),
    )


def _source_shapes(graph: Graph, model: RecurrentModel, decoder: AttentionDecoder) -> list[Shape]:
    """Of keys and values."""
    rnn = model.encoder.rnn
    width = rnn.hidden_size * (2 if rnn.bidirectional else 1)
    widths = GraphAttention(graph, decoder.attention).key_dim(width), width
    return [("batch", "keys", width) for width in widths]


# The two graphs of a Transformer: its encoder, and one step of its decoder.


def transformer_encoder(model: Transformer, config: TransformerConfig) -> Graph:
    """Source and token_mask (batch, keys) → keys and values for each decoder layer."""
    graph = Graph("encoder")
    source = graph.input("source", np.int64, ("batch", "keys"))
    token_mask = graph.input("token_mask", np.bool_, ("batch", "keys"))
    layers = GraphLayers(graph, config)
    source_embedding = model.source_embedding
    embedding = model.target_embedding if source_embedding is None else source_embedding
    x = encoded(layers, source, token_mask, embedding, model.source_positions, model.encoder)
    for number, layer in enumerate(_each(model.decoder)):
        memory = layers.remembered(x, layer.cross_attention, None)
        shape = ("batch", config.num_heads, "keys", config.embed_dim // config.num_heads)
        graph.output(memory.keys, f"source_keys.{number}", np.float32, shape)
        graph.output(memory.values, f"source_values.{number}", np.float32, shape)
    return graph


def transformer_decoder(model: Transformer, config: TransformerConfig) -> Graph:
    """One step: tokens (batch,), the source's keys and values, those of the past → logits, and the
    past of the next step.
    """
    graph = Graph("decoder")
    tokens = graph.input("tokens", np.int64, ("batch",))
    token_mask = graph.input("token_mask", np.bool_, ("batch", "keys"))
    sources = _cache_inputs(graph, config, "source_", "keys")
    pasts = _cache_inputs(graph, config, "past_", "steps")
    layers = GraphLayers(graph, config)
    steps = graph.node("Shape", pasts[0].keys, start=2, end=3)
    positions = layers.positions(steps)
    n = GraphNumbers(graph)
    so_far = n.up_to(n.of("Add", n.size(pasts[0].keys, 2), 1))  # keys, the new one among them
    token = graph.node("Unsqueeze", tokens, graph.integers(1))
    x = layers.embedded(token, model.target_embedding)
    x = layers.placed(x, model.target_positions, positions)
    mask = layers.key_mask(token_mask)
    shape = ("batch", config.num_heads, "steps + 1", config.embed_dim // config.num_heads)
    present: list[Heads] = []
    for layer, source, past in zip(_each(model.decoder), sources, pasts, strict=True):

        def self_attend(y: str, layer: Any = layer, past: Heads = past) -> str:
            new = layers.remembered(y, layer.self_attention, positions)
            present.append(layers.longer(past, new))
            pattern = layer.self_attention.pattern
            mask = None if pattern == causal else allowed(n, pattern, steps, so_far)
            return layers.read(y, present[-1], layer.self_attention, mask, positions)

        def across(y: str, layer: Any = layer, source: Heads = source) -> str:
            return layers.read(y, source, layer.cross_attention, mask, None)

        x = layers.around(x, layer.around_self_attention, self_attend)
        x = layers.around(x, layer.around_cross_attention, across)
        x = layers.thought(x, layer)
    features = graph.node("Squeeze", layers.normed(x, model.decoder.norm), graph.integers(1))
    scores = logits(graph, features, model.output, model.target_embedding)
    graph.output(scores, "logits", np.float32, ("batch", len(model.output.bias)))
    for number, cached in enumerate(present):
        graph.output(cached.keys, f"keys.{number}", np.float32, shape)
        graph.output(cached.values, f"values.{number}", np.float32, shape)
    return graph


def _each(side: Any) -> list[Any]:
    return list(side.layers)


def _cache_inputs(graph: Graph, config: TransformerConfig, prefix: str, axis: str) -> list[Heads]:
    """Keys and values of each layer, as inputs."""
    shape = ("batch", config.num_heads, axis, config.embed_dim // config.num_heads)
    return [
        Heads(
            graph.input(f"{prefix}keys.{number}", np.float32, shape),
            graph.input(f"{prefix}values.{number}", np.float32, shape),
        )
        for number in range(config.decoder_layers)
    ]
