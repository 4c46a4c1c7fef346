"""What heads remember and read, as nodes of a graph."""

from dataclasses import dataclass

import numpy as np

from attlas.exporting.graph import Graph

_HIDDEN = float(np.finfo(np.float32).min)  # a score that the softmax makes 0 of


@dataclass(frozen=True, slots=True)
class Heads:
    """The names of keys and values, each (…, slots, width of a head)."""

    keys: str
    values: str


def attended(graph: Graph, asked: str, kept: Heads, seen: str | None, axes: int = 4) -> str:
    """softmax(q kᵀ) v over the seen slots, of queries (…, queries, width) with so many axes.

    seen, broadcast to (…, queries, slots): None = every slot; a query that sees none reads zeros.
    """
    swapped = [*range(axes - 2), axes - 1, axes - 2]
    scores = graph.node("MatMul", asked, graph.node("Transpose", kept.keys, perm=swapped))
    if seen is None:
        weights = graph.node("Softmax", scores, axis=-1)
    else:
        hidden = graph.node("Where", seen, scores, graph.number(_HIDDEN))
        weights = graph.node("Softmax", hidden, axis=-1)
        weights = graph.node("Where", seen, weights, graph.number(0.0))
    return graph.node("MatMul", weights, kept.values)
