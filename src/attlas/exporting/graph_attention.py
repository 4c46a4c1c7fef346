"""The attentions of recurrent decoders as nodes of a graph."""

from dataclasses import dataclass

import numpy as np
from torch import nn

from attlas.errors import AttlasError
from attlas.exporting.graph import Graph
from attlas.exporting.subject import unfit
from attlas.layers import (
    Additive,
    Concat,
    Dot,
    General,
    Local,
    LocalMonotonic,
    LocalPredictive,
    ScoredAttention,
)

_FLOAT = 1  # the number that onnx.TensorProto gives this type
_HIDDEN = float(np.finfo(np.float32).min)  # a score that the softmax makes 0 of


@dataclass(frozen=True, slots=True)
class Source:
    """The names of what is kept of a source: keys and values (batch, slots, width), and which
    slots are real (batch, slots).
    """

    keys: str
    values: str
    real: str


class GraphAttention:
    """What a `ScoredAttention` computes for one query a row.

    Every method takes names of values and gives back names of others.
    """

    def __init__(self, graph: Graph, attention: ScoredAttention) -> None:
        self.graph = graph
        self.attention = attention
        self.scored = attention.inner if isinstance(attention, Local) else attention

    def key_width(self, source_width: int) -> int:
        """How wide the keys of a source are."""
        match self.scored:
            case Dot():
                return source_width
            case Additive() | General():
                return self.scored.of_key.out_features
            case Concat():
                return self.scored.of_pair.out_features
            case _:
                raise self._unknown()

    def keys(self, source: str) -> str:
        """What the queries ask of the source (batch, slots, source width)."""
        match self.scored:
            case Dot():
                return source
            case Additive() | General():
                return self.graph.mapped(source, self.scored.of_key.weight)
            case Concat():
                after_query = self.scored.of_pair.weight[:, self.scored.query_width :]
                return self.graph.mapped(source, after_query)
            case _:
                raise self._unknown()

    def look(self, query: str, source: Source, position: str | None) -> tuple[str, str]:
        """The context (batch, width) and the weights (batch, slots) of the query (batch, hidden).

        position (batch,): which query of its target each is; asked by local-m alone. A query that
        sees nothing reads zeros.
        """
        graph = self.graph
        scores, seen = self._score(query, source.keys), source.real
        if isinstance(self.attention, Local):
            scores, inside = self._windowed(scores, query, source.real, position)
            seen = graph.node("And", seen, inside)
        scores = graph.node("Where", seen, scores, graph.number(_HIDDEN))
        weights = graph.node("Softmax", scores, axis=-1)
        weights = graph.node("Where", seen, weights, graph.number(0.0))
        row = graph.node("Unsqueeze", weights, graph.integers(1))
        context = graph.node("MatMul", row, source.values)
        return graph.node("Squeeze", context, graph.integers(1)), weights

    def _score(self, query: str, keys: str) -> str:
        """(batch, slots)."""
        match self.scored:
            case Dot() | General():
                column = self.graph.node("Unsqueeze", query, self.graph.integers(2))
                return self._flat(self.graph.node("MatMul", keys, column))
            case Additive():
                asked = self.graph.mapped(query, self.scored.of_query.weight)
                return self._energies(asked, keys, self.scored.energy)
            case Concat():
                of_query = self.scored.of_pair.weight[:, : self.scored.query_width]
                asked = self.graph.mapped(query, of_query)
                return self._energies(asked, keys, self.scored.energy)
            case _:
                raise self._unknown()

    def _energies(self, asked: str, keys: str, energy: nn.Linear) -> str:
        """v · tanh(q + k)."""
        row = self.graph.node("Unsqueeze", asked, self.graph.integers(1))
        bent = self.graph.node("Tanh", self.graph.node("Add", row, keys))
        return self._flat(self.graph.mapped(bent, energy.weight))

    def _windowed(
        self, scores: str, query: str, real: str, position: str | None
    ) -> tuple[str, str]:
        """The scores as the window wants them, and which slots are in it."""
        graph, attention = self.graph, self.attention
        assert isinstance(attention, Local)
        match attention:
            case LocalMonotonic():
                assert position is not None
                centre = graph.node("Cast", position, to=_FLOAT)
                distance = self._distance(centre, real)
            case LocalPredictive():
                distance = self._distance(self._predicted(attention, query, real), real)
                sigmas = graph.node("Div", distance, graph.number(attention.radius / 2))
                square = graph.node("Mul", sigmas, sigmas)
                exponent = graph.node("Mul", square, graph.number(0.5))
                scores = graph.node("Sub", scores, exponent)
            case _:
                raise self._unknown()
        far = graph.node("Abs", distance)
        return scores, graph.node("LessOrEqual", far, graph.number(float(attention.radius)))

    def _predicted(self, attention: LocalPredictive, query: str, real: str) -> str:
        """S · sigmoid(v · tanh(W q)), (batch,)."""
        graph = self.graph
        bent = graph.node("Tanh", graph.mapped(query, attention.of_query.weight))
        share = graph.node("Sigmoid", self._flat(graph.mapped(bent, attention.of_position.weight)))
        ones = graph.node("Cast", real, to=_FLOAT)
        count = graph.node("ReduceSum", ones, graph.integers(1), keepdims=0)
        return graph.node("Mul", share, count)

    def _distance(self, centre: str, real: str) -> str:
        """s − p, (batch, slots): slots are counted from 0, as the real ones come first."""
        graph = self.graph
        count = graph.node("Squeeze", graph.node("Shape", real, start=1, end=2))
        zero, one = graph.number(0, np.int64), graph.number(1, np.int64)
        slots = graph.node("Cast", graph.node("Range", zero, count, one), to=_FLOAT)
        return graph.node("Sub", slots, graph.node("Unsqueeze", centre, graph.integers(1)))

    def _flat(self, column: str) -> str:
        return self.graph.node("Squeeze", column, self.graph.integers(-1))

    def _unknown(self) -> AttlasError:
        wanted = "additive, dot, general, concat, local-m or local-p attention"
        return unfit("ONNX", wanted, type(self.attention).__name__)
