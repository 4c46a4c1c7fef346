"""Where ids become vectors, and features the logits of ids, as nodes of a graph."""

from attlas.exporting.graph import Graph
from attlas.models.embedding import Embedding
from attlas.models.output import Output


def embedded(graph: Graph, ids: str, embedding: Embedding) -> str:
    """The vectors of these ids (…,): (…, width)."""
    return graph.node("Gather", _rows(graph, embedding), ids)


def logits(graph: Graph, features: str, output: Output, embedding: Embedding) -> str:
    """W f + b of features (batch, width); tied, W is the embedding, behind a bottleneck or not."""
    if output.bottleneck is not None:
        features = graph.mapped(features, output.bottleneck.weight)
    own = output.weight
    rows = _rows(graph, embedding) if own is None else graph.constant(own)
    return graph.node("Gemm", features, rows, graph.constant(output.bias), transB=1)


def _rows(graph: Graph, embedding: Embedding) -> str:
    return graph.constant(embedding.weight, f"{embedding.side} embedding")  # once in a graph
