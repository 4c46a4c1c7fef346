"""From one vector for each token to one for the whole text, as nodes of a graph."""

import numpy as np

from attlas.exporting.graph import Graph
from attlas.exporting.graph_attention import GraphAttention, Source
from attlas.exporting.subject import unfit
from attlas.models.classifier.pooling import (
    AttentivePooling,
    FirstPooling,
    MaxPooling,
    MeanPooling,
    Pooling,
)

_FLOAT, _INT32 = 1, 6  # the numbers that onnx.TensorProto gives these types
_LEAST = float(np.finfo(np.float32).min)


def pooled(graph: Graph, vectors: str, real: str, pooling: Pooling) -> str:
    """(batch, slots, width) → (batch, width); a text without a token pools to 0."""
    slots = graph.node("Unsqueeze", real, graph.integers(2))
    match pooling:
        case MeanPooling():
            kept = graph.node("Where", slots, vectors, graph.number(0.0))
            total = graph.node("ReduceSum", kept, graph.integers(1), keepdims=0)
            ones = graph.node("Cast", real, to=_FLOAT)
            count = graph.node("ReduceSum", ones, graph.integers(1), keepdims=1)
            return graph.node("Div", total, graph.node("Max", count, graph.number(1.0)))
        case MaxPooling():
            kept = graph.node("Where", slots, vectors, graph.number(_LEAST))
            greatest = graph.node("ReduceMax", kept, graph.integers(1), keepdims=0)
            return _of_texts(graph, greatest, real)
        case FirstPooling():
            ones = graph.node("Cast", real, to=_INT32)
            first = graph.node("ArgMax", ones, axis=1, keepdims=1)
            return _of_texts(graph, graph.node("GatherND", vectors, first, batch_dims=1), real)
        case AttentivePooling():
            attention = GraphAttention(graph, pooling.attention)
            source = Source(attention.keys(vectors), vectors, real)
            query = graph.constant(pooling.query.unsqueeze(0))  # the same for every text
            return attention.look(query, source, None)[0]
        case _:
            raise unfit("ONNX", "mean, max, first or attentive pooling", type(pooling).__name__)


def _of_texts(graph: Graph, vectors: str, real: str) -> str:
    """The vectors of texts that have a token, and zeros."""
    ones = graph.node("Cast", real, to=_INT32)
    any_ = graph.node("ReduceMax", ones, graph.integers(1), keepdims=1)
    known = graph.node("Cast", any_, to=9)
    return graph.node("Where", known, vectors, graph.number(0.0))
