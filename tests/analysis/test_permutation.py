import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.analysis.faithfulness.experiment import distribution, jensen_shannon, total_variation
from attlas.analysis.faithfulness.permutation import permutation_distance
from attlas.errors import AttlasError
from support.explained_models import (
    REAL,
    TEXTS,
    MultiheadPooling,
    Pooled,
    bert,
    classifier,
    llama,
    reported,
)


def test_two_slots_are_swapped_or_not():
    model = reported([[0.8, 0.2], [0.5, 0.5]])
    found = permutation_distance(model, model, seed=0, draws=40)
    swapped = found.distances[:, 0] > 0.3
    assert 0 < swapped.sum() < 40
    torch.testing.assert_close(found.distances[:, 0], swapped * torch.tensor(0.6).double())
    assert found.distances[:, 1].abs().max() < 1e-12
    assert found.distances.shape == (40, 2)
    halves = float(swapped.double().mean())
    assert float(found.median[0]) == pytest.approx(
        0.6 if halves > 0.5 else 0.0 if halves < 0.5 else 0.3
    )


@given(st.integers(0, 2**31), st.integers(2, 4))
def test_every_draw_is_the_distance_of_some_permutation(seed, keys):
    torch.manual_seed(seed)
    model = reported(torch.randn(3, keys).double().softmax(-1))
    weights = distribution(model())
    found = permutation_distance(model, model, seed=seed, draws=5).distances
    possible = torch.stack(
        [
            total_variation(weights, weights[:, list(order)])
            for order in itertools.permutations(range(keys))
        ]
    )
    nearest = (found[:, None] - possible[None]).abs().amin(1)
    assert nearest.max() < 1e-9


def test_all_orders_come_up_and_the_median_is_theirs():
    weights = torch.tensor([[0.7, 0.2, 0.1]]).double()
    model = reported(weights)
    found = permutation_distance(model, model, seed=1, draws=80)
    exact = torch.tensor(
        [
            float(total_variation(weights, weights[:, list(order)]))
            for order in itertools.permutations(range(3))
        ]
    )
    assert found.distances.unique().numel() >= exact.round(decimals=6).unique().numel()
    assert float(found.distances.mean()) == pytest.approx(float(exact.mean()), abs=0.1)
    assert float(found.median) == pytest.approx(float(found.distances.quantile(0.5)))


def test_where_all_slots_hold_the_same_no_order_matters():
    values = torch.randn(2, 1, 3).expand(2, 5, 3)
    model = Pooled(torch.randn(2, 5), values)
    assert permutation_distance(model, model, seed=0, draws=9).distances.max() < 1e-6


def test_padding_gets_no_weight_in_any_draw():
    token_mask = torch.tensor([[True, True, False]])
    model = reported([[0.6, 0.3, 0.1]], token_mask)
    found = permutation_distance(model, model, seed=0, draws=20).distances
    swapped = found > 0.1
    torch.testing.assert_close(found, swapped * torch.tensor(1 / 3).double())


def test_the_seed_decides():
    model = reported(torch.rand(2, 6).softmax(-1))
    first = permutation_distance(model, model, seed=3, draws=4).distances
    assert torch.equal(first, permutation_distance(model, model, seed=3, draws=4).distances)
    assert not torch.equal(first, permutation_distance(model, model, seed=4, draws=4).distances)


def test_dropout_sleeps_and_every_flag_is_as_it_was():
    torch.manual_seed(0)
    model = classifier(dropout=0.5, attention_dropout=0.5)
    model.train()
    model.encoder.layers[0].eval()
    before = [module.training for module in model.modules()]
    found = permutation_distance(model, lambda: model(TEXTS, REAL), seed=0, draws=3)
    assert [module.training for module in model.modules()] == before
    assert True in before
    assert False in before
    model.eval()
    again = permutation_distance(model, lambda: model(TEXTS, REAL), seed=0, draws=3)
    assert torch.equal(found.distances, again.distances)
    assert not found.distances.requires_grad
    model.train()
    with pytest.raises(ZeroDivisionError):
        permutation_distance(model, lambda: 1 / 0, seed=0)
    assert all(module.training for module in model.modules())


def test_a_call_that_is_not_the_same_each_time_is_refused():
    model = MultiheadPooling(dropout=0.5)
    source, head = torch.randn(2, 4, 8).double(), nn.Dropout(0.5)
    with pytest.raises(AttlasError, match="the same output each time; got two outputs"):
        permutation_distance(model, lambda: head(20 * model(source)), seed=0)
    with pytest.raises(AttlasError, match="leaves the model in eval mode"):
        permutation_distance(model, lambda: model.train()(source), seed=0)


def test_layers_and_heads_can_be_chosen():
    torch.manual_seed(0)
    model = classifier()
    path = "encoder.layers.0.self_attention"
    with torch.no_grad():
        # head 1 of the first layer reads nothing that anybody uses
        model.encoder.layers[0].self_attention.v_proj.weight[4:] = 0.0
        model.encoder.layers[0].self_attention.v_proj.bias[4:] = 0.0

    def run(**chosen):
        return permutation_distance(
            model, lambda: model(TEXTS, REAL), seed=0, draws=3, **chosen
        ).distances

    assert run(layers=path, heads=1).max() < 1e-9
    assert run(layers=path, heads=0).min() > 1e-6
    assert run(layers="encoder.*.1.*").min() > 1e-6
    with pytest.raises(AttlasError, match=r"layers among those that were called.*layers=..decoder"):
        run(layers="decoder.*")
    with pytest.raises(AttlasError, match=r"heads from 0 to 1 in layer .*got \[2\]"):
        run(heads=[0, 2])


def test_a_causal_models_first_position_sees_itself_alone_in_every_draw():
    torch.manual_seed(0)
    model, ids = llama(), torch.randint(0, 31, (2, 7))
    found = permutation_distance(model, lambda: model(ids).logits, seed=0, draws=4)
    assert found.distances.shape == (4, 2, 7)
    assert found.distances[:, :, 0].max() < 1e-9
    assert found.median[:, 2:].min() > 0


def test_encoders_of_hugging_face_and_multihead_attention_are_permuted_alike():
    torch.manual_seed(0)
    model, ids = bert(), torch.randint(1, 31, (2, 6))
    found = permutation_distance(model, lambda: model(ids).last_hidden_state[:, 0], seed=0, draws=3)
    assert found.distances.min() > 0
    pooling, source = MultiheadPooling(), torch.randn(2, 5, 8).double()
    padding = torch.tensor([[False] * 5, [False] + [True] * 4])
    distances = permutation_distance(
        pooling, lambda: pooling(source, padding), seed=0, draws=5
    ).distances
    assert distances[:, 0].max() > 0
    assert distances[:, 1].max() < 1e-12  # one key has one order


@pytest.mark.parametrize(
    ("result", "told_of"),
    [
        ([1.0, 2.0], "got a list"),
        (torch.ones(2, 3, dtype=torch.long), r"got torch.int64 of shape \(2, 3\)"),
        (torch.ones(2, 1), r"at least two labels; got shape \(2, 1\)"),
        (torch.full((2, 3), torch.nan), "logits that are numbers"),
    ],
)
def test_what_are_no_logits_is_reported(result, told_of):
    model = reported([[0.5, 0.5]])

    def call():
        model()
        return result

    with pytest.raises(AttlasError, match=told_of):
        permutation_distance(model, call, seed=0)


def test_no_draws_are_an_error():
    model = reported([[0.5, 0.5]])
    with pytest.raises(AttlasError, match="at least one draw; got 0"):
        permutation_distance(model, model, seed=0, draws=0)


def test_distances_of_distributions_by_hand():
    first, second = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 0.5])
    assert float(total_variation(first, second)) == pytest.approx(0.5)
    # m = (¼, ½, ¼): KL = ½ ln 2 each way
    assert float(jensen_shannon(first, second)) == pytest.approx(0.5 * 0.6931472)
    apart = torch.tensor([[1.0, 0.0], [0.3, 0.7]]), torch.tensor([[0.0, 1.0], [0.3, 0.7]])
    torch.testing.assert_close(jensen_shannon(*apart), torch.tensor([0.6931472, 0.0]))
    with pytest.raises(AttlasError, match=r"one shape, \(3,\); got shape \(2, 2\)"):
        total_variation(first, apart[0])


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_jensen_shannon_is_symmetric_and_at_most_ln_2_times_total_variation(seed, labels):
    torch.manual_seed(seed)
    first, second = (5 * torch.randn(2, 4, labels).double()).softmax(-1)
    apart = jensen_shannon(first, second)
    torch.testing.assert_close(apart, jensen_shannon(second, first))
    assert (apart >= 0).all()
    assert (apart <= torch.log(torch.tensor(2.0)) * total_variation(first, second) + 1e-12).all()
