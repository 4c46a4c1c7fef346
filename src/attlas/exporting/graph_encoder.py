"""The Transformer's encoder as nodes of a graph."""

from functools import partial
from typing import Any

import numpy as np

from attlas.exporting.graph_layers import GraphLayers
from attlas.exporting.graph_looking import GraphLooking
from attlas.exporting.graph_numbers import GraphNumbers
from attlas.layers import MultiHead, Positions
from attlas.models.block import Encoder
from attlas.models.embedding import Embedding
from attlas.patterns import everywhere


def encoded(
    layers: GraphLayers,
    source: str,
    real: str,
    embedding: Embedding,
    positions: Positions,
    encoder: Encoder,
) -> str:
    """One vector for each id of a source (batch, slots): (batch, slots, width).

    real (batch, slots): which slots are; what stands in the others is not read.
    """
    graph = layers.graph
    n = GraphNumbers(graph)
    source = graph.node("Where", real, source, graph.number(0, np.int64))  # junk is no id
    turns = layers.positions(n.up_to(n.size(source, 1)))
    x = layers.placed(layers.embedded(source, embedding), positions, turns)
    seen = layers.seen(real)

    def look(attention: MultiHead, y: str) -> str:
        kept = layers.remembered(y, attention, turns)
        if attention.pattern == everywhere:
            return layers.read(y, kept, attention, seen, turns)
        looking = GraphLooking(graph, attention.pattern, real)
        return layers.merged(looking.read(layers.asked(y, attention, turns), kept), attention)

    each: Any = encoder.layers
    for layer in each:
        x = layers.around(x, layer.around_self_attention, partial(look, layer.self_attention))
        x = layers.thought(x, layer)
    return layers.normed(x, encoder.norm)
