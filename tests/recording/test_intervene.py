import pytest
import torch
import torch.nn.functional as F
from jaxtyping import config
from torch import nn

from attlas.errors import AttlasError
from attlas.layers import DotAttention, MultiheadAttention
from attlas.patterns import causal
from attlas.recording import intervene, observe, permuted, uniform, without
from support.written_attention import QUERIES, Calling, vectors


@pytest.fixture
def attention():
    torch.manual_seed(0)
    return MultiheadAttention(8, 4, pattern=causal)


def test_the_weights_that_are_put_back_unchanged_change_nothing(attention):
    source = torch.randn(2, 6, 8)
    memory = attention.project_kv(source)
    with intervene(attention, lambda weights, seen, layer: weights):
        explicit = attention.attend(source, memory)
    torch.testing.assert_close(explicit, attention.attend(source, memory))


def test_uniform_reads_the_mean_of_the_seen_slots():
    dot = DotAttention()
    source, token_mask = (
        torch.randn(2, 5, 3),
        torch.tensor([[True] * 5, [True, True, False, True, False]]),
    )
    with intervene(dot, uniform):
        context = dot.attend(source, dot.project_kv(source, token_mask))
    torch.testing.assert_close(context[0], source[0].mean(0).expand(5, 3))
    torch.testing.assert_close(context[1], source[1, [0, 1, 3]].mean(0).expand(5, 3))


def test_permuted_shuffles_each_querys_weights_among_the_slots_it_sees(attention):
    source = torch.randn(2, 12, 8)
    memory = attention.project_kv(
        source, torch.arange(12).expand(2, 12) < torch.tensor([[12], [9]])
    )
    before, after = [], []

    def shuffled(weights, seen, layer):
        before.append(weights)
        after.append(permuted(3)(weights, seen, layer))
        return after[0]

    with intervene(attention, shuffled):
        attention.attend(source, memory)
    torch.testing.assert_close(after[0].sort(-1).values, before[0].sort(-1).values)
    hidden = ~attention.allowed(12, memory, None)
    assert (after[0].masked_select(hidden) == 0).all()
    assert not torch.equal(after[0], before[0])
    seen = attention.allowed(12, memory, None)
    assert torch.equal(permuted(3)(before[0], seen, ""), after[0])
    with torch.device("meta"):  # whatever the default device is
        assert torch.equal(permuted(3)(before[0], seen, ""), after[0])
    assert not torch.equal(permuted(4)(before[0], seen, ""), after[0])


def test_without_takes_the_named_heads_away(attention):
    source = torch.randn(1, 5, 8)
    memory = attention.project_kv(source)
    with intervene(attention, without(0, 1, 2, 3)):
        nothing = attention.attend(source, memory)
    torch.testing.assert_close(nothing, attention.out_proj.bias.expand_as(nothing))
    with intervene(attention, without(1)):
        less = attention.attend(source, memory)
    with torch.no_grad():
        attention.v_proj.weight[2:4] = 0.0  # the values of head 1
    torch.testing.assert_close(less, attention.attend(source, attention.project_kv(source)))


def test_a_head_that_does_not_exist_is_named(attention):
    source = torch.randn(1, 5, 8)
    with (
        pytest.raises(AttlasError, match=r"heads from 0 to 3 in layer ''; got \[4\]"),
        intervene(attention, without(4)),
    ):
        attention.attend(source, attention.project_kv(source))


@pytest.mark.parametrize("heads", [("0",), ([0, 1],), (True,), (0.0,), (0, None)])
def test_heads_that_are_no_numbers_are_refused_before_a_model_runs(heads):
    config.update("jaxtyping_disable", True)  # whose own error would come first
    with pytest.raises(AttlasError, match=r"whole numbers; got without\(.*such as without\(0, 3\)"):
        without(*heads)


def test_weights_of_another_shape_are_refused(attention):
    source = torch.randn(1, 5, 8)
    with (
        pytest.raises(AttlasError, match=r"new weights of shape \(1, 4, 5, 5\)"),
        intervene(attention, lambda weights, seen, layer: weights[:, :1]),
    ):
        attention.attend(source, attention.project_kv(source))


@pytest.mark.parametrize("change", ["uniform", torch.ones(2, 2), None])
def test_what_is_no_function_is_reported_before_a_model_runs(attention, change):
    config.update("jaxtyping_disable", True)  # whose own error would come first
    with (
        pytest.raises(AttlasError, match=r"expected a function of .*; got .*; pass such as"),
        intervene(attention, change),
    ):
        raise AssertionError("the block began")


def test_a_model_without_attention_cannot_be_intervened_on():
    with (
        pytest.raises(AttlasError, match="none of Linear"),
        intervene(nn.Linear(2, 2), uniform),
    ):
        pass


def test_interventions_follow_each_other_and_end_with_their_blocks(attention):
    source = torch.randn(1, 5, 8)
    memory = attention.project_kv(source)
    plain, order = attention.attend(source, memory), []

    def named(name):
        def change(weights, seen, layer):
            order.append(name)
            return weights

        return change

    with intervene(attention, named("first")), intervene(attention, named("second")):
        attention.attend(source, memory)
    assert order == ["first", "second"]
    assert torch.equal(attention.attend(source, memory), plain)
    assert order == ["first", "second"]


def test_an_observer_hears_the_layers_own_weights_beside_an_intervention():
    dot = DotAttention()
    source = torch.randn(1, 4, 3)
    memory = dot.project_kv(source)
    with observe(dot) as trace, intervene(dot, uniform):
        dot.attend(source, memory)
    torch.testing.assert_close(trace[""].weights(), dot.attention_weights(source, memory))


def test_a_change_that_returns_nothing_is_reported():
    query, key, value = vectors(1, 2, QUERIES, 4)
    model = Calling(F.scaled_dot_product_attention)
    with (
        pytest.raises(AttlasError, match="return them from the function"),
        intervene(model, lambda weights, seen, layer: None),
    ):
        model(query, key, value)


@pytest.mark.parametrize(
    "attention", [DotAttention(), MultiheadAttention(4, 2)], ids=["dot", "multi-head"]
)
def test_a_change_that_writes_into_the_weights_leaves_what_is_observed(attention):
    def first_gone(weights, seen, layer):
        weights[..., 0] = 0.0
        return weights

    source = torch.randn(2, 5, 4)
    with torch.no_grad():
        memory = attention.project_kv(source)
        expected, plain = (
            attention.attention_weights(source, memory),
            attention.attend(source, memory),
        )
        with observe(attention) as trace, intervene(attention, first_gone):
            assert not torch.allclose(attention.attend(source, memory), plain)
    torch.testing.assert_close(trace[next(iter(trace))].weights(), expected)


class Called(torch.nn.Module):
    def forward(self, query, key, value):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_new_weights_that_are_no_numbers_are_refused_with_the_layer(number):
    model, given = Called(), torch.randn(3, 1, 2, 5, 8)

    def broken(weights, seen, layer):
        weights = weights.clone()
        weights[0, 1, 2, 3] = number
        return weights

    reported = r"that are numbers for layer ''; got NaN or infinity, 1 of 50 as float32; .*division"
    with pytest.raises(AttlasError, match=reported), intervene(model, broken):
        model(*given)


def test_new_weights_that_overflow_the_numbers_of_the_model_are_refused():
    given = torch.randn(3, 1, 2, 5, 8)
    reported = r"got NaN or infinity, 50 of 50 as float32"
    model = Called()
    with pytest.raises(AttlasError, match=reported), intervene(model, _enormous):
        model(*given)


def _enormous(weights, seen, layer):
    return weights.double() * 1e200


@pytest.mark.parametrize("in_place", [False, True])
def test_what_a_model_itself_makes_nan_is_not_taken_for_new(in_place):
    query, key, value = torch.randn(3, 1, 2, 5, 8)
    hidden = torch.zeros(5, 5)
    hidden[2] = -torch.inf

    class Written(torch.nn.Module):
        def forward(self, query, key, value):
            return (query @ key.mT + hidden).softmax(-1) @ value

    model = Written()
    plain = model(query, key, value)
    with intervene(model, lambda weights, seen, layer: weights * 1.0):
        torch.testing.assert_close(model(query, key, value), plain, equal_nan=True)

    def broken(weights, seen, layer):
        weights = weights if in_place else weights.clone()
        return weights.fill_(torch.nan)

    with pytest.raises(AttlasError, match="40 of 50"), intervene(model, broken):
        model(query, key, value)


def test_negative_weights_are_used_as_they_are():
    model, (query, key, value) = Called(), torch.randn(3, 1, 2, 5, 8)
    with intervene(model, lambda weights, seen, layer: weights - 0.5):
        found = model(query, key, value)
    expected = ((query @ key.mT / 8**0.5).softmax(-1) - 0.5) @ value
    torch.testing.assert_close(found, expected)
