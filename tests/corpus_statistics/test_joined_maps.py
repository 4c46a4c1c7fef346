"""Maps that are measured together have the numbers that each has alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.readers import CorpusText, MapRecord
from attlas.corpus_statistics.table import ALSO, Measured, frames, measure_joined_maps, measure_map
from attlas.patterns import Everywhere, Window, causal
from attlas.recording import AttentionMap, DenseAttentionMap, FactoredAttentionMap
from attlas.recording.maps.joining import join_heads, join_key
from support.small_models import saved

HEADS = 4


def dense(seed: int, queries: int, keys: int, masked: bool) -> AttentionMap:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, HEADS, queries, keys, generator=generator)
    allowed = None
    if masked:
        allowed = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril(keys - queries)
        allowed[..., 0] = True
        scores = scores.masked_fill(~allowed, -torch.inf)
    return DenseAttentionMap(torch.softmax(scores, -1), allowed)


def factored(seed: int, queries: int, keys: int, kind: str) -> AttentionMap:
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(1, HEADS, queries, 8, generator=generator)
    key = torch.randn(1, 2, keys, 8, generator=generator)
    shapes = {"causal": causal, "window": Window(2)}
    bias = None
    if kind == "alibi":  # the same for all texts
        places = torch.arange(keys) - torch.arange(queries)[:, None]
        bias = -0.5 * torch.arange(1, HEADS + 1)[:, None, None] * places.abs()[None]
        bias = bias[None].float()
    elif kind == "low":  # a number that hides, for all heads
        bias = torch.zeros(1, 1, queries, keys)
        bias[..., -1] = -1e4
    elif kind == "mask":
        bias = torch.rand(1, 1, queries, keys, generator=generator) > 0.3
        bias[..., 0] = True
    return FactoredAttentionMap(
        query,
        key,
        0.35,
        shapes.get(kind, Everywhere()),
        keys - queries if queries <= keys else None if kind not in shapes else 0,
        bias=bias,
        softcap=5.0 if kind == "softcap" else None,
    )


KINDS = ["plain", "causal", "window", "alibi", "low", "mask", "softcap"]
MAPS = st.one_of(
    st.builds(dense, st.integers(0, 99), st.integers(1, 4), st.integers(4, 5), st.booleans()),
    st.builds(
        factored,
        st.integers(0, 99),
        st.integers(1, 4),
        st.integers(4, 5),
        st.sampled_from(KINDS),
    ),
)


def record(number: int, attention_map: AttentionMap) -> MapRecord:
    queries, keys = attention_map.shape[2:]
    text = CorpusText(number, tuple(range(keys)))
    kind = "self" if queries == keys else "cross"
    return MapRecord(text, f"layer {number % 2}", 0, kind, attention_map, None, (0, keys - 1))


def assert_same(found: Measured, expected: Measured) -> None:
    for name in ("line", "layer", "kind", "causal", "queries", "num_keys", "tokens"):
        assert getattr(found, name) == getattr(expected, name), name
    for name, values in expected.of_heads.items():
        np.testing.assert_allclose(found.of_heads[name], values, rtol=1e-6, atol=1e-7, err_msg=name)
    assert (found.of_queries is None) == (expected.of_queries is None)
    for name, values in (expected.of_queries or {}).items():
        assert found.of_queries is not None
        np.testing.assert_allclose(
            found.of_queries[name], values, rtol=1e-6, atol=1e-7, err_msg=name
        )
    if expected.argmax is not None:
        np.testing.assert_array_equal(found.argmax, expected.argmax)


@given(st.lists(MAPS, min_size=1, max_size=8), st.booleans())
def test_what_is_measured_together_is_what_each_has_alone(
    maps: list[AttentionMap], by_token: bool
) -> None:
    records = [record(number, one) for number, one in enumerate(maps)]
    tokens = [tuple(f"t{i}" for i in range(one.shape[2])) for one in maps]
    together = measure_joined_maps(records, 0.1, tokens if by_token else None, ALSO)
    for found, one, names in zip(together, records, tokens, strict=True):
        assert_same(found, measure_map(one, 0.1, names if by_token else None, ALSO))


@given(st.lists(MAPS, min_size=2, max_size=6))
def test_joined_heads_are_the_heads_in_turn(maps: list[AttentionMap]) -> None:
    key = join_key(maps[0])
    assert key is not None
    equal = [one for one in maps if join_key(one) == key]
    joined = join_heads(equal)
    size = equal[0].shape[2]
    torch.testing.assert_close(
        joined.rows(0, size), torch.cat([one.rows(0, size) for one in equal], 1)
    )
    # The mask of one head serves all.
    seen = joined.allowed_rows(0, size).expand(*joined.shape)
    expected = torch.cat([one.allowed_rows(0, size).expand(*one.shape) for one in equal], 1)
    assert torch.equal(seen, expected)


def test_maps_that_see_other_keys_are_not_joined() -> None:
    plain, other = factored(1, 4, 4, "plain"), factored(2, 4, 4, "plain")
    assert join_key(plain) == join_key(other) is not None
    assert join_key(factored(1, 4, 4, "mask")) != join_key(factored(2, 4, 4, "mask"))
    for kind in KINDS[1:]:
        assert join_key(factored(1, 4, 4, kind)) != join_key(plain), kind
    padded = FactoredAttentionMap(
        torch.randn(1, 4, 4, 8), torch.randn(1, 4, 4, 8), 1.0, Everywhere(), 0,
        token_mask=torch.tensor([[True, True, True, False]]),
    )  # fmt: skip
    assert join_key(padded) is None
    several_texts = DenseAttentionMap(torch.softmax(torch.randn(2, 4, 3, 3), -1))
    assert join_key(several_texts) is None


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "bart", "t5"])
def test_a_batch_of_a_model_is_measured_together(kind: str, tmp_path) -> None:
    reader = HuggingFaceReader(HuggingFaceFolder(saved(tmp_path / kind, kind)))
    lines = ["the cat sat on the mat", "a dog", "the red cat", "the dog ran in the big house"] * 3
    texts = [
        reader.read(number, line, line if kind in ("bart", "t5") else None)
        for number, line in enumerate(lines, 1)
    ]
    records = list(reader.map_records([text for text in texts if text is not None]))
    together = measure_joined_maps(records, 0.01)
    alone = [measure_map(one, 0.01) for one in records]
    for found, expected in zip(together, alone, strict=True):
        assert_same(found, expected)
    shapes = {(one.attention_map.shape[2:], one.kind) for one in records}
    keys = {join_key(one.attention_map) for one in records}
    assert None not in keys
    assert len(keys) < len(records) / 2 >= len(shapes)
    assert len(next(frames(together, by_token=False))["line"]) == sum(
        one.attention_map.shape[1] for one in records
    )
