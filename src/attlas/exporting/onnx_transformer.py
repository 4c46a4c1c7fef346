"""The two graphs of a Transformer: its encoder, and one step of its decoder."""

from typing import Any

import numpy as np

from attlas.exporting.graph import Graph
from attlas.exporting.graph_encoder import encoded
from attlas.exporting.graph_heads import Heads
from attlas.exporting.graph_layers import GraphLayers
from attlas.exporting.graph_numbers import GraphNumbers
from attlas.exporting.graph_patterns import allowed
from attlas.exporting.graph_vocabulary import logits
from attlas.models import Transformer, TransformerConfig
from attlas.patterns import causal


def transformer_encoder(model: Transformer, config: TransformerConfig) -> Graph:
    """Source (batch, slots) and which slots are real → keys and values for each decoder layer."""
    graph = Graph("encoder")
    source = graph.input("source", np.int64, ("batch", "slots"))
    real = graph.input("real", np.bool_, ("batch", "slots"))
    layers = GraphLayers(graph, config)
    own = model.source_embedding
    embedding = model.target_embedding if own is None else own
    x = encoded(layers, source, real, embedding, model.source_positions, model.encoder)
    for number, layer in enumerate(_each(model.decoder)):
        kept = layers.remembered(x, layer.cross_attention, None)
        shape = ("batch", config.heads, "slots", config.width // config.heads)
        graph.output(kept.keys, f"source_keys.{number}", np.float32, shape)
        graph.output(kept.values, f"source_values.{number}", np.float32, shape)
    return graph


def transformer_decoder(model: Transformer, config: TransformerConfig) -> Graph:
    """One step: tokens (batch,), the source's keys and values, those of the past → logits, and the
    past of the next step.
    """
    graph = Graph("decoder")
    tokens = graph.input("tokens", np.int64, ("batch",))
    real = graph.input("real", np.bool_, ("batch", "slots"))
    sources = _kept(graph, config, "source_", "slots")
    pasts = _kept(graph, config, "past_", "steps")
    layers = GraphLayers(graph, config)
    steps = graph.node("Shape", pasts[0].keys, start=2, end=3)
    positions = layers.positions(steps)
    n = GraphNumbers(graph)
    so_far = n.up_to(n.of("Add", n.size(pasts[0].keys, 2), 1))  # slots, the new one among them
    token = graph.node("Unsqueeze", tokens, graph.integers(1))
    x = layers.embedded(token, model.target_embedding)
    x = layers.placed(x, model.target_positions, positions)
    seen = layers.seen(real)
    shape = ("batch", config.heads, "steps + 1", config.width // config.heads)
    present: list[Heads] = []
    for layer, source, past in zip(_each(model.decoder), sources, pasts, strict=True):

        def back(y: str, layer: Any = layer, past: Heads = past) -> str:
            new = layers.remembered(y, layer.self_attention, positions)
            present.append(layers.longer(past, new))
            own = layer.self_attention.pattern
            before = None if own == causal else allowed(n, own, steps, so_far)
            return layers.read(y, present[-1], layer.self_attention, before, positions)

        def across(y: str, layer: Any = layer, source: Heads = source) -> str:
            return layers.read(y, source, layer.cross_attention, seen, None)

        x = layers.around(x, layer.around_self_attention, back)
        x = layers.around(x, layer.around_cross_attention, across)
        x = layers.thought(x, layer)
    features = graph.node("Squeeze", layers.normed(x, model.decoder.norm), graph.integers(1))
    scores = logits(graph, features, model.output, model.target_embedding)
    graph.output(scores, "logits", np.float32, ("batch", len(model.output.bias)))
    for number, kept in enumerate(present):
        graph.output(kept.keys, f"keys.{number}", np.float32, shape)
        graph.output(kept.values, f"values.{number}", np.float32, shape)
    return graph


def _each(side: Any) -> list[Any]:
    return list(side.layers)


def _kept(graph: Graph, config: TransformerConfig, prefix: str, axis: str) -> list[Heads]:
    """Keys and values of each layer, as inputs."""
    shape = ("batch", config.heads, axis, config.width // config.heads)
    return [
        Heads(
            graph.input(f"{prefix}keys.{number}", np.float32, shape),
            graph.input(f"{prefix}values.{number}", np.float32, shape),
        )
        for number in range(config.decoder_layers)
    ]
