import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.patterns import both, causal, either, everywhere, landmarks, strided, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap
from attlas.recording.maps.blocks import blocks_of
from attlas.recording.maps.statistics import NAMES

PATTERNS = [
    everywhere,
    causal,
    window(0),
    window(3),
    both(causal, window(2)),
    strided(3),
    either(window(1), landmarks(0)),
]


@st.composite
def factored(draw):
    """Attention maps of every kind: shared keys, padding with and without holes, biases, caps,
    caches."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    batch, queries, slots = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 12)),
    )
    heads, num_kv_heads = draw(st.sampled_from([(1, 1), (4, 4), (4, 2), (3, 1)]))
    padding = draw(st.sampled_from(["none", "right", "left", "holes", "all"]))
    place = torch.arange(slots).expand(batch, -1)
    count = torch.randint(1, slots + 1, (batch, 1))
    token_mask = {
        "none": None,
        "right": place < count,
        "left": place >= slots - count,
        "holes": torch.rand(batch, slots) > 0.4,
        "all": torch.zeros(batch, slots, dtype=torch.bool),
    }[padding]
    shape = draw(
        st.sampled_from(
            [(batch, heads, queries, slots), (1, 1, queries, slots), (1, heads, 1, slots)]
        )
    )
    bias = {
        "none": None,
        "float": torch.randn(shape),
        "bool": torch.rand(shape) > 0.3,
        "hiding": torch.where(torch.rand(shape) > 0.5, 0.0, torch.finfo(torch.float32).min),
        "-inf": torch.where(torch.rand(shape) > 0.5, 0.0, -math.inf),
    }[draw(st.sampled_from(["none", "none", "float", "bool", "hiding", "-inf"]))]
    return FactoredAttentionMap(
        query=torch.randn(batch, heads, queries, 4) * draw(st.sampled_from([0.5, 3.0])),
        keys=torch.randn(batch, num_kv_heads, slots, 4),
        scale=0.5,
        pattern=draw(st.sampled_from(PATTERNS)),
        query_offset=draw(st.sampled_from([max(slots - queries, 0), 0])),
        token_mask=token_mask,
        bias=bias,
        softcap=draw(st.sampled_from([None, 2.0])),
    )


def weights_of(attention_map):
    """The weights in float64, written down as the formula says."""
    batch, heads, queries, slots = attention_map.shape
    keys = attention_map.keys.double().repeat_interleave(heads // attention_map.keys.shape[1], 1)
    scores = attention_map.query.double() @ keys.mT * attention_map.scale
    if attention_map.softcap is not None:
        scores = attention_map.softcap * torch.tanh(scores / attention_map.softcap)
    seen = attention_map.pattern.mask(queries, slots, attention_map.query_offset).expand(
        batch, heads, -1, -1
    )
    if attention_map.token_mask is not None:
        seen = seen & attention_map.token_mask[:, None, None]
    if attention_map.bias is not None:
        if attention_map.bias.dtype == torch.bool:
            seen = seen & attention_map.bias
        else:
            scores = scores + attention_map.bias.double().clamp(min=-1e300)
            seen = seen & (attention_map.bias > -math.inf)
    return torch.where(seen, scores, -math.inf).softmax(-1).nan_to_num(0.0), seen


def expected(weights, seen, first, attention_map, threshold):
    """Every statistic from the dense float64 map, by its formula."""
    batch, heads, queries, slots = weights.shape
    i = first + torch.arange(queries).unsqueeze(-1)
    j = torch.arange(slots)
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    empty = weights.sum(-1) == 0
    num_visible = (
        attention_map.allowed_rows(0, queries).expand(batch, heads, -1, -1).sum(-1).double()
    )
    token_mask = getattr(attention_map, "token_mask", None)
    ends = []
    for row in range(batch):
        places = torch.arange(slots) if token_mask is None else token_mask[row].nonzero().flatten()
        bound = (
            attention_map.pattern.bound if hasattr(attention_map, "pattern") else everywhere.bound
        )
        if bound.ahead is not None and not bound.marks:  # room behind what any query reaches
            places = places[places < first + queries + bound.ahead]
        if getattr(attention_map, "bias", None) is not None:
            kinds = [
                attention_map.shown,
                attention_map.allowed_rows,
            ]  # rows hidden whole count where all are so
            kinds = [kind(0, queries).expand(batch, -1, -1, -1)[row] for kind in kinds]
            kinds = [kind.flatten(0, 1).any(0).nonzero().flatten() for kind in kinds]
            places = kinds[0] if len(kinds[0]) else kinds[1]
        ends.append((int(places[0]), int(places[-1])) if len(places) else (None, None))

    def at(column):
        inside = (column >= 0) & (column < slots)
        chosen = weights.gather(-1, column.clamp(0, slots - 1).expand(batch, heads, -1, -1))
        return chosen.squeeze(-1) * inside.squeeze(-1)

    def on(end):
        return torch.stack(
            [
                torch.zeros(heads, queries).double()
                if ends[row][end] is None
                else weights[row, :, :, ends[row][end]]
                for row in range(batch)
            ]
        )

    gini = torch.zeros(batch, heads, queries, dtype=torch.float64)
    shown = attention_map.allowed_rows(0, queries).expand(batch, heads, -1, -1)
    for place in np.ndindex(batch, heads, queries):
        x = weights[place][shown[place]]
        if len(x) and x.sum() > 0:
            gini[place] = (x[:, None] - x).abs().sum() / (2 * len(x) * x.sum())
    return {
        "entropy": entropy,
        "normalized_entropy": torch.where(
            num_visible > 1, entropy / num_visible.clamp(min=2).log(), 0.0
        ),
        "effective_keys": torch.where(empty, 0.0, entropy.exp()),
        "num_visible": num_visible,
        "count_above": (weights > threshold).sum(-1).double(),
        "max_weight": weights.amax(-1),
        "distance": (weights * (i - j).abs()).sum(-1),
        "first_weight": on(0),
        "last_weight": on(1),
        "self_weight": at(i),
        "previous_weight": at(i - 1),
        "next_weight": at(i + 1),
        "gini": gini,
        "received": weights.sum(-2),
    }


@given(factored(), st.sampled_from([0.0, 0.013, 0.3]))
def test_every_statistic_is_that_of_the_dense_map_in_float64(attention_map, threshold):
    weights, seen = weights_of(attention_map)
    torch.testing.assert_close(attention_map.weights().double(), weights, atol=1e-5, rtol=0)
    found = attention_map.summary(*NAMES, threshold=threshold)
    near = ((weights - threshold).abs() < 1e-6).any(-1)  # float32 may count these otherwise
    for name, numbers in expected(
        weights, seen, attention_map.query_offset, attention_map, threshold
    ).items():
        ours = getattr(found, name).double()
        if name == "count_above":
            ours, numbers = ours[~near], numbers[~near]
        torch.testing.assert_close(ours, numbers, atol=1e-5, rtol=1e-5, msg=lambda m, n=name: n + m)
    best = found.argmax
    assert torch.equal(best == -1, weights.sum(-1) == 0)
    reached = weights.gather(-1, best.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(reached, weights.amax(-1), atol=1e-6, rtol=0)


@given(factored())
def test_the_largest_logit_is_that_of_the_scores_in_float64(attention_map):
    batch, heads, queries, keys = attention_map.shape
    shared = heads // attention_map.keys.shape[1]
    scores = (
        attention_map.query.double() @ attention_map.keys.double().repeat_interleave(shared, 1).mT
    )
    scores = scores * attention_map.scale
    if attention_map.softcap is not None:
        scores = attention_map.softcap * torch.tanh(scores / attention_map.softcap)
    bias = attention_map.bias
    if bias is not None and bias.dtype != torch.bool:
        scores = scores + bias
    shown = attention_map.allowed_rows(0, queries).expand(batch, heads, queries, keys)
    wanted = scores.masked_fill(~shown, -math.inf).amax(-1)
    torch.testing.assert_close(attention_map.max_logit().double(), wanted, rtol=1e-5, atol=1e-5)
    held = DenseAttentionMap(attention_map.weights())
    assert held.summary().max_logit is None
    with pytest.raises(AttlasError, match="scores of its softmax, for max_logit"):
        held.max_logit()


@given(factored())
def test_a_held_map_says_the_same_as_its_factors(attention_map):
    batch, _, queries, slots = attention_map.shape
    shown, seen = (kind(0, queries) for kind in (attention_map.shown, attention_map.allowed_rows))
    dense = DenseAttentionMap(attention_map.weights(), seen, attention_map.query_offset)
    mine, theirs = attention_map.summary(*NAMES), dense.summary(*NAMES)
    # Rows that are hidden whole do not say what is padding, unless there are no others.
    shown = torch.where(shown.flatten(1).any(1)[:, None, None, None], shown, seen)
    ends = DenseAttentionMap(attention_map.weights(), shown).summary("first_weight", "last_weight")
    num_visible = shown.expand(batch, -1, -1, -1).flatten(1, 2).any(1)
    token_mask = (
        torch.ones(batch, slots, dtype=torch.bool)
        if attention_map.token_mask is None
        else attention_map.token_mask
    )
    for name in NAMES:
        if name in ("first_weight", "last_weight") and not torch.equal(num_visible, token_mask):
            continue  # weights alone do not say whether a key that nobody sees is padding
        if name in ("argmax", "count_above"):
            continue  # of equals, and of what lies at the threshold, rounding decides
        ours = getattr(mine, name)
        others = getattr(ends if name in ("first_weight", "last_weight") else theirs, name)
        torch.testing.assert_close(ours, others, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize(("hidden", "first", "last"), [(2, 0.3, 0.7), (0, 0.7, 0.3), (1, 0.3, 0.7)])
def test_the_ends_of_a_held_map_are_no_padding(hidden, first, last):
    allowed = torch.arange(3) != hidden
    weights = torch.zeros(3).masked_scatter(allowed, torch.tensor([0.3, 0.7]))
    if hidden == 0:
        weights = weights.flip(0).roll(1)
    attention_map = DenseAttentionMap(weights.view(1, 1, 1, 3), allowed.view(1, 1, 1, 3))
    assert attention_map.first_weight().item() == pytest.approx(first)
    assert attention_map.last_weight().item() == pytest.approx(last)


@given(factored(), st.integers(1, 4))
def test_the_greatest_weights_and_their_slots(attention_map, k):
    weights, _ = weights_of(attention_map)
    values, slots = attention_map.topk(k)
    count = min(k, attention_map.shape[3])
    torch.testing.assert_close(
        values[..., :count].double(), weights.topk(count).values, atol=1e-5, rtol=0
    )
    at = weights.gather(-1, slots.clamp(min=0))
    torch.testing.assert_close(at * (slots >= 0), values.double(), atol=1e-5, rtol=0)
    assert not values[..., count:].any()
    assert (slots[..., count:] == -1).all()


@pytest.mark.parametrize("pattern", [everywhere, causal])
@pytest.mark.parametrize("k", [1, 3, 5, 7])
@pytest.mark.parametrize("held", [False, True])
def test_what_is_seen_counts_among_the_greatest_though_its_weight_underflows(pattern, k, held):
    torch.manual_seed(0)
    query, keys = torch.randn(1, 2, 5, 4) * 300, torch.randn(1, 2, 5, 4)
    attention_map = FactoredAttentionMap(query, keys, 1.0, pattern, 0)
    if held:
        attention_map = DenseAttentionMap(attention_map.weights(), attention_map.allowed_rows(0, 5))
    assert bool((attention_map.weights() == 0).sum(-1).gt(2).any())
    values, slots = attention_map.topk(k)
    seen = pattern.mask(5, 5, 0)
    scores = (query @ keys.mT).masked_fill(~seen, -torch.inf)
    for head, row in np.ndindex(2, 5):
        there = slots[0, head, row][slots[0, head, row] >= 0].tolist()
        assert len(there) == len(set(there)) == min(k, int(seen[row].sum()))
        assert bool(seen[row][there].all())
        found = attention_map.weights()[0, head, row][there]
        assert torch.equal(values[0, head, row][: len(there)], found)
        assert not bool(values[0, head, row][len(there) :].any())
        if not held:  # by their scores, those that are nothing too
            order = scores[0, head, row].argsort(descending=True)[: len(there)]
            assert there == order.tolist()


def test_of_negative_weights_the_greatest_are_those_of_slots_that_are_seen():
    weights = torch.tensor([[[[-0.5, 0.0, -0.2, 1.7]]]])
    attention_map = DenseAttentionMap(weights, weights != 0)
    values, slots = attention_map.topk(4)
    assert slots.flatten().tolist() == [3, 2, 0, -1]
    torch.testing.assert_close(values.flatten(), torch.tensor([1.7, -0.2, -0.5, 0.0]))


def test_the_greatest_of_a_cell_of_negative_weights_is_negative():
    weights = torch.tensor([[[[-0.5, -0.2, 0.0, -0.1]]]])
    pooled = DenseAttentionMap(weights, weights != 0).pool(shape=(1, 2), how="max")
    torch.testing.assert_close(pooled.flatten(), torch.tensor([-0.2, 0.0]))


def test_the_last_real_slot_is_not_in_room_that_nobody_reaches():
    attention_map = FactoredAttentionMap(
        query=torch.randn(1, 1, 3, 4),
        keys=torch.randn(1, 1, 7, 4),
        scale=1.0,
        pattern=causal,
        query_offset=0,
    )
    torch.testing.assert_close(attention_map.last_weight(), attention_map.weights()[..., 2])
    assert attention_map.last_weight()[0, 0, 2] > 0


def test_the_first_real_slot_is_not_padding_at_which_only_rows_of_padding_look():
    least = torch.finfo(torch.float32).min
    bias = torch.full((4, 4), least).triu(1)
    bias[:, 0] = least  # padded on the left: the first row is hidden whole
    attention_map = FactoredAttentionMap(
        query=torch.randn(1, 1, 4, 4),
        keys=torch.randn(1, 1, 4, 4),
        scale=1.0,
        pattern=everywhere,
        query_offset=0,
        bias=bias[None, None],
    )
    torch.testing.assert_close(attention_map.first_weight(), attention_map.weights()[..., 1])


def test_another_default_device_changes_nothing():
    attention_map = FactoredAttentionMap(
        query=torch.randn(1, 4, 3, 4),
        keys=torch.randn(1, 2, 7, 4),
        scale=1.0,
        pattern=causal,
        query_offset=4,
        bias=torch.randn(1, 1, 3, 7),
    )
    here = attention_map.summary(*NAMES)
    with torch.device("meta"):
        there = attention_map.summary(*NAMES)
        top, mass, pooled = attention_map.topk(2), attention_map.mass([0] * 7), attention_map.pool()
    for name in NAMES:
        assert torch.equal(getattr(there, name), getattr(here, name))
    assert torch.equal(top[0], attention_map.topk(2)[0])
    assert torch.equal(mass, attention_map.mass([0] * 7))
    assert torch.equal(pooled, attention_map.pool())


@given(factored(), st.integers(0, 2**31), st.booleans())
def test_the_mass_of_groups_of_slots(attention_map, seed, by_row):
    generator = torch.Generator().manual_seed(seed)
    batch, _, _, slots = attention_map.shape
    groups = torch.randint(-1, 3, (batch if by_row else 1, slots), generator=generator)
    groups[0, 0] = 2
    weights, _ = weights_of(attention_map)
    member = (groups.unsqueeze(-1) == torch.arange(3)).double()
    found = attention_map.mass(groups if by_row else groups[0].tolist())
    torch.testing.assert_close(found.double(), weights @ member.unsqueeze(1), atol=1e-5, rtol=0)


@given(factored(), st.data(), st.sampled_from(["sum", "mean", "max"]))
def test_any_window_is_pooled_exactly(attention_map, data, how):
    weights, _ = weights_of(attention_map)
    window_, shape = [], []
    for most in attention_map.shape[2:]:
        low = data.draw(st.integers(0, most - 1))
        high = data.draw(st.integers(low + 1, most))
        window_.append((low, high))
        shape.append(data.draw(st.integers(1, high - low)))
    found = attention_map.pool(*window_, tuple(shape), how)
    assert found.shape == (*attention_map.shape[:2], *shape)
    edges = [
        [low + cell * (high - low) // cells for cell in range(cells + 1)]
        for (low, high), cells in zip(window_, shape, strict=True)
    ]
    for r, s in np.ndindex(*shape):
        cell = weights[..., edges[0][r] : edges[0][r + 1], edges[1][s] : edges[1][s + 1]]
        value = {"sum": cell.sum((-1, -2)), "mean": cell.mean((-1, -2)), "max": cell.amax((-1, -2))}
        torch.testing.assert_close(found[..., r, s].double(), value[how], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_long_maps_go_through_many_blocks(pattern):
    torch.manual_seed(0)
    query, keys = torch.randn(2, 1, 2, 700, 8)
    token_mask = torch.arange(700).unsqueeze(0) < 650
    attention_map = FactoredAttentionMap(query, keys, 0.35, pattern, 0, token_mask)
    blocks = list(blocks_of(attention_map, at_once=1 << 14))
    assert len(blocks) > 40
    weights, seen = weights_of(attention_map)
    found = attention_map.summary()
    wanted = expected(weights, seen, 0, attention_map, 0.01)
    for name in (
        "entropy",
        "distance",
        "received",
        "previous_weight",
        "num_visible",
        "normalized_entropy",
    ):
        torch.testing.assert_close(
            getattr(found, name).double(), wanted[name], atol=1e-5, rtol=1e-5
        )


def test_distances_of_near_looks_far_into_a_text_lose_no_digits():
    length = 1 << 17
    query = torch.zeros(1, 1, 1, 2)
    keys = torch.zeros(1, 1, length, 2)
    attention_map = FactoredAttentionMap(query, keys, 1.0, both(causal, window(1)), length - 1)
    assert attention_map.distance().item() == pytest.approx(0.5, abs=1e-6)


def test_a_map_that_is_too_large_to_be_held_says_what_to_ask_instead():
    attention_map = FactoredAttentionMap(
        torch.zeros(1, 1, 20_000, 1), torch.zeros(1, 1, 20_000, 1), 1.0, causal, 0
    )
    with pytest.raises(
        AttlasError, match=r"1 × 1 × 20,000 × 20,000 = 400,000,000; .* ask for `summary`"
    ):
        attention_map.weights()
    small = FactoredAttentionMap(torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1), 1.0, causal, 0)
    with pytest.raises(AttlasError, match="at most 15 weights"):
        small.weights(at_most=15)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.summary("entropie"), "got \\['entropie'\\]"),
        (lambda r: r.count_above(1.5), "a threshold from 0 to 1; got 1.5"),
        (lambda r: r.topk(0), "at least one greatest weight; got 0"),
        (lambda r: r.mass([0, 1]), "a group for each of 5 keys"),
        (lambda r: r.mass(torch.tensor([0.5] * 5)), "a group for each of 5 keys"),
        (lambda r: r.mass([-1] * 5), "at least one group"),
        (lambda r: r.pool(rows=(2, 9)), "window of rows within 0 … 4"),
        (lambda r: r.pool(key_range=(0, 2), shape=(2, 3)), "window of keys"),
        (lambda r: r.pool(how="median"), "'sum', 'mean' or 'max'"),
    ],
)
def test_wrong_questions_say_what_was_wanted(ask, message):
    attention_map = FactoredAttentionMap(
        torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 5, 1), 1.0, everywhere, 0
    )
    with pytest.raises(AttlasError, match=message):
        ask(attention_map)


def test_a_summary_has_what_was_asked_for_and_nothing_else():
    attention_map = FactoredAttentionMap(
        torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1), 1.0, causal, 0
    )
    found = attention_map.summary("entropy", "received")
    assert found.max_weight is None
    torch.testing.assert_close(found.entropy[0, 0], torch.arange(1, 5).log())
    assert attention_map.summary().gini is None
    assert attention_map.summary().count_above is not None


@pytest.mark.parametrize("shape", [(1, 2, 0, 4), (0, 2, 3, 4), (2, 0, 3, 4)])
def test_of_no_queries_every_statistic_has_the_type_that_it_has_of_some(shape):
    none, some = (
        DenseAttentionMap(torch.ones(one) / 3, query_offset=0) for one in (shape, (1, 1, 2, 3))
    )
    empty, full = none.summary(*NAMES), some.summary(*NAMES)
    for name in NAMES:
        found = getattr(empty, name)
        assert found.dtype == getattr(full, name).dtype
        assert found.shape[:2] == shape[:2]
        if name != "received":
            assert found.shape == shape[:3]


@pytest.mark.parametrize("kind", ["factored", "dense"])
@pytest.mark.parametrize("queries", [40, 2500])
def test_statistics_ignore_autocast_and_leave_no_graph(kind, queries):
    """2,500 queries are enough for several threads."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 1, queries, 8, generator=generator)
    keys = torch.randn(1, 1, 2000, 8, generator=generator)
    plain = FactoredAttentionMap(query, keys, 0.5, everywhere, 0)
    traced = FactoredAttentionMap(query.clone().requires_grad_(), keys, 0.5, everywhere, 0)
    if kind == "dense":
        plain, traced = (
            DenseAttentionMap(one.weights(), query_offset=0) for one in (plain, traced)
        )
        assert traced.values.requires_grad
    groups = torch.arange(2000) // 500
    expected = plain.summary(*NAMES), plain.mass(groups), plain.pool(shape=(4, 4))
    with torch.autocast("cpu", torch.bfloat16):
        found = traced.summary(*NAMES), traced.mass(groups), traced.pool(shape=(4, 4))
    for name in NAMES:
        one, other = (getattr(answer[0], name) for answer in (found, expected))
        assert not one.requires_grad
        torch.testing.assert_close(one, other, equal_nan=True, atol=1e-5, rtol=1e-5)
    for one, other in zip(found[1:], expected[1:], strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_a_reading_is_found_among_others():
    attention_maps = [DenseAttentionMap(torch.rand(1, 1, 3, 3)) for _ in range(3)]
    assert attention_maps.index(attention_maps[1]) == 1
    factored = FactoredAttentionMap(
        torch.randn(1, 1, 3, 2), torch.randn(1, 1, 3, 2), 1.0, causal, 0
    )
    assert factored not in attention_maps
    assert len({*attention_maps, factored}) == 4


def test_concentration_does_not_depend_on_what_a_sink_has_taken():
    weights = torch.tensor([[[[0.7, 0.2, 0.1, 0.0]]]])
    whole = DenseAttentionMap(weights).gini()
    torch.testing.assert_close(DenseAttentionMap(weights * 0.1).gini(), whole)


def test_what_is_allowed_for_all_slots_at_once_is_allowed_for_each():
    values = torch.ones(2, 1, 3, 4) / 4
    allowed = torch.ones(2, 1, 3, 1, dtype=torch.bool)
    attention_map = DenseAttentionMap(values, allowed)
    assert attention_map.num_visible().eq(4).all()
    torch.testing.assert_close(attention_map.normalized_entropy(), torch.ones(2, 1, 3))
