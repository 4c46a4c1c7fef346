"""What is done to weights between their softmax and the values."""

import pytest
import torch
from torch import nn
from written import HIDDEN, QUERIES, Calling, check, vectors

from attlas.recording import DenseReading, intervene, observe, without


@pytest.mark.parametrize("inference", [False, True])
def test_dropout_in_place_leaves_the_weights_before_it_in_the_reading(inference):
    drop = nn.Dropout(0.5, inplace=True)

    def written(query, key, value):
        torch.manual_seed(1)
        return drop((query @ key.mT).softmax(-1)) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        model = Calling(written)
        plain = model(query, key, value)
        with observe(model) as trace:
            assert torch.equal(model(query, key, value), plain)
        torch.testing.assert_close(trace[""].weights(), (query @ key.mT).softmax(-1))


def test_products_may_name_their_tensors():
    def written(query, key, value):
        scores = torch.matmul(input=query, other=key.mT)
        return torch.matmul(scores.softmax(-1), other=value)

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, (query @ key.mT).softmax(-1), query, key, value)

    def folded(query, key, value):
        return torch.bmm(torch.bmm(query, mat2=key.mT).softmax(-1), mat2=value)

    query, key, value = query[0], key[0], value[0]
    check(folded, (query @ key.mT).softmax(-1)[:, None], query, key, value)


def gated(weights):
    return weights * torch.tensor([1.0, 0.5])[:, None, None]


def renormalised(weights):
    weights = weights * (weights > 0.1)
    return weights / weights.sum(-1, keepdim=True)


def emptied_in_place(weights):
    return weights.masked_fill_(HIDDEN, 0.0)


@pytest.mark.parametrize("change", [gated, renormalised, emptied_in_place])
def test_what_multiplies_the_values_is_read_where_weights_were_changed(change):
    def written(query, key, value):
        return change((query @ key.mT).softmax(-1)) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = change((query @ key.mT).softmax(-1))
    check(written, expected, query, key, value, kind=DenseReading)


def test_weights_that_two_values_are_read_by_are_one_map():
    drop = nn.Dropout(0.5).eval()

    def written(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        return drop(weights) @ value + torch.einsum("bhqs,bhsd->bhqd", weights, value.flip(-1))

    query, key, value = vectors(2, 2, QUERIES, 4)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    assert len(trace.calls("")) == 1
    torch.testing.assert_close(trace[""].weights(), (query @ key.mT).softmax(-1))
    with intervene(model, without(0)):
        changed = model(query, key, value)
    assert not changed[:, 0].any()  # by both of them
    torch.testing.assert_close(changed[:, 1], plain[:, 1])


def test_weights_that_were_changed_between_two_values_are_two_maps():
    def written(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        return weights @ value + gated(weights) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    model = Calling(written)
    with observe(model) as trace:
        model(query, key, value)
    weights = (query @ key.mT).softmax(-1)
    first, second = trace.calls("")
    torch.testing.assert_close(first.weights(), weights)
    torch.testing.assert_close(second.weights(), gated(weights))


def test_two_softmaxes_of_the_same_numbers_are_two_maps():
    def written(query, key, value):
        return (query @ key.mT).softmax(-1) @ value + (query @ key.mT).softmax(-1) @ value

    model = Calling(written)
    with observe(model) as trace:
        model(*vectors(2, 2, QUERIES, 4))
    assert len(trace.calls("")) == 2


def test_layers_that_share_their_weights_have_a_map_each():
    class Sharing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Calling(torch.matmul), Calling(torch.matmul)])

        def forward(self, query, key, value):
            weights = (query @ key.mT).softmax(-1)
            for layer in self.layers:
                value = layer(weights, value)
            return value

    query, key, value = vectors(2, 2, QUERIES, 4)
    model = Sharing()
    with observe(model) as outer, observe(model) as trace:
        model(query, key, value)
    for heard in (outer, trace):
        assert heard.layers == ("layers.0", "layers.1")
        for layer in heard.layers:
            torch.testing.assert_close(heard[layer].weights(), (query @ key.mT).softmax(-1))
