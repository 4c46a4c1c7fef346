"""What is done to scores before their softmax."""

import math

import pytest
import torch
import torch.nn.functional as F

from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, observe
from support.written_attention import HIDDEN, QUERIES, Calling, check, vectors


def through_a_view(scores):
    scores.view(-1, QUERIES, QUERIES).masked_fill_(HIDDEN, -math.inf)
    return scores


def partly_assigned(scores):
    scores[..., 0] = 3.0
    return scores


def bounded_in_place(scores):
    return scores.clamp_(-0.5, 0.5)


@pytest.mark.parametrize("change", [through_a_view, partly_assigned, bounded_in_place])
@pytest.mark.parametrize("inference", [False, True])
def test_scores_that_were_changed_in_their_place_are_not_taken_for_what_they_were(
    change, inference
):
    def written(query, key, value):
        return change(query @ key.mT).softmax(-1) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        expected = change(query @ key.mT).softmax(-1)
        check(written, expected, query, key, value, kind=DenseAttentionMap)


def emptied_query(query, key, mask):
    scores = query @ key.mT + mask
    query.zero_()
    return scores.softmax(-1)


def changed_mask(query, key, mask):
    scores = query @ key.mT + mask
    mask[0, 0] = 5.0
    return scores.softmax(-1)


def emptied_keys_behind_the_softmax(query, key, mask):
    weights = (query @ key.mT + mask).softmax(-1)
    key.zero_()
    return weights


def doubled_by_name(query, key, mask):
    scores = query @ key.mT + mask
    scores.mul_(other=2)
    return scores.softmax(-1)


def written_into_the_query(query, key, mask):
    scores = query @ key.mT + mask
    torch.add(query, 1, out=query)
    return scores.softmax(-1)


@pytest.mark.parametrize(
    "weigh",
    [
        emptied_query,
        changed_mask,
        emptied_keys_behind_the_softmax,
        doubled_by_name,
        written_into_the_query,
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_what_scores_were_made_of_may_change_behind_them(weigh, inference):
    """A model may go on to use the memory of its queries, keys and masks."""

    def written(query, key, value):
        return weigh(query.clone(), key.clone(), torch.zeros(QUERIES, QUERIES)) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        expected = weigh(query.clone(), key.clone(), torch.zeros(QUERIES, QUERIES))
        check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_scores_that_are_capped_are_read_as_factors():
    def capped(query, key, value):
        scores = torch.tanh(query @ key.mT / 2 / 3.0) * 3.0
        return scores.masked_fill(HIDDEN, -math.inf).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = torch.tanh(query @ key.mT / 6.0) * 3.0
    attention_map = check(
        capped, scores.masked_fill(HIDDEN, -math.inf).softmax(-1), query, key, value
    )
    assert attention_map.softcap == 3.0
    assert attention_map.pattern == causal


def folded(scores):
    """As models of 2020 do: heads apart for the mask, and beside the texts for the softmax."""
    apart = scores.unflatten(0, (2, 2)).masked_fill(HIDDEN, -math.inf)
    return apart.view(-1, QUERIES, QUERIES)


def scaled_behind_its_mask(scores):
    """As CodeGen does."""
    hidden = torch.zeros(QUERIES, QUERIES).masked_fill(HIDDEN, -math.inf)
    return (scores + hidden) / 2


def floored(scores):
    """As XGLM does."""
    hidden = torch.zeros(QUERIES, QUERIES).masked_fill(HIDDEN, -math.inf)
    return torch.max(scores + hidden, torch.tensor(torch.finfo(torch.float32).min))


def clamped(scores):
    return scores.masked_fill(HIDDEN, -math.inf).clamp(min=-3e38)


@pytest.mark.parametrize("change", [folded, scaled_behind_its_mask, floored, clamped])
def test_what_models_do_around_a_mask_leaves_scores_factors(change):
    def written(query, key, value):
        return change(query @ key.mT).softmax(-1) @ value

    query, key, value = vectors(4, QUERIES, 4)
    expected = change(query @ key.mT).softmax(-1)[:, None]
    attention_map = check(written, expected, query, key, value)
    assert attention_map.pattern == causal
    assert attention_map.bias is None


def test_a_product_onto_a_bias_of_folded_heads_is_read_with_its_bias():
    """As BLOOM does: linear biases that grow with the key, then heads apart for the mask."""
    slopes = torch.tensor([0.5, 0.25]).repeat(3)[:, None, None]
    alibi = slopes * torch.arange(QUERIES)

    def scores(query, key):
        product = alibi.baddbmm(batch1=query, batch2=key.mT, beta=1.0, alpha=0.5)
        return product.view(3, 2, QUERIES, QUERIES).masked_fill(HIDDEN, -math.inf)

    def written(query, key, value):
        weights = scores(query, key).softmax(-1)
        return torch.bmm(weights.view(6, QUERIES, QUERIES), value)

    query, key, value = vectors(6, QUERIES, 4)
    attention_map = check(written, scores(query, key).softmax(-1), query, key, value)
    assert attention_map.shape == (3, 2, QUERIES, QUERIES)
    assert attention_map.bias is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: (scores + HIDDEN * -math.pi) * -1.0,  # would show what was hidden
        lambda scores: scores.clamp(min=-0.1),
        lambda scores: scores.clamp(-3e38, 0.1),
        lambda scores: torch.maximum(scores, scores.mT),
        lambda scores: scores.mT.reshape(4, QUERIES, QUERIES),
    ],
)
def test_what_else_is_done_to_scores_is_held(change):
    def written(query, key, value):
        return change(query @ key.mT).softmax(-1) @ value

    query, key, value = vectors(4, QUERIES, 4)
    expected = change(query @ key.mT).softmax(-1)[:, None]
    check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_scores_that_are_added_onto_something_in_its_place_are_not_added_twice():
    bias = torch.arange(QUERIES).float()

    def onto(query, key):
        scores = bias.repeat(QUERIES, 1)[None].repeat(len(query), 1, 1)
        scores += query @ key.mT
        return scores.softmax(-1)

    query, key, value = vectors(4, QUERIES, 4)
    expected = onto(query, key)[:, None]
    check(lambda q, k, v: onto(q, k) @ v, expected, query, key, value, kind=DenseAttentionMap)


def test_values_of_pairs_of_places_are_no_second_map():
    """Relative values as of Shaw et al., 2018: weights meet what depends on query and key."""
    pairs = torch.randn(QUERIES, QUERIES, 4)

    def written(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        return torch.einsum("bqk,qkd->bqd", weights, pairs) + weights @ value

    query, key, value = vectors(4, QUERIES, 4)
    check(written, (query @ key.mT).softmax(-1)[:, None], query, key, value)


def test_what_is_capped_after_it_was_masked_is_held():
    def written(query, key, value):
        return (torch.tanh(query @ key.mT + HIDDEN * -2.0) * 3.0).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = torch.tanh(query @ key.mT + HIDDEN * -2.0) * 3.0
    check(written, scores.softmax(-1), query, key, value, kind=DenseAttentionMap)


def through_data(scores):
    scores.data.masked_fill_(HIDDEN, -math.inf)
    return scores


def through_numpy(scores):
    scores.numpy()[..., 0] = 2.0
    return scores


@pytest.mark.parametrize("change", [through_data, through_numpy])
def test_changes_that_torch_does_not_count_are_seen(change):
    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = change(query @ key.mT).softmax(-1)
    check(
        lambda query, key, value: change(query @ key.mT).softmax(-1) @ value,
        expected,
        *(query, key, value),
        kind=DenseAttentionMap,
    )

    def weights_changed(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        weights.data[..., 0] = 0.0
        return weights @ value

    changed = (query @ key.mT).softmax(-1)
    changed[..., 0] = 0.0
    check(weights_changed, changed, query, key, value, kind=DenseAttentionMap)


def test_a_mask_that_was_changed_through_its_data_is_looked_at_again():
    mask = torch.ones(QUERIES, QUERIES, dtype=torch.bool)

    def twice(query, key, value):
        mask.fill_(True)
        first = F.scaled_dot_product_attention(query, key, value, mask)
        mask.data.tril_()
        return first + F.scaled_dot_product_attention(query, key, value, mask)

    model = Calling(twice)
    with observe(model) as trace:
        model(*vectors(2, 2, QUERIES, 4))
    assert [call.pattern for call in trace.calls("")] == [everywhere, causal]


def test_a_number_before_a_soft_cap_counts():
    def written(query, key, value):
        return weights(query, key) @ value

    def weights(query, key):
        return (torch.tanh((query @ key.mT + 3.0) / 5.0) * 5.0).softmax(-1)

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, weights(query, key), query, key, value, kind=DenseAttentionMap)


@pytest.mark.parametrize(
    "again",
    [
        lambda scores: scores.masked_fill(HIDDEN, -1e3) * 0.002,
        lambda scores: scores.masked_fill(HIDDEN, -1e4) + 1e4 * HIDDEN,
    ],
)
def test_hidden_slots_may_come_back(again):
    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = again(query @ key.mT).softmax(-1)
    assert bool((expected[..., HIDDEN] > 0).any())
    check(
        lambda query, key, value: again(query @ key.mT).softmax(-1) @ value,
        expected,
        *(query, key, value),
        kind=DenseAttentionMap,
    )


@pytest.mark.parametrize("bias", [0.0, 3.0])
def test_hidden_slots_stay_so_beside_masks_that_are_added(bias):
    """As models hide twice: the pattern stays one."""
    added = torch.zeros(QUERIES).index_fill(0, torch.tensor([4]), torch.finfo(torch.float32).min)
    lowest = torch.finfo(torch.float32).min
    query, key, value = vectors(2, 2, QUERIES, 4)

    def scores(query, key):
        return (query @ key.mT).masked_fill(HIDDEN, lowest) + added + bias

    check(
        lambda query, key, value: scores(query, key).softmax(-1) @ value,
        scores(query, key).softmax(-1),
        *(query, key, value),
    )


def test_what_is_taken_from_a_tensor_and_left_alone_is_no_change():
    kept = []

    def written(query, key, value):
        weights = (query @ key.mT + 0).softmax(-1)
        kept.append(weights.data)
        return weights @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, (query @ key.mT).softmax(-1), query, key, value)

    def replaced(query, key, value):
        scores = query @ key.mT
        scores.data = scores.data.masked_fill(HIDDEN, -math.inf)
        return scores.softmax(-1) @ value

    expected = (query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
    check(replaced, expected, query, key, value, kind=DenseAttentionMap)


def test_a_mask_may_fill_what_another_has_filled():
    lowest = torch.finfo(torch.float32).min
    padding = torch.arange(QUERIES) == QUERIES - 1

    def scores(query, key):
        return (query @ key.mT).masked_fill(padding, lowest).masked_fill(HIDDEN, lowest)

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(
        lambda query, key, value: scores(query, key).softmax(-1) @ value,
        scores(query, key).softmax(-1),
        *(query, key, value),
    )
