import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.faithfulness.erasure import flips, multi_erasure, single_erasure
from attlas.analysis.faithfulness.experiment import AttentionRows, AttentionTarget
from attlas.errors import AttlasError
from support.explained_models import REAL, TEXTS, Pooled, classifier, llama, reported


def model_of(weights, values, token_mask=None):
    weights, values = torch.tensor(weights).double(), torch.tensor(values).double()
    return Pooled(weights.log(), values, token_mask=token_mask)


# Key 0 speaks for label 0, key 1 for label 1, key 2 for nobody.
SPOKEN = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def jensen_shannon(first, second):
    """By the book, for two labels with these logits."""

    def p(logits):
        total = sum(math.exp(logit) for logit in logits)
        return [math.exp(logit) / total for logit in logits]

    def kl(own, other):
        return sum(a * math.log(a / b) for a, b in zip(own, other, strict=True))

    p, q = p(first), p(second)
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (kl(p, middle) + kl(q, middle)) / 2


def test_the_greatest_weight_flips_the_decision_and_the_others_do_not():
    model = model_of([[0.6, 0.3, 0.1]], [SPOKEN])
    found = single_erasure(model, model, seed=0, draws=12)
    assert found.greatest.key.tolist() == [0]
    assert found.greatest.weight.tolist() == pytest.approx([0.6])
    assert found.greatest.flipped.tolist() == [True]
    # Without key 0 the others have 0.75 and 0.25.
    expected = jensen_shannon((0.6, 0.3), (0.0, 0.75))
    assert found.greatest.divergence.tolist() == pytest.approx([expected])
    assert set(found.random.key.flatten().tolist()) == {1, 2}
    assert not found.random.flipped.any()
    after = {1: (6 / 7, 0.0), 2: (2 / 3, 1 / 3)}
    weights = {1: 0.3, 2: 0.1}
    for draw, slot in enumerate(found.random.key[:, 0].tolist()):
        assert float(found.random.weight[draw, 0]) == pytest.approx(weights[slot])
        told_of = jensen_shannon((0.6, 0.3), after[slot])
        assert float(found.random.divergence[draw, 0]) == pytest.approx(told_of)
        assert float(found.gap[draw, 0]) == pytest.approx(expected - told_of)


def test_a_text_of_one_slot_has_no_other_to_erase():
    token_mask = torch.tensor([[True, False, False], [True, True, True]])
    model = model_of([[1 / 3] * 3, [0.2, 0.2, 0.6]], [SPOKEN, SPOKEN], token_mask)
    found = single_erasure(model, model, seed=0)
    assert found.greatest.key.tolist() == [0, 2]
    assert found.random.key[0, 0] == -1
    assert found.random.weight[0, 0] == 0
    assert found.random.divergence[0, 0] == 0
    assert not found.random.flipped[0, 0]
    assert found.random.key[0, 1] in (0, 1)
    # All of the first text is gone: the context is zero, as if nothing had been read.
    expected = jensen_shannon((1.0, 0.0), (0.0, 0.0))
    assert float(found.greatest.divergence[0]) == pytest.approx(expected)


def test_orders_are_reported_apart_by_when_they_flip():
    # The greatest weight is on the key that speaks for nobody.
    model = model_of([[0.25, 0.2, 0.55]], [SPOKEN])
    found = multi_erasure(model, model, seed=0)
    assert found["weight"].count.tolist() == [2]
    assert found["weight"].fraction.tolist() == pytest.approx([2 / 3])
    assert found["gradient"].count.tolist() == [1]
    assert found["weight × gradient"].fraction.tolist() == pytest.approx([1 / 3])
    assert found["random"].count.item() in (0, 1, 2)  # 0: only the key of nobody is left


def test_a_decision_that_nothing_changes_never_flips():
    model = model_of([[0.5, 0.3, 0.2]], [[[2.0, 0.0]] * 3])
    for found in multi_erasure(model, model, seed=0).values():
        assert found.count.tolist() == [0]
        assert found.fraction.isnan().all()


def by_hand(weights, values, order, token_mask):
    """How many keys of this order are gone when the decision flips."""

    def decided(gone):
        kept = [0.0 if slot in gone else weight for slot, weight in enumerate(weights)]
        logits = [
            sum(w * v[label] for w, v in zip(kept, values, strict=True)) / sum(kept)
            for label in range(len(values[0]))
        ]
        return max(range(len(logits)), key=lambda label: logits[label])

    plain = decided(())
    for count in range(1, token_mask):
        if decided(order[:count]) != plain:
            return count
    return 0


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_the_first_flip_is_that_of_erasing_one_by_one(seed, keys):
    torch.manual_seed(seed)
    weights = torch.randn(3, keys).double().softmax(-1)
    values, scores = torch.randn(2, 3, keys, 3).double()
    token_mask = torch.arange(keys) < torch.tensor([[keys], [keys - 1], [1]])
    model = Pooled(weights.log(), values, token_mask=token_mask)
    shown = weights * token_mask / (weights * token_mask).sum(-1, keepdim=True)
    rows = AttentionRows.of(model, model, AttentionTarget())
    found = flips(rows, {"given": scores[:, :, 0], "weight": rows.vector})
    for row in range(3):
        length = int(token_mask[row].sum())
        for name, score in (("given", scores[row, :, 0]), ("weight", shown[row])):
            order = score[:length].argsort(descending=True).tolist()
            expected = by_hand(shown[row].tolist(), values[row].tolist(), order, length)
            assert int(found[name].count[row]) == expected


def test_among_equal_scores_the_first_slot_goes_first():
    model = model_of([[0.3, 0.4, 0.3]], [[[0.0, 1.0], [2.0, 0.0], [0.0, 1.2]]])
    rows = AttentionRows.of(model, model, AttentionTarget())
    found = flips(rows, {"equal": torch.zeros(1, 3), "hidden": torch.full((1, 3), -torch.inf)})
    assert found["equal"].count.tolist() == found["hidden"].count.tolist() == [2]


def test_several_rows_lose_a_slot_together():
    torch.manual_seed(0)
    model = classifier(dropout=0.5).train()
    target = AttentionTarget("encoder.layers.0.self_attention", heads=[0, 1])
    rows = AttentionRows.of(model, lambda: model(TEXTS, REAL), target)
    assert rows.weights.shape == (2, 10, 5)
    requested = torch.cat([REAL, REAL], 1)  # of either head
    of_tokens = (rows.weights * requested[..., None]).sum(1) / requested.sum(1, keepdim=True)
    torch.testing.assert_close(rows.vector, of_tokens)
    gone = torch.tensor([[True, False, True, False, False], [False, True, False, False, False]])
    left = rows.without(gone)
    assert (left.masked_select(gone[:, None] & requested[..., None]) == 0).all()
    torch.testing.assert_close(left.sum(-1), torch.ones(2, 10).double())
    torch.testing.assert_close(rows.output_of(rows.weights), rows.output)
    found = single_erasure(model, lambda: model(TEXTS, REAL), target, seed=0)
    assert found.greatest.key.tolist() == rows.vector.argmax(-1).tolist()
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_slopes_are_finite_differences_of_the_decided_label():
    torch.manual_seed(0)
    model = classifier()
    target = AttentionTarget("encoder.layers.0.self_attention", heads=1, queries=[0, -1])
    rows = AttentionRows.of(model, lambda: model(TEXTS, REAL), target)
    slopes, step = rows.gradients(), 1e-6
    assert slopes.shape == (2, 2, 5)
    for row, slot in ((0, 0), (0, 4), (1, 2)):
        moved = torch.zeros_like(rows.weights)
        moved[:, row, slot] = step
        decided = [
            (rows.output_of(rows.weights + sign * moved) * rows.decision).sum(-1)
            for sign in (1, -1)
        ]
        difference = (decided[0] - decided[1]) / (2 * step)
        torch.testing.assert_close(slopes[:, row, slot], difference, atol=1e-8, rtol=1e-5)


def test_a_language_models_next_token_is_erased_from_its_last_query():
    torch.manual_seed(0)
    model, ids = llama(), torch.randint(0, 31, (2, 5))
    target = AttentionTarget("model.layers.0.self_attn", queries=-1)
    found = multi_erasure(model, lambda: model(ids).logits[:, -1], target, seed=0)
    for order in found.values():
        assert ((order.count >= 0) & (order.count < 5)).all()
        assert torch.equal(order.fraction.isnan(), order.count == 0)
    with pytest.raises(AttlasError, match=r"got shape \(2, 5, 31\); return those of one position"):
        multi_erasure(model, lambda: model(ids).logits, target, seed=0)


def test_the_seed_decides_and_no_draw_is_an_error():
    model = reported(torch.rand(3, 8).softmax(-1))
    first = single_erasure(model, model, seed=5, draws=4).random.key
    assert torch.equal(first, single_erasure(model, model, seed=5, draws=4).random.key)
    assert not torch.equal(first, single_erasure(model, model, seed=6, draws=4).random.key)
    with pytest.raises(AttlasError, match="at least one draw; got 0"):
        single_erasure(model, model, seed=0, draws=0)
