"""All heads at once: pictures and statistics, against brute force."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from attlas.analysis import roles
from attlas.errors import AttlasError
from attlas.explorer import app, overview
from attlas.explorer.maps import Layer, layer_title
from attlas.explorer.overview import STATISTICS, join_tiles, look_at_layer, split_tiles
from attlas.explorer.tiles import read_tile
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from attlas.recording.trace import Axes


def random_weights(heads: int, queries: int, keys: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(1, heads, queries, keys, generator=generator)).softmax(-1)


def client(trace: Trace) -> TestClient:
    return TestClient(app(trace), base_url="http://localhost")


def requested(trace: Trace, query: str = "") -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The tiles of the overview of the first text, its statistics, and what the text says."""
    with client(trace) as opened:
        text = opened.get("/api/texts/0").json()
        answer = opened.get(f"/api/maps/{text['map']}/overview{query}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/vnd.attlas.overview"
        numbers = opened.get(f"/api/maps/{text['map']}/statistics").json()
    return [read_tile(tile) for tile in split_tiles(answer.content)], numbers, text


def pooled(weights: np.ndarray, side: int) -> np.ndarray:
    """The largest of each group, cell by cell."""
    heads, queries, keys = weights.shape
    height, width = min(side, queries), min(side, keys)
    cells = np.empty((heads, height, width))
    for i in range(height):
        for j in range(width):
            rows = slice(i * queries // height, (i + 1) * queries // height)
            across = slice(j * keys // width, (j + 1) * keys // width)
            cells[:, i, j] = weights[:, rows, across].max((1, 2))
    return cells


@given(
    queries=st.integers(1, 20),
    keys=st.integers(1, 20),
    side=st.integers(1, 12),
    seed=st.integers(0, 2**16),
    masked=st.booleans(),
)
def test_a_picture_holds_the_largest_weight_of_each_cell_and_where_no_query_may_look(
    queries: int, keys: int, side: int, seed: int, masked: bool
) -> None:
    weights = random_weights(3, queries, keys, seed)
    allowed = None
    if masked:
        generator = torch.Generator().manual_seed(seed)
        allowed = torch.rand(1, 1, queries, keys, generator=generator) < 0.4
        weights = weights * allowed
    layer = Layer("a", DenseAttentionMap(weights, allowed), Axes((), (), within=False))
    found = look_at_layer(layer, side).pictures.numpy()
    hidden = np.zeros((1, queries, keys)) if allowed is None else ~allowed[0].numpy() + 0.0
    closed = 1 - pooled(1 - hidden, side)  # a cell is closed where all of its weights are
    expected = np.where(closed == 1, -np.inf, pooled(weights[0].numpy(), side))
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_every_layer_comes_in_one_answer_as_it_is_deep_and_wide() -> None:
    trace = Trace()
    sizes = [(2, 5, 5), (3, 5, 5), (1, 130, 5), (4, 130, 130)]
    for number, size in enumerate(sizes):
        trace.record(f"layer.{number}", DenseAttentionMap(random_weights(*size, seed=number)))
    tiles, _, text = requested(trace)
    for described, tile in zip(text["layers"], tiles, strict=True):
        weights = trace[described["name"]].weights()[0].numpy()
        expected = pooled(weights, 64)
        assert tile.weights.shape == expected.shape
        # By its root, in 254 levels, or in half as many where it is pooled.
        off = np.abs(np.sqrt(tile.weights.numpy()) - np.sqrt(expected))
        assert off.max() <= (1.0 if tile.pyramid_level else 0.5) / 254 + 1e-6
        assert tile.pyramid_level == (2 if 130 in weights.shape else 0)


def test_144_heads_of_512_tokens_take_less_than_half_a_megabyte() -> None:
    generator = torch.Generator().manual_seed(1)
    trace = Trace()
    for number in range(12):
        query, keys = 2 * torch.randn(2, 1, 12, 512, 8, generator=generator)
        trace.record(f"{number}", FactoredAttentionMap(query, keys, 8**-0.5, causal, 0))
    with client(trace) as opened:
        text = opened.get("/api/texts/0").json()
        answer = opened.get(f"/api/maps/{text['map']}/overview").content
    assert len(answer) <= 500_000
    tile = read_tile(split_tiles(answer)[3])
    assert tile.hidden[0, 0, 1:].all()  # no query looks ahead
    assert not tile.hidden[0].diagonal().any()


def statistics_by_hand(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Of self-attention in which every query sees every key."""
    heads, n, _ = weights.shape
    entropy = -(weights * np.log(weights)).sum(-1)
    places = np.arange(n)
    apart = np.abs(places[:, None] - places)
    mean = weights.mean(1)
    return {
        "normalized_entropy": entropy.mean(1) / math.log(n),
        "max_weight": weights.max(-1).mean(1),
        "first_weight": weights[:, :, 0].mean(1),
        "last_weight": weights[:, :, -1].mean(1),
        "distance": (weights * apart).sum(-1).mean(1),
        "self_weight": np.stack([weights[h].diagonal().sum() / n for h in range(heads)]),
        "previous_weight": np.stack([weights[h].diagonal(-1).sum() / n for h in range(heads)]),
        "next_weight": np.stack([weights[h].diagonal(1).sum() / n for h in range(heads)]),
        "special_weight": weights[:, :, [0, n - 1]].sum(-1).mean(1),
        "information": -(mean * np.log(mean)).sum(-1) - entropy.mean(1),
    }


def test_the_statistics_of_each_head_are_those_of_its_weights() -> None:
    trace = Trace()
    trace.record("a", DenseAttentionMap(random_weights(3, 6, 6).double()))
    words = [["[CLS]", "the", "cat", "sat", "down", "[SEP]"]]
    trace.label(words, words)
    _, numbers, _ = requested(trace)
    expected = statistics_by_hand(trace["a"].weights()[0].numpy())
    assert set(numbers["names"]) == set(STATISTICS) == {*expected, "diagonal"}
    assert numbers["layers"][0]["diagonal"] is None  # nobody asks it of self-attention
    for name, values in expected.items():
        np.testing.assert_allclose(numbers["layers"][0][name], values, rtol=1e-5, err_msg=name)


def diagonal_by_hand(weights: np.ndarray) -> np.ndarray:
    """Pearson's correlation of query and key, weighted by the map, head by head."""
    rows, keys = np.indices(weights.shape[1:])
    found = []
    for one in weights:
        covariance = np.cov(rows.ravel(), keys.ravel(), aweights=one.ravel(), ddof=0)
        found.append(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return np.array(found)


@pytest.mark.parametrize("sampled", [False, True])
def test_monotonicity_is_the_correlation_of_places_under_the_weights(sampled: bool) -> None:
    even = torch.eye(5)
    made = torch.stack((even, even.flip(1), torch.full((5, 5), 0.2)))[None]
    weights = torch.cat((made, random_weights(2, 5, 5)), 1)
    layer = Layer("a", DenseAttentionMap(weights), Axes((), (), within=False))
    found = look_at_layer(layer, 5, sampled=sampled).statistics["diagonal"]
    assert found is not None
    np.testing.assert_allclose(found, diagonal_by_hand(weights[0].numpy()), atol=1e-5)
    np.testing.assert_allclose(found[:3], [1, -1, 0], atol=1e-5)


def test_one_query_has_no_monotonicity() -> None:
    layer = Layer("a", DenseAttentionMap(random_weights(2, 1, 5)), Axes((), (), within=False))
    assert look_at_layer(layer, 5, sampled=False).statistics["diagonal"] is None


def test_monotonicity_is_that_of_the_roles_of_a_trace() -> None:
    trace = Trace()
    trace.record("across", DenseAttentionMap(random_weights(3, 4, 7)))
    trace.set_kind("across", cross_attention=True)
    _, numbers, _ = requested(trace)
    table = roles(trace)
    expected = [
        next(role.score for role in table.of_head("across", head) if role.name == "diagonal")
        for head in range(3)
    ]
    assert numbers["layers"][0]["diagonal"] == pytest.approx(expected, abs=1e-6)


def test_what_nobody_knows_is_null_and_not_a_number() -> None:
    trace = Trace()
    trace.record("across", DenseAttentionMap(random_weights(2, 3, 5)))
    trace.set_kind("across", cross_attention=True)
    _, numbers, _ = requested(trace)
    (layer,) = numbers["layers"]
    unknown = {name for name, values in layer.items() if values is None}
    assert unknown == {
        "distance",
        "self_weight",
        "previous_weight",
        "next_weight",
        "special_weight",
    }


def test_padding_changes_no_statistic_of_a_text() -> None:
    generator = torch.Generator().manual_seed(4)
    query, keys = torch.randn(2, 1, 2, 9, 4, generator=generator)
    mask = torch.arange(9)[None] < 6
    alone = FactoredAttentionMap(query[:, :, :6], keys[:, :, :6], 0.5, causal, 0)
    padded = FactoredAttentionMap(query, keys, 0.5, causal, 0, mask)
    axes = Axes((), (), within=True)
    one, other = (look_at_layer(Layer("a", m, axes), 64).statistics for m in (alone, padded))
    for name, values in one.items():
        if values is not None:
            assert other[name] == pytest.approx(values, abs=1e-6), name


def test_rows_that_see_nothing_count_nowhere() -> None:
    weights = random_weights(1, 4, 4)
    allowed = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    allowed[..., 2, :] = False
    weights = weights * allowed
    layer = Layer("a", DenseAttentionMap(weights, allowed), Axes((), (), within=False))
    found = look_at_layer(layer, 64)
    assert torch.isneginf(found.pictures[0, 2]).all()
    rows = weights[0, 0, [0, 1, 3]]
    assert found.statistics["max_weight"] == pytest.approx([float(rows.amax(1).mean())])


def test_a_map_whose_rows_all_see_nothing_has_finite_statistics() -> None:
    allowed = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    layer = Layer("a", DenseAttentionMap(torch.zeros(1, 2, 3, 3), allowed), Axes((), (), True))
    found = look_at_layer(layer, 64)
    assert torch.isneginf(found.pictures).all()
    for values in found.statistics.values():
        assert values is None or all(math.isfinite(value) for value in values)


def planted() -> Trace:
    """A uniform head, one that looks at the first token, one at the token before, by layer."""
    n = 8
    uniform = torch.full((n, n), 1 / n)
    sink = torch.zeros(n, n)
    sink[:, 0] = 1
    previous = torch.eye(n).roll(-1, 1)
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(torch.stack((uniform, sink))[None]))
    trace.record("encoder.1", DenseAttentionMap(torch.stack((sink, uniform, previous))[None]))
    return trace


def test_the_first_head_is_neither_uniform_nor_one_that_looks_at_one_token() -> None:
    _, numbers, _ = requested(planted())
    assert numbers["first"] == {
        "layer": 1,
        "head": 2,
        "why": "Shown first: its rows differ most, with 88 % on the token before.",
    }
    assert numbers["layers"][0]["information"] == pytest.approx([0, 0], abs=1e-6)
    assert numbers["layers"][1]["information"][2] == pytest.approx(math.log(8))


def test_the_first_row_is_sharp_and_looks_neither_at_itself_nor_at_a_sink() -> None:
    weights = torch.full((5, 5), 0.2)
    weights[0] = torch.tensor([0, 0, 0, 1.0, 0])  # sharp, but the first one
    weights[1] = torch.tensor([1.0, 0, 0, 0, 0])  # a sink
    weights[2] = torch.eye(5)[2]  # itself
    weights[3] = torch.tensor([0, 0, 0.1, 0.1, 0.8])  # a special token
    weights[4] = torch.tensor([0, 0.6, 0.2, 0.2, 0])
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(weights[None, None].expand(1, 2, 5, 5)))
    assert rows_of(trace, ["a", "b", "c", "d", "[SEP]"]) == [3, 3]  # of [SEP] it is not shown
    assert rows_of(trace, ["a", "b", "c", "d", "e"]) == [3, 3]
    weights[3] = 0.2
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(weights[None, None].expand(1, 2, 5, 5)))
    assert rows_of(trace, ["a", "b", "c", "d", "e"]) == [4, 4]


def rows_of(trace: Trace, tokens: list[str]) -> list[int]:
    trace.label([tokens], [tokens])
    _, numbers, _ = requested(trace)
    rows: list[int] = numbers["layers"][0]["row"]
    return rows


def test_a_sampled_map_names_no_first_row() -> None:
    layer = Layer("a", DenseAttentionMap(random_weights(1, 6, 6)), Axes((), (), within=True))
    assert look_at_layer(layer, 4, sampled=True).rows is None
    assert look_at_layer(layer, 4).rows is not None


def test_where_a_target_looks_at_a_source_the_first_head_is_one_of_those() -> None:
    trace = planted()
    trace.record("decoder.0", DenseAttentionMap(random_weights(2, 8, 5)))
    trace.set_kind("decoder.0", cross_attention=True)
    _, numbers, text = requested(trace)
    assert text["layers"][numbers["first"]["layer"]]["name"] == "decoder.0"
    # Of the encoder, head 2 has rows that differ more.
    assert numbers["first"]["why"].startswith(
        "Shown first: of the heads that look at the source, its rows differ most"
    )


def test_a_text_too_long_to_be_read_now_is_sampled_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(2)
    query, keys = torch.randn(2, 1, 2, 300, 4, generator=generator)
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.5, everywhere, 0))
    monkeypatch.setattr(overview, "_MOST_READ", 1_000)
    (tile,), numbers, _ = requested(trace)
    assert tile.sampled
    assert numbers["sampled"]
    weights = trace["a"].weights()[0]
    middles = [(i * 300 // 64 + (i + 1) * 300 // 64) // 2 for i in range(64)]
    expected = pooled(weights[:, middles].numpy(), 64)
    off = np.abs(np.sqrt(tile.weights.numpy()) - np.sqrt(expected))
    assert off.max() <= 1 / 254 * math.sqrt(expected.max()) + 1e-5  # every other level
    mean = weights[:, middles].amax(-1).mean(-1)
    assert numbers["layers"][0]["max_weight"] == pytest.approx(mean.tolist(), rel=1e-5)


def test_the_two_routes_read_a_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = list[str]()
    whole = overview.look_at_layer

    def noted(layer: Layer, side: int, **how: Any) -> Any:
        passes.append(layer.name)
        return whole(layer, side, **how)

    monkeypatch.setattr(overview, "look_at_layer", noted)
    with client(planted()) as opened, ThreadPoolExecutor(4) as pool:
        name = opened.get("/api/texts/0").json()["map"]
        paths = [f"/api/maps/{name}/{route}" for route in ("overview", "statistics")] * 3
        answers = list(pool.map(opened.get, paths))
    assert {answer.status_code for answer in answers} == {200}
    assert passes == ["encoder.0", "encoder.1"]


def test_overviews_are_kept_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = list[int]()
    whole = overview.look_at_layer

    def noted(layer: Layer, side: int, **how: Any) -> Any:
        sides.append(side)
        return whole(layer, side, **how)

    monkeypatch.setattr(overview, "look_at_layer", noted)
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(random_weights(2, 20, 20)))
    of_ten = 4 * 2 * 10 * 10  # bytes of two pictures of 10 × 10 cells
    monkeypatch.setattr(overview, "_MOST_BYTES", 2 * of_ten)
    with client(trace) as opened:
        name = opened.get("/api/texts/0").json()["map"]
        for side in (10, 9, 10, 20, 10, 9, 10):
            assert opened.get(f"/api/maps/{name}/overview?side={side}").status_code == 200
    # The one of 20 × 20 has more than there is room for: it stands alone until the next comes.
    assert sides == [10, 9, 20, 10, 9]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?side=0", "a side from 1 to 512"),
        ("?side=513", "a side from 1 to 512"),
        ("?side=x", "a side from 1 to 512"),
        ("?side=٣", "a side from 1 to 512"),
        ("?zoom=1", "one of side"),
        ("?side=8&side=8", "each parameter once"),
    ],
)
@pytest.mark.parametrize("route", ["overview", "statistics"])
def test_a_wrong_question_is_answered_with_what_to_do(query: str, said: str, route: str) -> None:
    with client(planted()) as opened:
        name = opened.get("/api/texts/0").json()["map"]
        answer = opened.get(f"/api/maps/{name}/{route}{query}")
        assert answer.status_code == 400
        assert said in " ".join(answer.json().values())
        assert opened.get(f"/api/maps/nothing/{route}").status_code == 404


def test_a_damaged_overview_is_refused() -> None:
    whole = join_tiles([b"one", b"two2"])
    assert split_tiles(whole) == [b"one", b"two2"]
    for damaged in (whole[:-1], b"NOPE" + whole[4:], whole[:5], whole + b"x"):
        with pytest.raises(AttlasError, match="a whole overview"):
            split_tiles(damaged)


@pytest.mark.parametrize(
    ("path", "kind", "within", "title"),
    [
        ("bert.encoder.layer.3.attention.self", "self", True, "encoder 3 · self"),
        ("model.decoder.layers.0.encoder_attn", "cross", False, "decoder 0 · cross"),
        ("transformer.h.11.attn", "self", True, "layer 11 · self"),
        ("decoder.attention", None, False, "decoder · cross"),
        ("layers.2", None, True, "layer 2"),
        ("attention", "self", True, "attention"),
        ("decoder.0, calls 1–4", "self", True, "decoder 0 · self, calls 1–4"),
    ],
)
def test_a_layer_has_a_title_that_a_person_reads(
    path: str, kind: str | None, within: bool, title: str
) -> None:
    assert layer_title(path, kind, within) == title


def test_two_layers_never_have_the_same_title() -> None:
    trace = Trace()
    for path in ("text.encoder.0", "vision.encoder.0", "encoder.1"):
        trace.record(path, DenseAttentionMap(random_weights(1, 3, 3)))
    titles = [layer["title"] for layer in requested(trace)[2]["layers"]]
    assert titles == ["text.encoder.0", "vision.encoder.0", "encoder 1"]
