"""Roles of heads: by hand, by brute force, and on the weights of a real model."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from attlas.analysis.roles import role_of, roles
from attlas.analysis.roles.scores import repeated
from attlas.analysis.roles.table import ROLES, Role
from attlas.errors import AttlasError
from attlas.patterns import both, causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace, observe
from support.minilm import minilm

MAP = [
    [0.10, 0.20, 0.30, 0.40],
    [0.60, 0.10, 0.20, 0.10],
    [0.00, 0.70, 0.20, 0.10],
    [0.25, 0.25, 0.25, 0.25],
]


def traced(attention_map, *, cross_attention=None, layer="layer"):
    trace = Trace()
    trace.record(layer, attention_map)
    if cross_attention is not None:
        trace.set_kind(layer, cross_attention=cross_attention)
    return trace


def dense(*maps):
    """One text, a head for each map."""
    return DenseAttentionMap(torch.tensor(maps, dtype=torch.float64).unsqueeze(0))


def scores(table, head=0, layer="layer"):
    return {role.name: role.score for role in table.of_head(layer, head)}


def test_every_role_of_a_small_map_is_what_it_is_by_hand():
    table = roles(
        traced(dense(MAP), cross_attention=False),
        separators=torch.tensor([[False, False, False, True]]),
        counts=torch.tensor([[5, 1, 2, 7]]),
        tokens=torch.tensor([[3, 3, 8, 3]]),
        radius=1,
    )
    found = scores(table)
    assert found["previous"] == pytest.approx((0.6 + 0.7 + 0.25) / 3)
    assert found["next"] == pytest.approx((0.2 + 0.2 + 0.1) / 3)
    assert found["self"] == pytest.approx((0.1 + 0.1 + 0.2 + 0.25) / 4)
    assert found["first"] == pytest.approx((0.1 + 0.6 + 0.0 + 0.25) / 4)
    assert found["separator"] == pytest.approx((0.4 + 0.1 + 0.1 + 0.25) / 4)
    assert found["local"] == pytest.approx((0.3 + 0.9 + 1.0 + 0.5) / 4)
    # Greatest weights at 3, 0, 1, 0 (the first of equals): offsets 3, −1, −1, −3.
    assert found["positional"] == pytest.approx(2 / 4)
    assert table.role("layer", 0, "positional").offset == -1
    assert found["rare"] == pytest.approx(1 / 4)
    # Token 3 stands at 0, 1, 3. Behind earlier ones: of query 1 key 1; of query 3 keys 1 and 2.
    assert found["induction"] == pytest.approx((0.1 + 0.25 + 0.25) / 2)
    assert math.isnan(found["diagonal"])


def test_the_chance_of_a_role_is_what_an_even_gaze_would_score():
    table = roles(traced(dense(MAP), cross_attention=False), radius=1)
    chances = {role.name: role.chance for role in table.of_head("layer", 0)}
    assert chances["previous"] == chances["first"] == chances["positional"] == 1 / 4
    assert chances["local"] == pytest.approx((2 + 3 + 3 + 2) / 4 / 4)
    even = [[0.25] * 4] * 4
    found = roles(traced(dense(even), cross_attention=False), radius=1)
    for role in found.of_head("layer", 0):
        if role.name not in ("positional", "rare") and role.queries:
            assert role.score == pytest.approx(role.chance)


def test_a_score_that_an_even_gaze_would_have_on_so_short_a_text_is_no_role():
    table = roles(traced(dense([[1 / 3] * 3] * 3), cross_attention=False))
    assert table.role("layer", 0, "local").score == pytest.approx(1.0)
    assert table.role("layer", 0, "first").score > 0.3
    assert role_of(table, "layer", 0) == ()
    assert not Role("first", 0.40, 1 / 3, 0.3, 9).held
    assert Role("first", 0.45, 1 / 3, 0.3, 9).held
    assert Role("previous", 0.50, 0.1, 0.5, 9).held
    assert not Role("previous", 0.49, 0.0, 0.5, 9).held
    assert not Role("rare", math.nan, math.nan, 0.5, 0).held


def test_heads_made_for_a_role_hold_it():
    places = torch.arange(12)
    one_hot = torch.nn.functional.one_hot
    maps = torch.stack(
        [
            one_hot((places - 1).clamp(min=0), 12),
            one_hot((places + 1).clamp(max=11), 12),
            one_hot(places, 12),
            one_hot(torch.zeros(12, dtype=torch.long), 12),
            one_hot(torch.full((12,), 11), 12),
            one_hot(torch.full((12,), 7), 12),
        ]
    ).double()[None]
    separators = (places == 11)[None]
    counts = torch.where(places == 7, 1, 50)[None]
    table = roles(
        traced(DenseAttentionMap(maps), cross_attention=False), separators=separators, counts=counts
    )
    held = [{role.name for role in role_of(table, "layer", head)} for head in range(6)]
    assert held[0] == {"previous", "local", "positional"}
    assert held[1] == {"next", "local", "positional"}
    assert held[2] == {"self", "local", "positional"}
    assert held[3:] == [{"first"}, {"separator"}, {"rare"}]
    assert table.best("next")[:2] == ("layer", 1)
    assert "layer head 3: first 1.00" in str(table)


@pytest.mark.parametrize("queries", [2, 7, 40])
def test_an_even_diagonal_is_one_and_its_mirror_minus_one(queries):
    eye = torch.eye(queries, dtype=torch.float64)
    maps = torch.stack(
        [eye, eye.flip(0), torch.full_like(eye, 1 / queries), eye[:1].expand_as(eye)]
    )
    table = roles(traced(DenseAttentionMap(maps[None]), cross_attention=True))
    found = [table.role("layer", head, "diagonal").score for head in range(4)]
    assert found == pytest.approx([1, -1, 0, 0], abs=1e-6)
    assert table.role("layer", 1, "antidiagonal").score == pytest.approx(1)
    assert "diagonal" in {role.name for role in role_of(table, "layer", 0)}
    assert "antidiagonal" in {role.name for role in role_of(table, "layer", 1)}
    assert math.isnan(scores(table)["previous"])
    fainter = roles(
        traced(DenseAttentionMap(maps[None] * 0.3), cross_attention=True)
    )  # beside a sink
    found = [fainter.role("layer", head, "diagonal").score for head in range(4)]
    assert found == pytest.approx([1, -1, 0, 0], abs=1e-6)


@given(st.integers(2, 8), st.integers(2, 8), st.integers(0, 2**31))
def test_the_diagonal_is_the_weighted_correlation_that_numpy_finds(queries, slots, seed):
    weights = torch.randn(queries, slots, generator=torch.Generator().manual_seed(seed))
    weights = torch.softmax(3 * weights.double(), -1)
    places = np.mgrid[:queries, :slots].reshape(2, -1)
    covariance = np.cov(places, aweights=weights.numpy().reshape(-1), ddof=0)
    expected = covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])
    found = roles(traced(DenseAttentionMap(weights[None, None]), cross_attention=True))
    assert found.role("layer", 0, "diagonal").score == pytest.approx(expected, abs=1e-6)


def test_a_repeated_text_shows_an_induction_head():
    """Keys are the token before: what follows an earlier copy of the query's token gets it all."""
    tokens = repeated(range(100, 200), seed=3, begin=[1])
    assert len(tokens) == 1 + 4 * 25
    assert len(set(tokens[1:26].tolist())) == 25
    assert torch.equal(tokens[1:26].repeat(4), tokens[1:])
    assert torch.equal(tokens, repeated(range(100, 200), seed=3, begin=[1]))
    assert not torch.equal(tokens, repeated(range(100, 200), seed=4, begin=[1]))
    known = torch.nn.functional.one_hot(tokens, 200).float()
    before = torch.cat((torch.zeros(1, 200), known[:-1]))
    heads = [(known, before), (known, known)]  # one of induction, one of the same token
    query, keys = (torch.stack(part)[None] for part in zip(*heads, strict=True))
    attention_map = FactoredAttentionMap(query, keys, 40.0, causal, 0)
    table = roles(traced(attention_map, cross_attention=False), tokens=tokens[None])
    assert table.role("layer", 0, "induction").score == pytest.approx(1.0, abs=1e-4)
    assert table.role("layer", 0, "induction").queries == 75
    assert "induction" in {role.name for role in role_of(table, "layer", 0)}
    assert table.role("layer", 1, "induction").score < 0.01


@st.composite
def looked_at(draw):
    """Texts of all kinds, padded and not, with everything that roles may need."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    batch, length = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    padding = draw(st.sampled_from(["none", "right", "left"]))
    place, count = torch.arange(length).expand(batch, -1), torch.randint(1, length + 1, (batch, 1))
    token_mask = {"none": None, "right": place < count, "left": place >= length - count}[padding]
    pattern = draw(st.sampled_from([everywhere, causal, window(1), both(causal, window(2))]))
    parts = torch.randn(2, batch, 2, length, 4).double() * 2
    attention_map = FactoredAttentionMap(parts[0], parts[1], 1.0, pattern, 0, token_mask)
    known = {
        "separators": torch.rand(batch, length) > 0.6,
        "counts": torch.randint(1, 9, (batch, length)).double(),
        "tokens": torch.randint(0, 4, (batch, length)),
    }
    return attention_map, known, draw(st.integers(0, 3))


def brute(attention_map, known, radius):
    """The definitions, one query after the other."""
    weights, batch = attention_map.weights(), attention_map.shape[0]
    seen = attention_map.allowed_rows(0, attention_map.shape[2]).expand(weights.shape)
    token_mask = (
        torch.ones_like(known["separators"])
        if attention_map.token_mask is None
        else attention_map.token_mask
    )
    length, found = weights.shape[-1], {name: [] for name in ROLES}
    offsets = []
    for row in range(batch):
        slots = [j for j in range(length) if token_mask[row, j]]
        tokens, counts = known["tokens"][row].tolist(), known["counts"][row].tolist()
        least = min(counts[j] for j in slots)
        marked = [j for j in slots if known["separators"][row, j]]
        for i in slots:
            w = weights[row, 0, i].tolist()
            if seen[row, 0, i].sum() < 2:
                continue
            best = max(range(length), key=lambda j, w=w: w[j])
            offsets.append(best - i)
            behind = [
                j
                for j in slots
                if 0 < j <= i and token_mask[row, j - 1] and tokens[j - 1] == tokens[i]
            ]
            earlier = any(tokens[j] == tokens[i] for j in slots if j < i)
            for name, aimed, there in (
                ("previous", [i - 1], i - 1 in slots),
                ("next", [i + 1], i + 1 in slots),
                ("self", [i], True),
                ("first", slots[:1], True),
                ("separator", marked, bool(marked)),
                ("local", [j for j in range(length) if abs(i - j) <= radius], True),
                ("induction", behind, earlier),
            ):
                if there:
                    found[name].append(sum(w[j] for j in aimed))
            found["rare"].append(float(counts[best] == least))
    several = len(offsets) > 1
    found["positional"] = [max(map(offsets.count, offsets)) / len(offsets)] if several else []
    return {name: sum(each) / len(each) if each else math.nan for name, each in found.items()}


@given(looked_at())
def test_roles_are_what_their_definitions_say(looked):
    attention_map, known, radius = looked
    table = roles(traced(attention_map, cross_attention=False), radius=radius, **known)
    expected = brute(attention_map, known, radius)
    assert scores(table) == pytest.approx(expected, abs=1e-6, nan_ok=True)


@given(looked_at())
def test_a_corpus_is_the_sum_of_its_texts(looked):
    attention_map, known, radius = looked
    whole = roles(traced(attention_map, cross_attention=False), radius=radius, **known)
    parts = [
        roles(
            traced(attention_map.at(row), cross_attention=False),
            radius=radius,
            **{name: values[row : row + 1] for name, values in known.items()},
        )
        for row in range(attention_map.shape[0])
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    for one, other in zip(whole.of_head("layer", 1), total.of_head("layer", 1), strict=True):
        assert (one.name, one.queries) == (other.name, other.queries)
        assert one.score == pytest.approx(other.score, nan_ok=True)
        assert one.chance == pytest.approx(other.chance, nan_ok=True)


def test_texts_of_different_lengths_add_up_their_offsets():
    short = roles(traced(dense(MAP), cross_attention=False))
    long = roles(
        traced(DenseAttentionMap(torch.eye(9)[None, None].roll(1, -2)), cross_attention=False)
    )
    role = (short + long).role("layer", 0, "positional")
    assert (role.score, role.offset, role.queries) == ((2 + 8) / 13, -1, 13)
    assert (long + short).role("layer", 0, "positional") == role


def test_long_texts_are_gone_through_without_their_map(monkeypatch):
    torch.manual_seed(0)
    parts = torch.randn(2, 1, 2, 600, 8)
    attention_map = FactoredAttentionMap(parts[0], parts[1], 0.5, causal, 0)
    weights = attention_map.weights()[0].double()
    monkeypatch.setattr(FactoredAttentionMap, "rows", refuse_many(FactoredAttentionMap.rows))
    table = roles(traced(attention_map, cross_attention=False))
    previous = weights.diagonal(-1, 1, 2).mean(-1)
    query_offset = weights[:, 1:, 0].mean(-1)  # the query at 0 has no choice
    for head in range(2):
        assert table.role("layer", head, "previous").score == pytest.approx(float(previous[head]))
        assert table.role("layer", head, "first").score == pytest.approx(float(query_offset[head]))
        assert table.role("layer", head, "next").score == 0.0


def refuse_many(rows):
    def some(self, start, stop):
        assert stop - start < 600, "the whole map was asked for"
        return rows(self, start, stop)

    return some


def test_padding_that_only_a_bias_hides_is_no_text():
    torch.manual_seed(0)
    parts = torch.randn(2, 2, 1, 6, 4)
    token_mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    reported = FactoredAttentionMap(parts[0], parts[1], 1.0, everywhere, 0, token_mask)
    bias = torch.zeros(2, 1, 1, 6).masked_fill(~token_mask[:, None, None], -math.inf)
    hidden = FactoredAttentionMap(parts[0], parts[1], 1.0, everywhere, 0, bias=bias)
    weights = DenseAttentionMap(reported.weights(), token_mask[:, None, None])
    ours, *others = (
        roles(traced(attention_map, cross_attention=False))
        for attention_map in (reported, hidden, weights)
    )
    for other in others:
        assert scores(other) == pytest.approx(scores(ours), nan_ok=True)
    given = roles(
        traced(DenseAttentionMap(reported.weights()), cross_attention=False), token_mask=token_mask
    )
    assert scores(given) == pytest.approx(scores(ours), nan_ok=True)
    one = roles(
        traced(reported, cross_attention=True), queries=torch.tensor([[1] * 6, [1] * 3 + [0] * 3])
    )
    assert one.role("layer", 0, "first").queries == 9


def test_padding_on_the_left_whose_rows_a_bias_hides_whole_is_no_text():
    torch.manual_seed(0)
    parts = torch.randn(2, 1, 1, 6, 4)
    place = torch.arange(6)
    token_mask = place >= 2
    slopes = -0.1 * (place[:, None] - place).clamp(min=0)
    least = torch.finfo(torch.float32).min
    bias = slopes.masked_fill(~(token_mask & (place <= place[:, None])), least)[None, None]
    hidden = FactoredAttentionMap(parts[0], parts[1], 1.0, everywhere, 0, bias=bias)
    reported = roles(traced(hidden, cross_attention=False), token_mask=token_mask[None])
    assert scores(roles(traced(hidden, cross_attention=False))) == pytest.approx(
        scores(reported), nan_ok=True
    )
    assert reported.role("layer", 0, "previous").queries == 3


def test_padding_of_the_target_is_left_out_where_the_target_is_reported():
    torch.manual_seed(0)
    trace = traced(
        DenseAttentionMap(torch.randn(2, 1, 4, 4).softmax(-1)), cross_attention=True, layer="cross"
    )
    trace.record("self", DenseAttentionMap(torch.randn(2, 1, 3, 3).softmax(-1)))
    trace.set_kind("self", cross_attention=False)
    target = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    table = roles(trace, target_mask=target)
    assert table.role("cross", 0, "first").queries == 6
    assert table.role("self", 0, "first").queries == 6
    given = roles(trace, layers=["cross"], queries=target)
    assert scores(table, layer="cross") == pytest.approx(scores(given, layer="cross"), nan_ok=True)
    assert scores(roles(trace), layer="cross")["first"] != scores(table, layer="cross")["first"]
    with pytest.raises(AttlasError, match="cross-attention, which target_mask is for"):
        roles(trace, layers=["self"], target_mask=target)
    with pytest.raises(AttlasError, match="queries or target_mask; got both"):
        roles(trace, layers=["cross"], target_mask=target, queries=target)
    with pytest.raises(AttlasError, match=r"queries for layer 'cross' of shape \(2, 4\)"):
        roles(trace, target_mask=target[:, :3])


def test_calls_of_one_layer_have_a_row_each():
    trace = traced(dense(MAP), cross_attention=False)
    trace.record("layer", DenseAttentionMap(torch.eye(3)[None, None]))
    table = roles(trace)
    assert table.layers == ("layer[0]", "layer[1]")
    assert table.role("layer[1]", 0, "self").score == 1.0


def test_what_does_not_fit_is_reported():
    trace = traced(dense(MAP), cross_attention=False)
    with pytest.raises(AttlasError, match=r"separators for layer 'layer' of shape \(1, 4\)"):
        roles(trace, separators=torch.zeros(1, 5, dtype=torch.bool))
    with pytest.raises(AttlasError, match="some of the layers"):
        roles(trace, layers=["other"])
    with pytest.raises(AttlasError, match="a radius from 0; got -1"):
        roles(trace, radius=-1)
    table = roles(trace)
    with pytest.raises(AttlasError, match="a head from 0 to 0; got 3"):
        role_of(table, "layer", 3)
    with pytest.raises(AttlasError, match="a role among"):
        table.role("layer", 0, "clever")
    with pytest.raises(AttlasError, match="a text in which a head could show the role 'rare'"):
        table.best("rare")
    with pytest.raises(AttlasError, match="a layer of 1 heads in both tables; got 2"):
        _ = table + roles(traced(dense(MAP, MAP), cross_attention=False))
    with pytest.raises(AttlasError, match="the number of different tokens, 3; got 25"):
        repeated([1, 2, 3, 3], seed=0)
    with pytest.raises(AttlasError, match="at least two times"):
        repeated(range(9), seed=0, length=2, times=1)


SENTENCES = [
    "From the AP comes this story:",
    "President Bush on Tuesday nominated two individuals to replace retiring jurists.",
    "The little girl with the red hat was waiting for her older brother at the station.",
    "Nobody knew why the lights went out, but everyone had an opinion about it.",
    "She has written three books, none of which I have read yet.",
    "It rained.",
]


def test_head_2_of_layer_0_of_minilm_is_found_as_the_previous_token_head():
    model = AutoModel.from_pretrained(minilm(), local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm(), local_files_only=True)
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad(), observe(model) as trace:
        model(**batch)
    separators = batch["input_ids"] == tokenizer.sep_token_id
    table = roles(trace, separators=separators)
    layer, head, role = table.best("previous")
    assert (layer, head) == ("encoder.layer.0.attention.self", 2)
    assert role.held
    assert role.chance < 0.2
    assert role_of(table, layer, 2)[0].name in ("previous", "local", "positional")
    assert table.role(layer, 2, "positional").offset == -1
    assert "previous" in {found.name for found in role_of(table, layer, 2)}
    # The same sentences one by one, without padding, say the same.
    alone = None
    for text in SENTENCES:
        with torch.no_grad(), observe(model) as trace:
            model(**tokenizer(text, return_tensors="pt"))
        alone = roles(trace) if alone is None else alone + roles(trace)
    for place in table.layers:
        for each in range(12):
            ours, other = (one.role(place, each, "previous") for one in (table, alone))
            assert ours.queries == other.queries
            assert ours.score == pytest.approx(other.score, abs=1e-4)


def blind(queries, slots, pattern, heads=2, query_offset=0):
    """Queries that look evenly at all that they see."""
    return FactoredAttentionMap(
        torch.zeros(1, heads, queries, 4),
        torch.zeros(1, heads, slots, 4),
        1.0,
        pattern,
        query_offset,
    )


def test_a_map_that_may_be_of_one_text_has_no_diagonals():
    table = roles(traced(blind(12, 12, causal)))
    assert math.isnan(scores(table)["diagonal"])
    assert not role_of(table, "layer", 0)


def test_what_a_mask_alone_makes_diagonal_is_chance():
    table = roles(traced(blind(12, 12, causal), cross_attention=True))
    diagonal = table.role("layer", 0, "diagonal")
    assert diagonal.score == pytest.approx(diagonal.chance)
    assert diagonal.score > 0.5
    assert not diagonal.held
    assert table.role("layer", 0, "antidiagonal").chance == pytest.approx(-diagonal.chance)


def test_a_single_query_has_no_offset_of_its_own():
    for attention_map, cross_attention in (
        (blind(2, 2, causal), False),
        (blind(1, 9, everywhere), True),
    ):
        positional = roles(traced(attention_map, cross_attention=cross_attention)).role(
            "layer", 0, "positional"
        )
        assert positional.queries == 1
        assert math.isnan(positional.score)


def test_offsets_of_a_map_of_two_texts_are_counted_from_the_first_slot():
    def diagonal(queries, slots):
        return traced(
            DenseAttentionMap(torch.eye(queries, slots)[None, None]), cross_attention=True
        )

    table = roles(diagonal(4, 6)) + roles(diagonal(4, 4))
    positional = table.role("layer", 0, "positional")
    assert (positional.score, positional.offset) == (1.0, 0)
