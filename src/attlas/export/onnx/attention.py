"""The attentions of recurrent decoders as nodes of a graph."""

from dataclasses import dataclass

import numpy as np
from torch import nn

from attlas.errors import AttlasError
from attlas.export.onnx.builder import Graph, GraphNumbers
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    ScoredAttention,
)
from attlas.patterns import Pattern
from attlas.patterns.shapes import (
    Both,
    Causal,
    Either,
    Everywhere,
    Landmarks,
    Scattered,
    Strided,
    Window,
)
from attlas.runs.loaded import unsupported

_FLOAT = 1  # the number that onnx.TensorProto gives this type
_HIDDEN = float(np.finfo(np.float32).min)  # a score whose softmax is 0


@dataclass(frozen=True, slots=True)
class SourceInputs:
    """The names of a source's keys and values (batch, keys, dim), and its token mask (batch,
    keys).
    """

    keys: str
    values: str
    token_mask: str


class GraphAttention:
    """What a `ScoredAttention` computes for one query a row.

    Every method takes names of values and gives back names of others.
    """

    def __init__(self, graph: Graph, attention: ScoredAttention) -> None:
        self.graph = graph
        self.attention = attention
        self.scored = attention.inner if isinstance(attention, LocalAttention) else attention

    def key_dim(self, key_dim: int) -> int:
        """How wide the keys of a source are."""
        match self.scored:
            case DotAttention():
                return key_dim
            case AdditiveAttention() | GeneralAttention():
                return self.scored.k_proj.out_features
            case ConcatAttention():
                return self.scored.pair_proj.out_features
            case _:
                raise self._unknown()

    def keys(self, source: str) -> str:
        """What the queries ask of the source (batch, keys, source width)."""
        match self.scored:
            case DotAttention():
                return source
            case AdditiveAttention() | GeneralAttention():
                return self.graph.mapped(source, self.scored.k_proj.weight)
            case ConcatAttention():
                after_query = self.scored.pair_proj.weight[:, self.scored.query_dim :]
                return self.graph.mapped(source, after_query)
            case _:
                raise self._unknown()

    def look(self, query: str, source: SourceInputs, position: str | None) -> tuple[str, str]:
        """The context (batch, dim) and the weights (batch, keys) of the query (batch, hidden_dim).

        position (batch,): which query of its target each is; asked by local-m alone. A query that
        sees nothing reads zeros.
        """
        graph = self.graph
        scores, mask = self._score(query, source.keys), source.token_mask
        if isinstance(self.attention, LocalAttention):
            scores, in_window = self._windowed(scores, query, source.token_mask, position)
            mask = graph.node("And", mask, in_window)
        scores = graph.node("Where", mask, scores, graph.number(_HIDDEN))
        weights = graph.node("Softmax", scores, axis=-1)
        weights = graph.node("Where", mask, weights, graph.number(0.0))
        row = graph.node("Unsqueeze", weights, graph.integers(1))
        context = graph.node("MatMul", row, source.values)
        return graph.node("Squeeze", context, graph.integers(1)), weights

    def _score(self, query: str, keys: str) -> str:
        """(batch, keys)."""
        match self.scored:
            case DotAttention() | GeneralAttention():
                column = self.graph.node("Unsqueeze", query, self.graph.integers(2))
                return self._flat(self.graph.node("MatMul", keys, column))
            case AdditiveAttention():
                projected_query = self.graph.mapped(query, self.scored.q_proj.weight)
                return self._energies(projected_query, keys, self.scored.score_proj)
            case ConcatAttention():
                of_query = self.scored.pair_proj.weight[:, : self.scored.query_dim]
                projected_query = self.graph.mapped(query, of_query)
                return self._energies(projected_query, keys, self.scored.score_proj)
            case _:
                raise self._unknown()

    def _energies(self, projected_query: str, keys: str, energy: nn.Linear) -> str:
        """v · tanh(q + k)."""
        row = self.graph.node("Unsqueeze", projected_query, self.graph.integers(1))
        hidden = self.graph.node("Tanh", self.graph.node("Add", row, keys))
        return self._flat(self.graph.mapped(hidden, energy.weight))

    def _windowed(
        self, scores: str, query: str, token_mask: str, position: str | None
    ) -> tuple[str, str]:
        """The scores as the window wants them, and which keys are in it."""
        graph, attention = self.graph, self.attention
        assert isinstance(attention, LocalAttention)
        match attention:
            case LocalMonotonicAttention():
                assert position is not None
                centre = graph.node("Cast", position, to=_FLOAT)
                distance = self._distance(centre, token_mask)
            case LocalPredictiveAttention():
                distance = self._distance(self._predicted(attention, query, token_mask), token_mask)
                sigmas = graph.node("Div", distance, graph.number(attention.radius / 2))
                square = graph.node("Mul", sigmas, sigmas)
                exponent = graph.node("Mul", square, graph.number(0.5))
                scores = graph.node("Sub", scores, exponent)
            case _:
                raise self._unknown()
        abs_distance = graph.node("Abs", distance)
        return scores, graph.node(
            "LessOrEqual", abs_distance, graph.number(float(attention.radius))
        )

    def _predicted(self, attention: LocalPredictiveAttention, query: str, token_mask: str) -> str:
        """S · sigmoid(v · tanh(W q)), (batch,)."""
        graph = self.graph
        hidden = graph.node("Tanh", graph.mapped(query, attention.q_proj.weight))
        share = graph.node(
            "Sigmoid", self._flat(graph.mapped(hidden, attention.position_proj.weight))
        )
        ones = graph.node("Cast", token_mask, to=_FLOAT)
        count = graph.node("ReduceSum", ones, graph.integers(1), keepdims=0)
        return graph.node("Mul", share, count)

    def _distance(self, centre: str, token_mask: str) -> str:
        """s − p, (batch, keys): keys are counted from 0, because tokens come before padding."""
        graph = self.graph
        count = graph.node("Squeeze", graph.node("Shape", token_mask, start=1, end=2))
        zero, one = graph.number(0, np.int64), graph.number(1, np.int64)
        positions = graph.node("Cast", graph.node("Range", zero, count, one), to=_FLOAT)
        return graph.node("Sub", positions, graph.node("Unsqueeze", centre, graph.integers(1)))

    def _flat(self, column: str) -> str:
        return self.graph.node("Squeeze", column, self.graph.integers(-1))

    def _unknown(self) -> AttlasError:
        expected = "additive, dot, general, concat, local-m or local-p attention"
        return unsupported("ONNX", expected, type(self.attention).__name__)


# What heads remember and read, as nodes of a graph.


@dataclass(frozen=True, slots=True)
class Heads:
    """The names of keys and values, each (…, keys, width of a head)."""

    keys: str
    values: str


def attended(graph: Graph, query: str, heads: Heads, mask: str | None, axes: int = 4) -> str:
    """softmax(q kᵀ) v over the seen keys, of queries (…, queries, dim) with so many axes.

    seen, broadcast to (…, queries, keys): None = every key; a query that sees none reads zeros.
    """
    swapped = [*range(axes - 2), axes - 1, axes - 2]
    scores = graph.node("MatMul", query, graph.node("Transpose", heads.keys, perm=swapped))
    if mask is None:
        weights = graph.node("Softmax", scores, axis=-1)
    else:
        hidden = graph.node("Where", mask, scores, graph.number(_HIDDEN))
        weights = graph.node("Softmax", hidden, axis=-1)
        weights = graph.node("Where", mask, weights, graph.number(0.0))
    return graph.node("MatMul", weights, heads.values)


# Where attention may look, as nodes of a graph.


def allowed(n: GraphNumbers, pattern: Pattern, query: str, key: str) -> str:
    """`pattern(query, key)` of positions that are broadcast to each other, as bools.

    Raises:
        AttlasError: For a pattern that is none of attlas's.
    """
    match pattern:
        case Everywhere():
            return n.of("Equal", n.of("Sub", query, query), n.of("Sub", key, key))
        case Causal():
            return n.of("LessOrEqual", key, query)
        case Window(radius):
            return n.of("LessOrEqual", n.of("Abs", n.of("Sub", query, key)), radius)
        case Strided(stride):
            return n.of("Equal", n.of("Mod", n.of("Sub", query, key), stride), 0)
        case Landmarks(marks):
            return n.of("Or", n.among(query, marks), n.among(key, marks))
        case Scattered(share, seed):
            is_sampled = n.of("Less", _mixed(n, query, key, seed), int(share * 2**32))
            return n.of("Or", is_sampled, n.of("Equal", query, key))
        case Both(left, right):
            return n.of("And", allowed(n, left, query, key), allowed(n, right, query, key))
        case Either(left, right):
            return n.of("Or", allowed(n, left, query, key), allowed(n, right, query, key))
        case _:
            raise unsupported("ONNX", "a pattern of attlas.patterns", str(pattern))


def _mixed(n: GraphNumbers, query: str, key: str, seed: int) -> str:
    """The hash of `Scattered`: mod 2³² keeps 32 bits, div 2¹⁶ shifts by 16."""
    of_pair = n.of("Add", n.of("Mul", query, 73_856_093), n.of("Mul", key, 19_349_663))
    hashed = n.of("Add", of_pair, seed * 83_492_791)
    for multiplier in (0x45D9F3B, 0x119DE1F3):
        hashed = n.of("Mod", hashed, 2**32)
        hashed = n.of("BitwiseXor", hashed, n.of("Div", hashed, 2**16))
        hashed = n.of("Mod", n.of("Mul", hashed, multiplier), 2**32)
    return n.of("BitwiseXor", hashed, n.of("Div", hashed, 2**16))


# Self-attention that looks where a pattern lets it, as nodes of a graph.


_SMALLEST_BLOCK = 32  # queries, as in `banded_attention`


class GraphPatternAttention:
    """softmax(q kᵀ) v over the tokens (batch, keys) that the pattern lets a query see; a query that
    sees nothing reads zeros. There are as many queries as keys.

    Where the pattern has a bound, blocks of B queries meet strips of keys, as `banded_attention`
    cuts them: time and memory grow with length × window, else with length². Every size is found in
    the graph, because the length is free.
    """

    def __init__(self, graph: Graph, pattern: Pattern, token_mask: str) -> None:
        self.graph, self.pattern, self.token_mask = graph, pattern, token_mask
        self.n = GraphNumbers(graph)
        self.count = self.n.size(token_mask, 1)
        self.marks = tuple(sorted(pattern.bound.marks))

    def read(self, query: str, heads: Heads) -> str:
        """Of queries (batch, heads, keys, dim) the contexts, in the same shape."""
        bound = self.pattern.bound
        if bound.back is None or bound.ahead is None:
            return self._of_all(query, heads, self.n.up_to(self.count))
        context = self._of_blocks(query, heads, bound.back, bound.ahead)
        return self._with_marks(context, query, heads) if self.marks else context

    def _of_all(self, requested: str, heads: Heads, positions: str) -> str:
        """What queries at these places (queries,) read of all keys."""
        n = self.n
        query, key = n.apart(positions, 1), n.apart(n.up_to(self.count), 0)
        mask = n.of("And", allowed(n, self.pattern, query, key), n.apart(self.token_mask, 1, 2))
        return attended(self.graph, requested, heads, mask)

    def _of_blocks(self, requested: str, heads: Heads, back: int, ahead: int) -> str:
        """What all queries read of the strips and the marks."""
        graph, n = self.graph, self.n
        last = n.of("Sub", self.count, 1)
        before, behind = n.of("Min", last, back), n.of("Min", last, ahead)
        span = n.of("Add", before, behind)
        block = n.of("Min", self.count, n.of("Max", span, _SMALLEST_BLOCK))
        starts = n.apart(n.up_to(self.count, step=block), 1)
        query = n.of("Add", starts, n.apart(n.up_to(block), 0))  # (blocks, B)
        offsets = n.up_to(n.of("Add", block, behind), n.of("Neg", before))
        key, exists = self._with_mark_keys(n.of("Add", starts, n.apart(offsets, 0)))
        positions = n.of("Max", n.of("Min", key, last), 0)  # what does not exist is hidden
        mask = allowed(n, self.pattern, n.apart(query, 2), n.apart(key, 1))
        mask = n.of("And", mask, n.apart(exists, 1))
        token_mask = graph.node("Gather", self.token_mask, positions, axis=1)
        context = attended(
            graph,
            graph.node("Gather", requested, n.of("Min", query, last), axis=2),
            Heads(
                *(
                    graph.node("Gather", tensor, positions, axis=2)
                    for tensor in (heads.keys, heads.values)
                )
            ),
            n.of("And", mask, n.apart(token_mask, 1, 3)),
            axes=5,  # (batch, heads, blocks, queries or keys, width)
        )
        outer, width = (
            graph.node("Shape", requested, start=start, end=end) for start, end in ((0, 2), (3, 4))
        )
        shape = graph.node("Concat", outer, graph.integers(-1), width, axis=0)
        joined = graph.node("Reshape", context, shape)
        stop = n.apart(self.count, 0)
        return graph.node("Slice", joined, graph.integers(0), stop, graph.integers(2))

    def _with_mark_keys(self, strips: str) -> tuple[str, str]:
        """Each block's keys (blocks, keys), the marks behind its strip; and which of them exist
        and are not there twice.
        """
        graph, n = self.graph, self.n
        in_range = n.of("And", n.of("GreaterOrEqual", strips, 0), n.of("Less", strips, self.count))
        if not self.marks:
            return strips, in_range
        in_range = n.of("And", in_range, n.of("Not", n.among(strips, self.marks)))
        blocks = graph.node("Shape", strips, start=0, end=1)
        shape = graph.node("Concat", blocks, graph.integers(len(self.marks)), axis=0)
        marks = graph.node("Expand", graph.integers(*self.marks), shape)
        exists = n.of("Less", marks, self.count)
        return (
            graph.node("Concat", strips, marks, axis=1),
            graph.node("Concat", in_range, exists, axis=1),
        )

    def _with_marks(self, context: str, query: str, heads: Heads) -> str:
        """The context with what the queries at the marks read, which may see everything."""
        graph, n = self.graph, self.n
        places = n.of("Min", graph.integers(*self.marks), n.of("Sub", self.count, 1))
        rows = graph.node("Gather", query, places, axis=2)
        joined = graph.node("Concat", context, self._of_all(rows, heads, places), axis=2)
        positions = n.up_to(self.count)
        offset_positions = n.of("Add", self.count, n.place(positions, self.marks))
        shifted = n.of("Where", n.among(positions, self.marks), offset_positions, positions)
        return graph.node("Gather", joined, shifted, axis=2)
