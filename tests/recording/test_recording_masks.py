"""Masks: however a model hides a slot, what is read is what was computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right
from written import HIDDEN, QUERIES, Calling, check, vectors

from attlas.patterns import causal
from attlas.recording import DenseReading, intervene, observe, uniform


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

    reading = check(called if fused else written, expected, query, key, value)
    for row in range(batch):
        torch.testing.assert_close(reading.at(row).entropy(), reading.entropy()[row : row + 1])


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
        reading = check(written, expected, query, key, value)
        assert reading.pattern == causal
        assert reading.bias is None
        assert reading.visible()[0, 0].tolist() == [1, 2, 3, 4, 5]


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
    reading = check(called if fused else written, expected, query, key, value)
    assert reading.pattern == causal
    assert reading.bias is None


def test_a_low_number_beside_a_bias_hides_too():
    query, key, value = vectors(2, 2, QUERIES, 4)
    added = vectors(1, 2, QUERIES, QUERIES, count=1)[0] + HIDDEN * -1e9

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

    reading = check(called, (query @ key.mT / 2 + added).softmax(-1), query, key, value)
    assert torch.equal(reading.seen(0, QUERIES)[0, 0], ~HIDDEN)


def test_a_held_map_knows_what_was_hidden_so_that_nobody_looks_there():
    def bent(query, key, value):
        scores = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf)
        return scores.softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
    reading = check(bent, expected, query, key, value, kind=DenseReading)
    assert reading.visible()[0, 0].tolist() == [1, 2, 3, 4, 5]
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
