import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.faithfulness.correlation import (
    gradient_correlation,
    kendall_tau,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.faithfulness.experiment import AttentionTarget
from attlas.errors import AttlasError
from support.explained_models import MultiheadPooling, Pooled, classifier, llama, reported


def brute_force(first, second):
    """Every pair looked at: −1, 0 or 1 in each list."""

    def sign(a, b):
        return (a > b) - (a < b)

    pairs = [
        (sign(first[i], first[j]), sign(second[i], second[j]))
        for i in range(len(first))
        for j in range(i)
    ]
    untied = math.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    return sum(a * b for a, b in pairs) / untied if untied else math.nan


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), max_size=40))
def test_tau_is_that_of_every_pair_with_ties(pairs):
    first, second = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = kendall_tau(torch.tensor(first), torch.tensor(second))
    assert found == pytest.approx(brute_force(first, second), nan_ok=True, abs=1e-12)


@given(st.lists(st.tuples(*[st.floats(-1e30, 1e30)] * 2), min_size=2, max_size=30))
def test_tau_is_that_of_every_pair_of_any_numbers(pairs):
    first, second = (torch.tensor([pair[side] for pair in pairs]).double() for side in (0, 1))
    found = kendall_tau(first, second)
    assert found == pytest.approx(
        brute_force(first.tolist(), second.tolist()), nan_ok=True, abs=1e-12
    )
    assert math.isnan(found) or -1 <= found <= 1


def test_tau_of_a_published_example():
    # SciPy's documentation of scipy.stats.kendalltau.
    first, second = torch.tensor([12.0, 2, 1, 12, 2]), torch.tensor([1.0, 4, 7, 1, 0])
    assert kendall_tau(first, second) == pytest.approx(-0.47140452079103173, abs=1e-15)


def test_tau_of_many_numbers_and_of_their_reverse():
    torch.manual_seed(0)
    numbers = torch.randn(200_000, dtype=torch.float64)
    assert kendall_tau(numbers, numbers) == 1.0
    assert kendall_tau(numbers, -numbers) == -1.0
    assert abs(kendall_tau(numbers, torch.randn(200_000))) < 0.01


def test_lists_that_say_no_order_have_no_tau():
    assert math.isnan(kendall_tau(torch.zeros(4), torch.arange(4.0)))
    assert math.isnan(kendall_tau(torch.zeros(1), torch.zeros(1)))
    assert math.isnan(kendall_tau(torch.zeros(0), torch.zeros(0)))
    with pytest.raises(AttlasError, match=r"one length; got shapes \(2,\) and \(3,\)"):
        kendall_tau(torch.zeros(2), torch.zeros(3))
    with pytest.raises(AttlasError, match="numbers that have an order; got NaN"):
        kendall_tau(torch.zeros(2), torch.tensor([0.0, torch.nan]))


def test_leaving_out_a_slot_of_an_output_that_is_the_weights_moves_just_its_weight():
    # The rest grows by w_j in all: ½ (w_j + w_j) = w_j.
    torch.manual_seed(0)
    token_mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    weights = torch.randn(3, 6).double().softmax(-1)
    model = reported(weights, token_mask)
    found = leave_one_out_correlation(model, model)
    shown = weights * token_mask / (weights * token_mask).sum(-1, keepdim=True)
    torch.testing.assert_close(found.weights, shown)
    torch.testing.assert_close(found.importance[:2], shown[:2])
    assert found.tau[:2].tolist() == [1.0, 1.0]
    assert found.tau[2].isnan()  # a single key has no order
    assert torch.equal(found.visible, token_mask)


def test_slopes_by_hand():
    # p = σ(Σ α v): ∂p(ŷ)/∂α_j = p (1 − p) v_j, with the sign of what was decided.
    values = torch.tensor([[3.0, -1.0, 0.5, 2.0], [-3.0, -1.0, 0.5, 2.0]]).double()
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]).double()
    model = Pooled(weights.log(), torch.stack([torch.zeros_like(values), values], -1))
    found = gradient_correlation(model, model)
    p = torch.sigmoid((weights * values).sum(-1, keepdim=True))
    torch.testing.assert_close(found.importance, (p * (1 - p) * values).abs())
    # |v| by weight: 3, 1, ½, 2 has 4 pairs in order and 2 not; ½ before 1 and so on likewise.
    expected = [
        brute_force(w, v) for w, v in zip(weights.tolist(), values.abs().tolist(), strict=True)
    ]
    assert found.tau.tolist() == pytest.approx(expected)
    assert expected == pytest.approx([1 / 3, -1 / 3])
    product = product_correlation(model, model)
    torch.testing.assert_close(product.importance, (p * (1 - p) * values * weights).abs())


def test_what_the_weights_lose_to_first_order_is_what_leaving_them_out_loses():
    # Of values that are small, so that the output is all but linear in the weights.
    torch.manual_seed(0)
    weights, values = torch.rand(3, 7).double().softmax(-1), 1e-4 * torch.randn(3, 7, 2).double()
    values = values - (weights[..., None] * values).sum(1, keepdim=True)  # their mean is zero
    model = Pooled(weights.log(), values)
    product, left_out = product_correlation(model, model), leave_one_out_correlation(model, model)
    # Renormalising divides by 1 − α_j.
    torch.testing.assert_close(
        product.importance / (1 - weights), left_out.importance, rtol=1e-2, atol=1e-9
    )


@pytest.mark.parametrize(
    "correlation", [gradient_correlation, product_correlation, leave_one_out_correlation]
)
def test_models_of_every_making_can_be_asked(correlation):
    torch.manual_seed(0)
    pooling, source = MultiheadPooling(dropout=0.5).train(), torch.randn(2, 5, 8).double()
    found = correlation(pooling, lambda: pooling(source))
    assert pooling.training
    assert found.importance.shape == (2, 5)
    assert not found.importance.requires_grad
    expected = [
        brute_force(w, d)
        for w, d in zip(found.weights.tolist(), found.importance.tolist(), strict=True)
    ]
    assert found.tau.tolist() == pytest.approx(expected)
    model, ids = llama(), torch.randint(0, 31, (1, 4))
    causal = correlation(
        model,
        lambda: model(ids).logits[:, 1],
        AttentionTarget("model.layers.1.self_attn", queries=1),
    )
    assert causal.visible.tolist() == [[True, True, False, False]]
    assert (causal.importance[:, 2:] == 0).all()


def test_attentive_pooling_of_our_own_classifier_is_found_by_its_name():
    torch.manual_seed(0)
    model = classifier(pooling="attentive", layers=1)
    texts = torch.randint(4, 11, (2, 6))
    found = leave_one_out_correlation(
        model, lambda: model(texts), AttentionTarget("pooling.attention")
    )
    assert found.importance.min() > 0
    with pytest.raises(AttlasError, match=r"one of the layers .*pooling.attention.*got none"):
        leave_one_out_correlation(model, lambda: model(texts))


def test_slopes_are_taken_in_inference_mode_too():
    values = torch.tensor([[3.0, -1.0, 0.5, 2.0]]).double()
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).double()
    model = Pooled(weights.log(), torch.stack([torch.zeros_like(values), values], -1))
    expected = gradient_correlation(model, model)
    with torch.inference_mode():
        found = gradient_correlation(model, model)
    torch.testing.assert_close(found.importance, expected.importance)
