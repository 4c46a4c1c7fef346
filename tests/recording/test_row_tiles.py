"""Statistics of maps by tiles on a CPU, beside float64 and beside blocks."""

import math
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attlas.patterns import Pattern, both, causal, either, everywhere, landmarks, strided, window
from attlas.recording import FactoredAttentionMap
from attlas.recording.maps import factored, reductions, row_tiles
from attlas.recording.maps.reductions import reduce_map
from attlas.recording.maps.row_tiles import RowTiles
from attlas.recording.maps.statistics import NAMES, reduction_of

NUMBERS = tuple(name for name in (*NAMES, "max_logit") if name != "gini")

PATTERNS: dict[str, Pattern] = {
    "everywhere": everywhere,
    "causal": causal,
    "window": window(5),
    "causal window": both(causal, window(9)),
    "strided": strided(3),
    "landmarks": either(window(2), landmarks(0, 7)),
}


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> list[RowTiles]:
    """Tiles are small, and used for small maps, too; those that have answered."""
    given_out: list[RowTiles] = []

    class Counted(RowTiles):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            given_out.append(self)

    for name, value in {"_LEAST_ROWS": 2, "_ROWS": 16, "_KEYS": 8, "_AT_ONCE": 300}.items():
        monkeypatch.setattr(row_tiles, name, value)
    monkeypatch.setattr(reductions, "LEAST_KEYS", 1)
    monkeypatch.setattr(reductions, "LEAST_QUERIES", 1)
    monkeypatch.setattr(reductions, "AT_ONCE", 0)
    monkeypatch.setattr(factored, "RowTiles", Counted)
    return given_out


def a_map(
    pattern: Pattern = everywhere, *, batch: int = 2, heads: int = 4, kv_heads: int = 2,
    queries: int = 37, num_keys: int = 41, offset: int = 0, dtype: torch.dtype = torch.float32,
    softcap: float | None = None, masked: bool = False, scale: float = 0.5, seed: int = 1,
) -> FactoredAttentionMap:  # fmt: skip
    random = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, heads, queries, 8, generator=random).to(dtype)
    keys = torch.randn(batch, kv_heads, num_keys, 8, generator=random).to(dtype)
    token_mask = None
    if masked:
        token_mask = torch.ones(batch, num_keys, dtype=torch.bool)
        token_mask[0, : num_keys // 3] = False
        token_mask[-1, num_keys // 2] = token_mask[-1, -4:] = False
    return FactoredAttentionMap(
        query, keys, scale, pattern, offset, token_mask=token_mask, softcap=softcap
    )


def in_float64(one: FactoredAttentionMap, threshold: float) -> dict[str, Tensor]:
    """All statistics of the held matrix."""
    query, keys = one.query.double(), one.keys.double()
    scores = query @ keys.repeat_interleave(query.shape[1] // keys.shape[1], 1).mT * one.scale
    if one.softcap is not None:
        scores = one.softcap * (scores / one.softcap).tanh()
    queries, num_keys = scores.shape[2:]
    i = torch.arange(queries)[:, None] + (one.query_offset or 0)
    j = torch.arange(num_keys)
    seen = one.pattern(i, j).expand(scores.shape)
    if one.token_mask is not None:
        seen = seen & one.token_mask[:, None, None]
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(0.0)
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    visible = seen.sum(-1).double()
    log_visible = visible.clamp(min=1).log()
    ends = [factored._ends_of(one.at(row)) for row in range(len(scores))]

    def at(key: Tensor) -> Tensor:
        is_key = (key >= 0) & (key < num_keys)
        index = torch.where(is_key, key, 0).expand(scores.shape[:3])[..., None]
        return weights.gather(-1, index)[..., 0] * is_key

    normalized = torch.where(log_visible > 0, entropy / log_visible.clamp(min=1e-30), 0.0)
    return {
        "entropy": entropy,
        "normalized_entropy": normalized,
        "effective_keys": torch.where(visible > 0, entropy.exp(), 0.0),
        "num_visible": visible,
        "max_weight": weights.amax(-1),
        "max_logit": scores.masked_fill(~seen, -torch.inf).amax(-1),
        "argmax": torch.where(visible > 0, weights.argmax(-1), -1),
        "distance": (weights * (i - j).abs()).sum(-1),
        "first_weight": torch.stack([weights[n, ..., first] for n, (first, _) in enumerate(ends)]),
        "last_weight": torch.stack([weights[n, ..., last] for n, (_, last) in enumerate(ends)]),
        "self_weight": at(i[:, 0]),
        "previous_weight": at(i[:, 0] - 1),
        "next_weight": at(i[:, 0] + 1),
        "count_above": (weights > threshold).sum(-1).double(),
        "received": weights.sum(-2),
    }  # fmt: skip


def assert_as_in_float64(
    one: FactoredAttentionMap, threshold: float = 0.03, **tolerance: float
) -> None:
    expected = in_float64(one, threshold)
    found = one.summary(*NUMBERS, threshold=threshold)
    assert set(expected) == set(NUMBERS)
    for name in NUMBERS:
        actual = getattr(found, name)
        torch.testing.assert_close(
            actual.double(), expected[name].double(), **({"rtol": 1e-5, "atol": 1e-5} | tolerance),
            msg=lambda text, name=name: f"{name}: {text}",
        )  # fmt: skip


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("name", PATTERNS)
def test_every_statistic_is_that_of_the_held_matrix(
    name: str, masked: bool, answered: list[RowTiles]
) -> None:
    assert_as_in_float64(a_map(PATTERNS[name], masked=masked))
    assert len(answered) == 1


@pytest.mark.parametrize("offset", [0, 3, 40, -5])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 90), (90, 1), (64, 16), (16, 64), (17, 25)])
def test_lengths_and_places_of_queries_are_free(
    sizes: tuple[int, int], offset: int, answered: list[RowTiles]
) -> None:
    queries, num_keys = sizes
    for pattern in (everywhere, causal, window(5)):
        assert_as_in_float64(a_map(pattern, queries=queries, num_keys=num_keys, offset=offset))
    assert len(answered) == 3


@pytest.mark.parametrize("softcap", [None, 0.7, 30.0])
@pytest.mark.parametrize("heads", [(1, 1), (6, 2), (3, 3)])
def test_heads_may_share_keys_and_scores_may_be_capped(
    heads: tuple[int, int], softcap: float | None, answered: list[RowTiles]
) -> None:
    assert_as_in_float64(a_map(causal, heads=heads[0], kv_heads=heads[1], softcap=softcap))
    assert len(answered) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_numbers_are_of_float32_or_better(dtype: torch.dtype, answered: list[RowTiles]) -> None:
    one = a_map(causal, dtype=dtype)
    assert one.entropy().dtype == torch.promote_types(dtype, torch.float32)
    exact = 1e-12 if dtype == torch.float64 else 1e-5
    assert_as_in_float64(one, rtol=exact, atol=exact)
    assert len(answered) == 2


@pytest.mark.parametrize("scale", [0.0, 5.0, 100.0, 3000.0])
def test_scores_may_be_equal_or_far_apart(scale: float, answered: list[RowTiles]) -> None:
    one = a_map(causal, scale=scale)
    found, exact = (
        one.summary(*NUMBERS),
        replace(one, query=one.query.double(), keys=one.keys.double()),
    )
    for field in fields(found):
        actual, expected = getattr(found, field.name), getattr(exact.summary(*NUMBERS), field.name)
        if actual is not None:
            torch.testing.assert_close(actual.double(), expected.double(), rtol=2e-3, atol=2e-3)
    assert_as_in_float64(replace(one, query=one.query.double(), keys=one.keys.double()))
    assert len(answered) > 2


def test_the_greatest_score_may_come_first_or_last(answered: list[RowTiles]) -> None:
    keys = torch.linspace(-60, 60, 50)[None, None, :, None]
    for ordered in (keys, keys.flip(2)):
        one = FactoredAttentionMap(torch.ones(1, 1, 20, 1), ordered, 3.0, everywhere, 0)
        assert_as_in_float64(one)
    assert len(answered) == 2


@pytest.mark.parametrize("threshold", [0.0, 1e-30, 0.5, 1.0])
def test_weights_above_any_threshold_are_counted(
    threshold: float, answered: list[RowTiles]
) -> None:
    one = a_map(causal, scale=40.0, dtype=torch.float64)
    counts = one.count_above(threshold)
    torch.testing.assert_close(counts, in_float64(one, threshold)["count_above"])
    assert len(answered) == 1


def test_a_part_of_the_queries_and_those_that_count(answered: list[RowTiles]) -> None:
    one = a_map(causal)
    mask = torch.rand(2, 37, generator=torch.Generator().manual_seed(0)) > 0.4
    found = reduce_map(
        one,
        {
            "entropy": reduction_of(one, "entropy"),
            "counted": reduction_of(one, "received", query_mask=mask),
            "received": reduction_of(one, "received"),
        },
        rows=(5, 30),
    )
    expected, weights = in_float64(one, 0.0), one.weights().double()
    entropies = expected["entropy"][..., 5:30]
    torch.testing.assert_close(
        found["entropy"][..., 5:30].double(), entropies, rtol=1e-5, atol=1e-5
    )
    assert not found["entropy"][..., :5].any()
    part = weights[:, :, 5:30]
    torch.testing.assert_close(found["received"].double(), part.sum(-2), rtol=1e-5, atol=1e-6)
    counted = (part * mask[:, None, 5:30, None]).sum(-2)
    torch.testing.assert_close(found["counted"].double(), counted, rtol=1e-5, atol=1e-6)
    assert len(answered) == 1


@pytest.mark.parametrize("number", [math.nan, math.inf, 3e38])
def test_scores_that_are_no_numbers_are_left_to_blocks(
    number: float, answered: list[RowTiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = a_map(causal)
    one.query[0, 0, 20] = number
    found = one.summary(*NUMBERS)
    assert not answered
    monkeypatch.setattr(reductions, "LEAST_KEYS", 1 << 60)
    expected = one.summary(*NUMBERS)
    for field in fields(found):
        actual, by_blocks = getattr(found, field.name), getattr(expected, field.name)
        if actual is not None:
            torch.testing.assert_close(actual, by_blocks, rtol=0, atol=0, equal_nan=True)


def test_what_tiles_do_not_know_is_left_to_blocks(answered: list[RowTiles]) -> None:
    one = a_map(causal)
    assert one.gini().shape == (2, 4, 37)
    biased = replace(one, bias=torch.zeros(1, 4, 37, 41))
    torch.testing.assert_close(biased.entropy(), one.entropy())
    assert len(answered) == 1


@pytest.mark.parametrize("least", ["LEAST_KEYS", "LEAST_QUERIES", "AT_ONCE"])
def test_small_maps_are_left_to_blocks(
    least: str, answered: list[RowTiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reductions, least, 2 * 4 * 37 * 41)
    assert_as_in_float64(a_map(causal))
    assert not answered


def test_modes_of_the_caller_change_nothing(answered: list[RowTiles]) -> None:
    one = a_map(causal)
    expected = one.summary(*NUMBERS)
    with torch.inference_mode():
        inside = a_map(causal).summary(*NUMBERS)
    with torch.autocast("cpu", torch.bfloat16):
        cast = one.summary(*NUMBERS)
    graph = replace(one, query=one.query.clone().requires_grad_()).summary(*NUMBERS)
    for field in fields(expected):
        for other in (inside, cast, graph):
            value = getattr(other, field.name)
            if value is not None:
                assert torch.equal(value, getattr(expected, field.name)), field.name
                assert not value.requires_grad
    assert torch.is_grad_enabled()
    assert len(answered) == 4


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_number_of_a_row(threads: int, answered: list[RowTiles]) -> None:
    before = torch.get_num_threads()
    expected = a_map(causal, masked=True).summary(*NUMBERS)
    torch.set_num_threads(threads)
    try:
        found = a_map(causal, masked=True).summary(*NUMBERS)
    finally:
        torch.set_num_threads(before)
    for name in NUMBERS:
        torch.testing.assert_close(
            getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-6
        )


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(sorted(PATTERNS)), queries=st.integers(1, 50), num_keys=st.integers(1, 50),
    offset=st.integers(-20, 60), masked=st.booleans(), seed=st.integers(0, 99),
    softcap=st.sampled_from([None, 2.0]), scale=st.sampled_from([0.1, 1.0, 6.0]),
)  # fmt: skip
def test_any_map(name: str, masked: bool, **given_: Any) -> None:
    masked = masked and given_["num_keys"] > 12
    one = a_map(PATTERNS[name], masked=masked, dtype=torch.float64, **given_)
    assert_as_in_float64(one, rtol=1e-9, atol=1e-9)
