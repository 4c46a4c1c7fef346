"""Masks: however a model hides a key, what is read is what was computed."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, intervene, observe, uniform
from support.written_attention import HIDDEN, QUERIES, Calling, check, vectors


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float", "bool"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_mask_of_three_axes_beside_four_is_one_of_heads(batch, kind, fused):
    query, key, value = vectors(batch, 2, QUERIES, 4)
    mask = vectors(2, QUERIES, QUERIES, count=1)[0]
    if kind == "bool":
        mask = (mask > 0) | torch.eye(QUERIES, dtype=torch.bool)
    added = mask if kind == "float" else torch.zeros(()).masked_fill(~mask, -math.inf)
    expected = (query @ key.mT / 2 + added).softmax(-1)

    def written(query, key, value):
        scores = query @ key.mT / 2
        scores = scores + mask if kind == "float" else scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ value

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    attention_map = check(called if fused else written, expected, query, key, value)
    for row in range(batch):
        torch.testing.assert_close(
            attention_map.at(row).entropy(), attention_map.entropy()[row : row + 1]
        )


def assigned(scores):
    scores[HIDDEN.expand_as(scores)] = -math.inf
    return scores


def subtracted(scores):
    return scores - HIDDEN * 1e9


def subtracted_in_place(scores):
    scores -= HIDDEN * 1e9
    return scores


def added_whole_numbers(scores):
    return scores + HIDDEN.long() * -10_000


def filled_by_name(scores):
    return scores.masked_fill(mask=HIDDEN, value=-math.inf)


def filled_in_place_by_name(scores):
    return scores.masked_fill_(mask=HIDDEN, value=-math.inf)


KNOWN = (assigned, subtracted, subtracted_in_place, added_whole_numbers, filled_by_name)


@pytest.mark.parametrize("hide", [*KNOWN, filled_in_place_by_name])
@pytest.mark.parametrize("inference", [False, True])
def test_however_it_is_hidden_the_future_is_hidden(hide, inference):
    def written(query, key, value):
        return hide(query @ key.mT).softmax(-1) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        expected = (query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
        attention_map = check(written, expected, query, key, value)
        assert attention_map.pattern == causal
        assert attention_map.bias is None
        assert attention_map.num_visible()[0, 0].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("number", [-1e4, -1e9, -65504.0, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("fused", [False, True])
def test_a_low_number_hides_as_infinity_does(number, fused):
    added = HIDDEN * number

    def written(query, key, value):
        return (query @ key.mT / 2 + added).softmax(-1) @ value

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = (query @ key.mT / 2).masked_fill(HIDDEN, -math.inf).softmax(-1)
    attention_map = check(called if fused else written, expected, query, key, value)
    assert attention_map.pattern == causal
    assert attention_map.bias is None


def test_a_low_number_beside_a_bias_hides_too():
    query, key, value = vectors(2, 2, QUERIES, 4)
    added = vectors(1, 2, QUERIES, QUERIES, count=1)[0] + HIDDEN * -1e9

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

    attention_map = check(called, (query @ key.mT / 2 + added).softmax(-1), query, key, value)
    assert torch.equal(attention_map.allowed_rows(0, QUERIES)[0, 0], ~HIDDEN)


def test_a_held_map_knows_what_was_hidden_so_that_nobody_looks_there():
    def bent(query, key, value):
        scores = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf)
        return scores.softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
    attention_map = check(bent, expected, query, key, value, kind=DenseAttentionMap)
    assert attention_map.num_visible()[0, 0].tolist() == [1, 2, 3, 4, 5]
    model = Calling(bent)
    with intervene(model, uniform):
        found = model(query, key, value)
    means = value.cumsum(-2) / torch.arange(1, QUERIES + 1).unsqueeze(-1)
    torch.testing.assert_close(found, means)


def test_a_mask_that_is_the_same_for_all_heads_is_kept_once():
    query, key, value = vectors(2, 3, QUERIES, 4)
    mask = vectors(2, 1, QUERIES, QUERIES, count=1)[0]
    with torch.inference_mode():
        model = Calling(F.scaled_dot_product_attention)
        with observe(model) as trace:
            model(query, key, value, mask.clone().expand(2, 3, -1, -1))
    assert trace[""].bias.shape == (2, 1, QUERIES, QUERIES)
    torch.testing.assert_close(trace[""].weights(), (query @ key.mT / 2 + mask).softmax(-1))


def test_the_mask_that_torch_calls_causal_is_read():
    query, key, value = vectors(1, 2, QUERIES, 4)
    query = query[:, :, -3:]

    def called(query, key, value):
        mask = causal_lower_right(3, QUERIES)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    expected = (query @ key.mT / 2).masked_fill(HIDDEN[-3:], -math.inf).softmax(-1)
    model = Calling(called)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    torch.testing.assert_close(trace[""].weights(), expected)
    assert trace[""].pattern == causal


SHAPES = [(5, 5), (7, 3), (3, 7), (1, 6), (6, 1)]


@pytest.mark.parametrize(("queries", "slots"), SHAPES)
@pytest.mark.parametrize("corner", ["is_causal", "upper left", "lower right"])
@pytest.mark.parametrize("batch", [1, 2])
def test_what_torch_calls_causal_is_causal_from_either_corner(queries, slots, corner, batch):
    query, key = vectors(batch, 2, queries, 4, count=1)[0], vectors(batch, 2, slots, 4, count=1)[0]
    first = slots - queries if corner == "lower right" else 0

    def called(query, key):
        if corner == "is_causal":
            return F.scaled_dot_product_attention(query, key, key, is_causal=True)
        make = causal_upper_left if corner == "upper left" else causal_lower_right
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # more queries than keys: some see nothing
            mask = make(queries, slots)
        return F.scaled_dot_product_attention(query, key, key, attn_mask=mask)

    hidden = torch.ones(queries, slots, dtype=torch.bool).triu(1 + first)
    expected = (query @ key.mT / 2).masked_fill(hidden, -math.inf).softmax(-1).nan_to_num()
    attention_map = check(called, expected, query, key)
    assert attention_map.causal
    assert attention_map.position == first
    assert attention_map.num_visible()[0, 0].tolist() == (~hidden).sum(-1).tolist()


@pytest.mark.parametrize("queries", [3, 5, 7])
@pytest.mark.parametrize("kind", ["bias", "padding", "causal"])
def test_a_mask_beside_is_causal_hides_what_that_leaves(queries, kind):
    """torch's fused kernels on a CPU take both, though its documentation does not allow it."""
    query, key = vectors(2, 2, queries, 4, count=1)[0], vectors(2, 2, 5, 4, count=1)[0]
    mask = {
        "bias": torch.randn(queries, 5),
        "padding": (torch.arange(5) < 3).expand(queries, -1),
        "causal": torch.ones(queries, 5, dtype=torch.bool).tril(5 - queries),
    }[kind]
    mask = mask | torch.eye(queries, 5, dtype=torch.bool) if kind == "causal" else mask

    def called(query, key):
        return F.scaled_dot_product_attention(query, key, key, attn_mask=mask, is_causal=True)

    added = mask if kind == "bias" else torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    hidden = torch.ones(queries, 5, dtype=torch.bool).triu(1)
    expected = (query @ key.mT / 2 + added).masked_fill(hidden, -math.inf).softmax(-1)
    if not expected.isnan().any():
        assert check(called, expected, query, key).causal


def whole(*shape, size, seed):
    """Whole numbers: products of these, and their sums, are exact in every precision."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).float() * size


def hiding(kind, number, batch, queries, slots, seed):
    """A mask of zeros and a finite number, or of several of them."""
    generator = torch.Generator().manual_seed(seed)
    later = torch.ones(queries, slots).triu(1 + max(slots - queries, 0))
    lengths = torch.randint(1, slots + 1, (batch, 1, 1, 1), generator=generator)
    padding = (torch.arange(slots) >= lengths).float()
    near = -0.5 * (torch.arange(queries)[:, None] + max(slots - queries, 0) - torch.arange(slots))
    made = {
        "causal": later,
        "padding": padding,
        "both": (later + padding).clamp(max=1),
        "random": torch.rand(batch, 1, queries, slots, generator=generator).round(),
    }
    if kind == "sum":
        return later * number + padding * number
    if kind == "alibi":
        return near.clamp(max=0) + later * number
    if kind == "one for each head":
        return torch.stack((later * number, later * number / 4)).unsqueeze(0)
    return made[kind] * number


KINDS = ["causal", "padding", "both", "random", "sum", "alibi", "one for each head"]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.sampled_from([-1e2, -1e3, -1e4, -1e5, -1e9, torch.finfo(torch.float32).min]),
    st.sampled_from([1.0, 8.0, 64.0, 1024.0]),
    st.sampled_from([(2, 5, 5), (1, 3, 6), (2, 1, 4), (1, 6, 3)]),
    st.sampled_from(["fused", "added", "filled", "capped"]),
)
def test_a_finite_number_hides_only_where_no_scores_make_up_for_it(
    seed, kind, number, size, shape, way
):
    batch, queries, slots = shape
    query = whole(batch, 2, queries, 4, size=size, seed=seed)
    key = whole(batch, 2, slots, 4, size=1, seed=seed + 1)
    mask = hiding(kind, number, batch, queries, slots, seed)
    assume(not (mask == torch.finfo(torch.float32).min).all(-1).any())  # is read as seeing nothing
    assume(not mask.isinf().any() or not mask.isinf().all(-1).any())

    def called(query, key):
        if way == "fused":
            return F.scaled_dot_product_attention(query, key, key, attn_mask=mask, scale=1.0)
        return weights(query, key) @ key

    def weights(query, key):
        scores = query @ key.mT
        if way == "capped":
            scores = torch.tanh(scores / 2048) * 2048
        if way == "filled" and kind not in ("sum", "alibi", "one for each head"):
            return scores.masked_fill(mask < 0, number).softmax(-1)
        return (scores + mask).softmax(-1)

    expected = weights(query, key)
    assume(not ((expected > 0) & (expected < 1e-30)).any())
    model = Calling(called)
    with observe(model) as trace:
        model(query, key)
    attention_map = trace[""]
    torch.testing.assert_close(attention_map.weights(), expected, atol=1e-5, rtol=1e-4)
    assert bool(
        (attention_map.allowed_rows(0, queries) | (expected == 0)).all()
    )  # what is looked at is seen
    if queries <= slots and attention_map.position is not None:
        later = expected.triu(1 + attention_map.position)
        assert trace.causal("") is not bool(later.any())


@pytest.mark.parametrize("number", [-1e4, -6e4, -65504.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [1.0, 128.0])
def test_a_number_of_half_precision_hides_small_scores_and_not_large_ones(number, dtype, size):
    query = (whole(2, 2, 5, 4, size=size, seed=1)).to(dtype)
    key = whole(2, 2, 5, 4, size=64.0 if size > 1 else 1.0, seed=2).to(dtype)
    mask = (HIDDEN * number).to(dtype)

    def called(query, key):
        return F.scaled_dot_product_attention(query, key, key, attn_mask=mask, scale=1.0)

    model = Calling(called)
    with observe(model) as trace:
        model(query, key)
    expected = (query.float() @ key.float().mT + mask.float()).softmax(-1)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-5, rtol=1e-4)
    assert (trace[""].bias is None) is (size == 1.0)
    assert trace.causal("") is (size == 1.0)


@pytest.mark.parametrize("size", [1.0, 1e4])
@pytest.mark.parametrize("fused", [False, True])
def test_a_mask_is_compared_with_scores_that_have_gradients_and_leaves_them_as_they_are(
    size, fused
):
    query, key, value = (one.requires_grad_() for one in vectors(2, 2, QUERIES, 4))

    def called(query, key, value):
        if fused:
            mask = HIDDEN * -1e4
            return F.scaled_dot_product_attention(query * size, key, value, attn_mask=mask)
        return (query * size @ key.mT / 2 + HIDDEN * -1e4).softmax(-1) @ value

    model = Calling(called)
    plain = torch.autograd.grad(model(query, key, value).sum(), (query, key, value))
    with observe(model) as trace:
        found = model(query, key, value)
    for one, other in zip(
        plain, torch.autograd.grad(found.sum(), (query, key, value)), strict=True
    ):
        assert torch.equal(one, other)
    assert trace[""].causal is (size == 1.0)
    assert not trace[""].weights().requires_grad


@pytest.mark.parametrize("number", [-1e3, -1e4, -1e9])
@pytest.mark.parametrize("fused", [False, True])
def test_what_no_score_makes_up_for_costs_no_memory_of_pairs(number, fused):
    query, key, value = vectors(2, 2, 64, 8)
    mask = torch.full((64, 64), number).triu(1)

    def called(query, key, value):
        if fused:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return (query @ key.mT / 8**0.5 + mask).softmax(-1) @ value

    model = Calling(called)
    with observe(model) as trace:
        model(query, key, value)
    assert (trace[""].pattern, trace[""].bias) == (causal, None)


def test_one_mask_is_read_for_each_layer_by_the_scores_of_that_layer():
    query, key, value = vectors(2, 2, QUERIES, 4)
    mask = HIDDEN * -1e4

    def called(query, key, value):
        for size in (1, 1e4, 1):
            F.scaled_dot_product_attention(query * size, key, value, attn_mask=mask)
        return value

    model = Calling(called)
    with observe(model) as trace:
        model(query, key, value)
    assert [one.bias is None for one in trace.calls("")] == [True, False, True]
    assert [one.causal for one in trace.calls("")] == [True, False, True]
    for size, attention_map in zip((1, 1e4, 1), trace.calls(""), strict=True):
        expected = (query * size @ key.mT / 2 + mask).softmax(-1)
        torch.testing.assert_close(attention_map.weights(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_are_hidden_whole_count_for_nothing_though_the_least_number_was_scaled(dtype):
    mask = torch.full((1, 1, 5, 5), torch.finfo(dtype).min).triu(1)
    mask[..., :2, :] = torch.finfo(dtype).min  # padding on the left, which sees nothing of its own
    query, keys = torch.randn(2, 1, 2, 5, 8)
    bias = (mask / 8**0.5).to(dtype)
    attention_map = FactoredAttentionMap(query, keys, 1.0, everywhere, 0, None, bias)
    assert attention_map.causal
    right = (query @ keys.mT + bias).softmax(-1)
    torch.testing.assert_close(attention_map.weights(), right, atol=1e-6, rtol=0)
