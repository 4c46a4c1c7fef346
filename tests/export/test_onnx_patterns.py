"""Patterns as nodes of a graph: the pattern itself is the referee."""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.export.onnx.attention import GraphPatternAttention, Heads, allowed
from attlas.export.onnx.builder import Graph, GraphNumbers
from attlas.ops.attention import dense_attention
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Pattern, parse

# Texts, so that a failure prints as a pattern.
ELEMENTARY = st.one_of(
    st.sampled_from(["everywhere", "causal"]),
    st.integers(0, 40).map("window({})".format),
    st.integers(1, 9).map("strided({})".format),
    st.lists(st.integers(0, 90).map(str), max_size=4).map(lambda at: f"landmarks({', '.join(at)})"),
    st.builds("scattered({}, {})".format, st.floats(0, 1), st.integers(0, 2**31 - 1)),
)
PATTERNS = st.recursive(
    ELEMENTARY,
    lambda inner: st.builds("{}({}, {})".format, st.sampled_from(["both", "either"]), inner, inner),
    max_leaves=4,
)


def run(graph: Graph, **given_: Tensor) -> Tensor:
    """The one output of a graph."""
    with tempfile.TemporaryDirectory() as folder:
        graph.save(Path(folder) / "graph.onnx")
        session = onnxruntime.InferenceSession(Path(folder) / "graph.onnx")
    (found,) = session.run(None, {name: tensor.numpy() for name, tensor in given_.items()})
    return torch.from_numpy(np.array(found))


@given(text=PATTERNS, queries=st.integers(1, 50), slots=st.integers(1, 50), far=st.booleans())
def test_a_graph_lets_look_where_the_pattern_does(
    text: str, queries: int, slots: int, far: bool
) -> None:
    pattern = parse(text)
    graph = Graph("pattern")
    query = graph.input("query", np.int64, ("queries", 1))
    key = graph.input("key", np.int64, (1, "keys"))
    seen = allowed(GraphNumbers(graph), pattern, query, key)
    graph.output(seen, "seen", np.bool_, ("queries", "keys"))
    first = 10**6 if far else 0  # a hash of large positions overflows where it is not cut
    requested, kept = torch.arange(queries).unsqueeze(1) + first, torch.arange(slots).unsqueeze(0)
    assert torch.equal(
        run(graph, query=requested, key=kept), pattern(requested, kept).expand(-1, slots)
    )


@given(
    text=PATTERNS,
    slots=st.integers(1, 150),
    heads=st.integers(1, 2),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 9),
)
def test_a_graph_reads_what_the_pattern_lets_it_see_and_zeros_where_that_is_nothing(
    text: str, slots: int, heads: int, share: float, seed: int
) -> None:
    pattern = parse(text)
    graph = Graph("looking")
    shape = ("batch", heads, "keys", 3)
    query, keys, values = (
        graph.input(name, np.float32, shape) for name in ("query", "keys", "values")
    )
    real_ = graph.input("token_mask", np.bool_, ("batch", "keys"))
    context = GraphPatternAttention(graph, pattern, real_).read(query, Heads(keys, values))
    graph.output(context, "context", np.float32, shape)
    draw = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, 2, heads, slots, 3, generator=draw)
    token_mask = torch.rand(2, slots, generator=draw) < share
    found = run(graph, query=q, keys=k, values=v, token_mask=token_mask)
    expected = dense_attention(q, KeyValueCache(k, v, token_mask), pattern, 0, 1.0, 0.0)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_a_pattern_that_is_none_of_ours_is_refused() -> None:
    class Own(Pattern):
        def __call__(
            self, query: Int[Tensor, "*#queries"], key: Int[Tensor, "*#keys"]
        ) -> Bool[Tensor, "..."]:
            return query == key

        def __str__(self) -> str:
            return "own"

    with pytest.raises(AttlasError, match=r"a pattern of attlas\.patterns for ONNX; got own"):
        allowed(GraphNumbers(Graph("own")), Own(), "query", "key")
