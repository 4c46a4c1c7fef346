"""Two graphs that onnxruntime runs: the encoder, and one step of the decoder."""

from pathlib import Path
from typing import Any

import numpy as np

from attlas.errors import missing_extra
from attlas.exporting.graph import Graph
from attlas.exporting.graph_layers import GraphLayers, Heads
from attlas.exporting.subject import Subject, check_sees_all
from attlas.models import Transformer, TransformerConfig

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"

_TAKER = "ONNX"


def write_onnx(subject: Subject, folder: Path) -> list[str]:
    """`encoder.onnx`, `decoder.onnx` and the vocabularies; the same logits up to rounding.

    encoder: source (batch, slots) int64, real (batch, slots) bool → source_keys.N and
    source_values.N (batch, heads, slots, width of a head) for each layer N of the decoder.
    decoder: tokens (batch,) int64, real, those, and past_keys.N and past_values.N (batch, heads,
    steps, width of a head), 0 steps at the start → logits (batch, vocabulary), and keys.N and
    values.N: the past of the next step.

    Gives back what a reader of the folder has to know.
    Errors: `AttlasError` where onnx is missing, and for a model that the graphs cannot express.
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise missing_extra("the export to ONNX", "onnx") from None
    model, config = subject.transformer(_TAKER)
    check_sees_all(_TAKER, config)
    _encoder(model, config).save(folder / ENCODER)
    _decoder(model, config).save(folder / DECODER)
    subject.vocabularies.save(folder)
    return [
        "encoder.onnx: source (batch, slots) int64 and real (batch, slots) bool, true = a token, "
        "one at least in each row → source_keys.N, source_values.N.",
        "decoder.onnx, one step: tokens (batch,) int64, real, source_keys.N, source_values.N, "
        "past_keys.N, past_values.N → logits (batch, vocabulary), keys.N, values.N. The past of "
        "the first step has the shape (batch, heads, 0, width of a head); that of every other is "
        "keys and values of the step before.",
        "The ids 0 to 3 are padding, unknown, begin and end; a source ends with end, the first "
        "token of a target is begin.",
    ]


def _encoder(model: Transformer, config: TransformerConfig) -> Graph:
    graph = Graph("encoder")
    source = graph.input("source", np.int64, ("batch", "slots"))
    real = graph.input("real", np.bool_, ("batch", "slots"))
    layers = GraphLayers(graph, config)
    source = graph.node("Where", real, source, graph.number(0, np.int64))  # junk is no id
    count = graph.node("Squeeze", graph.node("Shape", source, start=1, end=2))
    zero, one = graph.number(0, np.int64), graph.number(1, np.int64)
    positions = layers.positions(graph.node("Range", zero, count, one))
    own = model.source_embedding
    embedding = (model.target_embedding if own is None else own).weight
    x = layers.embedded(source, embedding, "embedding")
    x = layers.placed(x, model.source_positions, positions)
    seen = layers.seen(real)
    for layer in _each(model.encoder):

        def look(y: str, layer: Any = layer) -> str:
            kept = layers.remembered(y, layer.self_attention, positions)
            return layers.read(y, kept, layer.self_attention, seen, positions)

        x = layers.around(x, layer.around_self_attention, look)
        x = layers.thought(x, layer)
    x = layers.normed(x, model.encoder.norm)
    for number, layer in enumerate(_each(model.decoder)):
        kept = layers.remembered(x, layer.cross_attention, None)
        shape = ("batch", config.heads, "slots", config.width // config.heads)
        graph.output(kept.keys, f"source_keys.{number}", np.float32, shape)
        graph.output(kept.values, f"source_values.{number}", np.float32, shape)
    return graph


def _decoder(model: Transformer, config: TransformerConfig) -> Graph:
    graph = Graph("decoder")
    tokens = graph.input("tokens", np.int64, ("batch",))
    real = graph.input("real", np.bool_, ("batch", "slots"))
    sources = _kept(graph, config, "source_", "slots")
    pasts = _kept(graph, config, "past_", "steps")
    layers = GraphLayers(graph, config)
    steps = graph.node("Shape", pasts[0].keys, start=2, end=3)
    positions = layers.positions(steps)
    token = graph.node("Unsqueeze", tokens, graph.integers(1))
    x = layers.embedded(token, model.target_embedding.weight, "embedding")
    x = layers.placed(x, model.target_positions, positions)
    seen = layers.seen(real)
    shape = ("batch", config.heads, "steps + 1", config.width // config.heads)
    present: list[Heads] = []
    for layer, source, past in zip(_each(model.decoder), sources, pasts, strict=True):

        def back(y: str, layer: Any = layer, past: Heads = past) -> str:
            new = layers.remembered(y, layer.self_attention, positions)
            present.append(layers.longer(past, new))
            return layers.read(y, present[-1], layer.self_attention, None, positions)

        def across(y: str, layer: Any = layer, source: Heads = source) -> str:
            return layers.read(y, source, layer.cross_attention, seen, None)

        x = layers.around(x, layer.around_self_attention, back)
        x = layers.around(x, layer.around_cross_attention, across)
        x = layers.thought(x, layer)
    features = graph.node("Squeeze", layers.normed(x, model.decoder.norm), graph.integers(1))
    untied = model.output.weight
    rows = (
        graph.constant(model.target_embedding.weight, "embedding")
        if untied is None
        else graph.constant(untied)
    )
    bias = graph.constant(model.output.bias)
    logits = graph.node("Gemm", features, rows, bias, transB=1)
    graph.output(logits, "logits", np.float32, ("batch", len(model.output.bias)))
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
