"""Maps that are made of others: talking heads, differences of softmaxes, and what values may be."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap, intervene, observe
from support.written_attention import HIDDEN, QUERIES, Calling, check, vectors

HEADS = 3


def by_einsum(maps, mix):
    return torch.einsum("bhij,hg->bgij", maps, mix)


def by_einsum_with_dots(maps, mix):
    return torch.einsum("bh...,hg->bg...", maps, mix)


def by_linear(maps, mix):
    """As CaiT is written (Touvron et al., 2021)."""
    return F.linear(maps.permute(0, 2, 3, 1), mix.T).permute(0, 3, 1, 2)


def by_convolution(maps, mix):
    """As x-transformers is written."""
    return F.conv2d(maps, mix.T[..., None, None])


def by_convolution_of_all_pairs(maps, mix):
    return F.conv1d(maps.flatten(2), mix.T[..., None]).unflatten(2, maps.shape[2:])


def by_matmul_from_the_right(maps, mix):
    return (maps.movedim(1, -1) @ mix).movedim(-1, 1)


def by_matmul_from_the_left(maps, mix):
    return (mix.T @ maps.transpose(1, 2)).transpose(1, 2)


def by_matmul_of_all_pairs(maps, mix):
    return (mix.T @ maps.flatten(2)).view_as(maps)


def by_bmm_of_all_pairs(maps, mix):
    return torch.bmm(mix.T.expand(len(maps), -1, -1), maps.flatten(2)).view_as(maps)


def by_tensordot(maps, mix):
    return torch.tensordot(maps, mix, dims=([1], [0])).permute(0, 3, 1, 2)


def by_inner(maps, mix):
    return torch.inner(maps.permute(0, 2, 3, 1), mix.T).permute(0, 3, 1, 2)


def by_a_sum(maps, mix):
    return (maps[:, :, None] * mix[None, :, :, None, None]).sum(1)


def one_by_one(maps, mix):
    heads = range(HEADS)
    return torch.stack([sum(maps[:, h] * mix[h, g] for h in heads) for g in heads], 1)


MIXES = [by_einsum, by_einsum_with_dots, by_linear, by_convolution, by_convolution_of_all_pairs]
MIXES += [by_matmul_from_the_right, by_matmul_from_the_left, by_matmul_of_all_pairs]
MIXES += [by_bmm_of_all_pairs, by_tensordot, by_inner, by_a_sum, one_by_one]


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("mix", MIXES)
def test_heads_that_talk_before_and_after_the_softmax_are_read_where_they_meet_values(mix, hidden):
    """Shazeer et al., 2020."""
    torch.manual_seed(1)
    before, after = torch.randn(2, HEADS, HEADS)

    def written(query, key, value):
        scores = mix(query @ key.mT / 2, before)
        scores = scores.masked_fill(HIDDEN, -torch.inf) if hidden else scores
        return mix(scores.softmax(-1), after) @ value

    query, key, value = vectors(2, HEADS, QUERIES, 4)
    scores = torch.einsum("bhid,bhjd,hg->bgij", query, key, before) / 2
    scores = scores.masked_fill(HIDDEN, -torch.inf) if hidden else scores
    expected = torch.einsum("bhij,hg->bgij", scores.softmax(-1), after)
    check(written, expected, query, key, value, kind=DenseAttentionMap)
    with intervene(model := Calling(written), lambda weights, seen, layer: weights.flip(1)):
        torch.testing.assert_close(model(query, key, value), expected.flip(1) @ value)


def test_heads_may_talk_while_they_are_the_last_axis():
    torch.manual_seed(1)
    before, after = torch.randn(2, HEADS, HEADS)

    def written(query, key, value):
        scores = F.linear((query @ key.mT).permute(0, 2, 3, 1), before.T)
        weights = F.linear(scores.softmax(2), after.T)
        return torch.einsum("bijh,bhjd->bhid", weights, value)

    query, key, value = vectors(2, HEADS, QUERIES, 4)
    scores = torch.einsum("bhid,bhjd,hg->bgij", query, key, before)
    expected = torch.einsum("bhij,hg->bgij", scores.softmax(-1), after)
    check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_more_heads_may_talk_than_there_are_values():
    torch.manual_seed(1)
    before, after = torch.randn(HEADS, 7), torch.randn(7, HEADS)

    def written(query, key, value):
        return by_einsum(by_einsum(query @ key.mT, before).softmax(-1), after) @ value

    query, key, value = vectors(2, HEADS, QUERIES, 4)
    expected = by_einsum(by_einsum(query @ key.mT, before).softmax(-1), after)
    check(written, expected, query, key, value, kind=DenseAttentionMap)


@pytest.mark.parametrize("padded", [False, True])
def test_a_convolution_over_pairs_and_heads_is_read_where_it_meets_values(padded):
    """Multi-token attention (Golovneva et al., 2025)."""
    torch.manual_seed(1)
    convolution = nn.Conv2d(HEADS, HEADS, 3, padding=0 if padded else 1).requires_grad_(False)

    def mixed(maps):
        return convolution(F.pad(maps, (1, 1, 2, 0)) if padded else maps)

    def weights(query, key):
        return mixed(mixed(query @ key.mT).masked_fill(HIDDEN, -torch.inf).softmax(-1))

    query, key, value = vectors(2, HEADS, QUERIES, 4)
    expected = weights(query, key)
    check(lambda q, k, v: weights(q, k) @ v, expected, query, key, value, kind=DenseAttentionMap)


def softmax(query, key):
    return (query @ key.mT).softmax(-1)


LAMBDA = torch.tensor([0.3, -0.5])[:, None, None]


def subtracted(query, key):
    """As the Differential Transformer is written (Ye et al., 2024)."""
    return softmax(query, key) - LAMBDA * softmax(key, query)


def subtracted_with_a_factor(query, key):
    return torch.sub(softmax(query, key), softmax(key, query), alpha=0.3)


def subtracted_in_place(query, key):
    weights = softmax(query, key)
    weights -= nn.Parameter(LAMBDA, requires_grad=False) * softmax(key, query)
    return weights


def subtracted_at_once(query, key):
    return torch.addcmul(softmax(query, key), softmax(key, query), LAMBDA, value=-1)


def between_both(query, key):
    return torch.lerp(softmax(query, key), softmax(key, query), 0.3)


def stacked(query, key):
    both = torch.stack([softmax(query, key), softmax(key, query)], 2)
    one, other = both.unbind(2)
    return one - LAMBDA * other


def stacked_and_averaged(query, key):
    return torch.stack([softmax(query, key), softmax(key, query)], -1).mean(-1)


def stacked_and_weighed(query, key):
    both = torch.stack([softmax(query, key), softmax(key, query)])
    return torch.einsum("nbhqs,n->bhqs", both, torch.tensor([1.0, -0.3]))


def one_softmax_of_halves(query, key):
    one, other = softmax(torch.cat([query, key], 1), torch.cat([key, query], 1)).chunk(2, 1)
    return one - LAMBDA * other


def one_softmax_of_pairs(query, key):
    heads = torch.stack([query, key], 2).flatten(1, 2), torch.stack([key, query], 2).flatten(1, 2)
    apart = softmax(*heads).unflatten(1, (-1, 2))
    return apart[:, :, 0] - LAMBDA * apart[:, :, 1]


def one_softmax_of_five_axes(query, key):
    both = softmax(torch.stack([query, key], 2), torch.stack([key, query], 2))
    return both[:, :, 0] - LAMBDA * both[:, :, 1]


def logarithms(query, key):
    other = (key @ query.mT).log_softmax(-1).exp()
    return (query @ key.mT).log_softmax(-1).exp() - LAMBDA * other


def larger(query, key):
    return torch.maximum(softmax(query, key), softmax(key, query))


def chosen(query, key):
    return torch.where(query[..., :1] > 0, softmax(query, key), softmax(key, query))


DIFFERENCES = [subtracted, subtracted_with_a_factor, subtracted_in_place, subtracted_at_once]
DIFFERENCES += [between_both, stacked, stacked_and_averaged, stacked_and_weighed, larger, chosen]
DIFFERENCES += [one_softmax_of_halves, one_softmax_of_pairs, one_softmax_of_five_axes, logarithms]


@pytest.mark.parametrize("weights", DIFFERENCES)
def test_a_map_that_is_made_of_two_softmaxes_is_one_map_and_nothing_is_reported(weights):
    def written(query, key, value):
        return F.rms_norm(weights(query, key) @ value, (4,))

    query, key, value = vectors(2, 2, QUERIES, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = weights(query, key)
        check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_slots_of_two_softmaxes_may_be_joined():
    def written(query, key, value):
        both = torch.cat([softmax(query, key), softmax(query, value)], -1)
        return both @ torch.cat([key, value], 2)

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = torch.cat([softmax(query, key), softmax(query, value)], -1)
    check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_a_softmax_that_goes_nowhere_is_reported_beside_one_that_is_subtracted():
    def written(query, key, value):
        return subtracted(query, key) @ value, softmax(value, key).sum()

    model = Calling(written)
    reported = r"\[''\] \(1 × each\): a softmax of the product of two tensors"
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(*vectors(2, 2, QUERIES, 4))
    assert len(trace.calls("")) == 1


READS = {
    "matmul": lambda weights, values: weights @ values,
    "linalg.matmul": torch.linalg.matmul,
    "linear": lambda weights, values: F.linear(weights, values.mT),
    "linear with a bias": lambda weights, values: F.linear(weights, values.mT, torch.ones(4)),
    "einsum": lambda weights, values: torch.einsum("...qs,sd->...qd", weights, values),
    "inner": lambda weights, values: torch.inner(weights, values.mT),
    "tensordot": lambda weights, values: torch.tensordot(weights, values, 1),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_weights_of_any_number_of_axes_may_read_a_matrix_of_values(axes, read):
    def written(query, key, value):
        return READS[read](softmax(query, key), value)

    shape = (3, 2, 2)[5 - axes :]
    query, key, _ = vectors(*shape, QUERIES, 4)
    expected = softmax(query, key)
    if axes == 5:
        expected = expected.flatten(0, 1)
    elif axes == 3:
        expected = expected[:, None]
    else:
        expected = expected[(None,) * (4 - axes)]
    check(written, expected, query, key, vectors(QUERIES, 4)[0])


def test_weights_may_read_a_vector_of_values():
    def written(query, key, value):
        return torch.einsum("...qs,s->...q", softmax(query, key), value)

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, softmax(query, key), query, key, value[0, 0, :, 0])
    check(lambda q, k, v: softmax(q, k) @ v, softmax(query, key), query, key, value[0, 0, :, 0])
    expected = softmax(query, key)[:1, :1]
    given = query[0, 0], key[0, 0], value[0, 0, :, 0]
    check(lambda q, k, v: torch.mv(softmax(q, k), v), expected, *given)


@pytest.mark.parametrize(
    "function",
    [
        lambda one, weights, values: torch.baddbmm(one, weights, values, alpha=0.5),
        lambda one, weights, values: torch.baddbmm(one, batch1=weights, batch2=values),
        lambda one, weights, values: torch.addbmm(one[0], weights, values),
        lambda one, weights, values: torch.bmm(weights, values[0].expand_as(values)) + one,
    ],
)
def test_what_weights_read_may_be_added_to_something(function):
    query, key, value = vectors(3, QUERIES, 4)
    expected = softmax(query, key)[:, None]
    check(lambda q, k, v: function(q, softmax(q, k), v), expected, query, key, value)
    one = query[0], key[0], value[0]
    expected = expected[:1]
    check(lambda q, k, v: torch.addmm(q, softmax(q, k), v), expected, *one)


def test_values_may_be_learnt_where_weights_are_of_queries_and_keys():
    class Learnt(nn.Module):
        def __init__(self):
            super().__init__()
            self.values = nn.Parameter(torch.randn(QUERIES, 4))

        def forward(self, query, key):
            return softmax(query, key) @ self.values.T.T

    query, key, _ = vectors(2, 2, QUERIES, 4)
    with observe(model := Learnt()) as trace:
        model(query, key)
    torch.testing.assert_close(trace[""].weights(), softmax(query, key))


@pytest.mark.parametrize("buffer", [False, True])
def test_what_a_model_holds_is_no_value_of_other_softmaxes(buffer):
    class Bins(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("bins", torch.arange(4.0))
            self.table = nn.Linear(4, 3)

        def forward(self, logits):
            weights = logits.softmax(-1)
            return weights @ self.bins if buffer else self.table(weights)

    with pytest.raises(AttlasError, match="at least one attention call"), observe(model := Bins()):
        model(torch.randn(2, 3, 5, 4))
