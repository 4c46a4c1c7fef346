"""What is done to weights between their softmax and the values."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap, intervene, observe, without
from support.written_attention import HIDDEN, QUERIES, Calling, check, vectors


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


@pytest.mark.parametrize("product", [torch.mm, torch.Tensor.mm])
def test_a_product_of_two_matrices_is_a_product(product):
    def written(query, key, value):
        return product(product(query, key.T).softmax(-1), value)

    query, key, value = vectors(QUERIES, 4)
    check(written, (query @ key.T).softmax(-1)[None, None], query, key, value)


def gated(weights):
    return weights * torch.tensor([1.0, 0.5])[:, None, None]


def renormalised(weights):
    weights = weights * (weights > 0.1)
    return weights / weights.sum(-1, keepdim=True)


def emptied_in_place(weights):
    return weights.masked_fill_(HIDDEN, 0.0)


def chosen(weights):
    return torch.where(HIDDEN, 0.0, weights)


def lifted(weights):
    return weights + 1e-3


def partly_emptied(weights):
    weights[..., 0] = 0.0
    return weights


def emptied_through_a_view(weights):
    weights.flatten(0, 1).zero_()
    return weights


def greatest(weights):
    best = weights.topk(2)
    return torch.zeros_like(weights).scatter(-1, best.indices, best.values)


def mixed(weights):
    """Talking heads (Shazeer et al., 2020)."""
    return F.linear(weights.permute(0, 2, 3, 1), MIX).permute(0, 3, 1, 2)


def mixed_by_a_product(weights):
    return (weights.movedim(1, -1) @ MIX.T).movedim(-1, 1)


def mixed_by_a_sum(weights):
    return torch.einsum("bhqk,gh->bgqk", weights, MIX)


def mixed_by_a_convolution(weights):
    return F.conv2d(weights, MIX[..., None, None])


def averaged(weights):
    return weights.mean(1, keepdim=True)


MIX = torch.tensor([[0.5, 0.25], [-0.5, 2.0]])
CHANGES = [gated, renormalised, emptied_in_place, chosen, lifted, partly_emptied, greatest]
CHANGES += [emptied_through_a_view, mixed, mixed_by_a_product, mixed_by_a_sum]
CHANGES += [mixed_by_a_convolution, averaged]


@pytest.mark.parametrize("change", CHANGES)
def test_what_multiplies_the_values_is_read_where_weights_were_changed(change):
    def written(query, key, value):
        return change((query @ key.mT).softmax(-1)) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = change((query @ key.mT).softmax(-1))
    check(written, expected, query, key, value, kind=DenseAttentionMap)


@pytest.mark.parametrize("copied", [torch.Tensor.detach, torch.clone, torch.detach])
def test_weights_that_were_copied_are_what_they_were(copied):
    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = (query @ key.mT).softmax(-1)
    check(lambda q, k, v: copied((q @ k.mT).softmax(-1)) @ v, expected, query, key, value)


def values_first(query, key, value):
    return (value.mT @ (query @ key.mT).softmax(-1).mT).mT


def values_first_by_bmm(query, key, value):
    """As attention over pictures is written (SAGAN, VQGAN)."""
    weights = torch.bmm(query.flatten(0, 1), key.flatten(0, 1).mT).softmax(2)
    context = torch.bmm(value.flatten(0, 1).mT, weights.permute(0, 2, 1))
    return context.mT.unflatten(0, value.shape[:2])


def keys_first(query, key, value):
    return (value.mT @ (key @ query.mT).softmax(-2)).mT


def keys_first_turned(query, key, value):
    return (key @ query.mT).softmax(-2).mT @ value


def values_first_dropped(query, key, value):
    torch.manual_seed(1)
    return (value.mT @ F.dropout((query @ key.mT).softmax(-1), 0.5).mT).mT


@pytest.mark.parametrize(
    "written",
    [values_first, values_first_by_bmm, keys_first, keys_first_turned, values_first_dropped],
)
def test_values_may_stand_on_the_left_of_their_weights(written):
    query, key, value = vectors(2, 2, QUERIES, 4)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    expected = (query @ key.mT).softmax(-1)
    torch.testing.assert_close(trace[""].weights().reshape(expected.shape), expected)
    if written is not values_first_dropped:  # what takes its place is dropped by another draw
        with intervene(model, lambda weights, seen, layer: weights):
            torch.testing.assert_close(model(query, key, value), plain)
    with intervene(model, lambda weights, seen, layer: weights * 0):
        assert not model(query, key, value).any()


def test_weights_whose_heads_were_put_elsewhere_are_read_where_they_meet_values():
    """Scores with queries in front of heads, as some write them; dropout comes before the turn."""
    drop = nn.Dropout(0.5, inplace=True)

    def scores(query, key):
        return torch.einsum("bhqd,bhkd->bqhk", query, key)

    def written(query, key, value):
        torch.manual_seed(1)
        return drop(scores(query, key).softmax(-1)).transpose(1, 2) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = scores(query, key).softmax(-1).transpose(1, 2)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    torch.testing.assert_close(trace[""].weights(), expected)
    with intervene(model, without(1)):
        assert not model(query, key, value)[:, 1].any()


def test_slots_that_are_taken_apart_are_reported_where_some_are_read_in_another_way():
    """As Longformer does with those that look everywhere."""

    def written(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        some, rest = weights.split([2, QUERIES - 2], -1)
        summed = (rest.unsqueeze(-1) * value[:, :, None, 2:]).sum(-2)
        return some @ value[:, :, :2] + summed

    model = Calling(written)
    with pytest.raises(AttlasError, match="without a product with values after it"), observe(model):
        model(*vectors(2, 2, QUERIES, 4))


def test_heads_whose_values_are_read_one_by_one_have_a_map_each():
    def written(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        heads = zip(weights.unbind(1), value.unbind(1), strict=True)
        return torch.stack([weights[:, 0] @ value[:, 0], *(w @ v for w, v in heads)], 1)

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = (query @ key.mT).softmax(-1)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    maps = [call.weights() for call in trace.calls("")]
    for found, head in zip(maps, (0, 0, 1), strict=True):
        torch.testing.assert_close(found, expected[:, head, None])


def test_a_draw_near_a_softmax_is_read_as_it_was_drawn():
    def drawn(query, key):
        torch.manual_seed(1)
        return F.gumbel_softmax(query @ key.mT, tau=0.5)

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = drawn(query, key)
    check(lambda q, k, v: drawn(q, k) @ v, expected, query, key, value, kind=DenseAttentionMap)


def test_a_softmax_of_features_does_not_make_weights_of_what_follows():
    """A text that is gated by a softmax of itself is a text still."""
    mapped = nn.Linear(4, 4)

    def written(query, key, value):
        text = mapped(query * query.softmax(-1))
        return (text @ key.mT).softmax(-1) @ value

    query, key, value = vectors(3, QUERIES, 4)
    expected = (mapped(query * query.softmax(-1)) @ key.mT).softmax(-1)[:, None]
    with torch.no_grad():
        check(written, expected, query, key, value)


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
        assert tuple(heard) == ("layers.0", "layers.1")
        for layer in heard:
            torch.testing.assert_close(heard[layer].weights(), (query @ key.mT).softmax(-1))


def test_rows_that_a_model_empties_after_its_softmax_are_0():
    hidden = HIDDEN.clone()
    hidden[0] = True

    def written(query, key, value):
        scores = (query @ key.mT).abs().masked_fill(hidden, -torch.inf)
        return F.dropout(scores.softmax(-1), 0.0).nan_to_num(0.0) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = (query @ key.mT).abs().masked_fill(hidden, -torch.inf)
    check(written, scores.softmax(-1).nan_to_num(0.0), query, key, value, kind=DenseAttentionMap)


def test_a_softmax_may_name_its_axis_as_numpy_does():
    def written(query, key, value):
        return torch.softmax(query @ key.mT, axis=-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, (query @ key.mT).softmax(-1), query, key, value)


def test_a_mask_with_more_queries_than_scores_is_read_with_all_of_them():
    def written(query, key, value):
        return (query[:, :, :1] @ key.mT).masked_fill(HIDDEN, -torch.inf).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = (query[:, :, :1] @ key.mT).masked_fill(HIDDEN, -torch.inf)
    check(written, scores.softmax(-1), query, key, value, kind=DenseAttentionMap)


def test_a_head_that_pays_negative_attention_is_seen_to_do_so():
    def written(query, key, value):
        return -(query @ key.mT).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = -(query @ key.mT).softmax(-1)
    attention_map = check(written, expected, query, key, value, kind=DenseAttentionMap)
    assert attention_map.allowed_rows(0, QUERIES).all()


def test_a_batch_of_no_texts_passes_while_somebody_looks():
    def written(query, key, value):
        scores = (query @ key.mT).masked_fill(HIDDEN, -1e9)
        return F.scaled_dot_product_attention(
            scores.softmax(-1) @ value, key, value, attn_mask=~HIDDEN
        )

    model = Calling(written)
    with observe(model) as trace:
        assert model(*vectors(0, 2, QUERIES, 4)).shape == (0, 2, QUERIES, 4)
    assert all(attention_map.shape[0] == 0 for attention_map in trace.calls(""))


@pytest.mark.parametrize("written", [False, True])
def test_under_autocast_the_weights_are_of_what_was_multiplied(written):
    def explicit(query, key, value):
        return (query @ key.mT / 4).softmax(-1).to(value.dtype) @ value

    model = Calling(explicit if written else F.scaled_dot_product_attention)
    query, key = torch.randn(2, 1, 2, 6, 16) * 3
    value = torch.eye(6).expand(1, 2, 6, 6).contiguous()  # what is read are the weights
    with torch.autocast("cpu", torch.bfloat16), observe(model) as trace:
        context = model(query, key, value)
    rounded = query.bfloat16().double() @ key.bfloat16().double().mT / 4
    torch.testing.assert_close(
        trace[""].weights().double(), rounded.softmax(-1), rtol=1e-4, atol=1e-6
    )
    torch.testing.assert_close(trace[""].weights(), context.float(), rtol=0, atol=6e-2)


def test_texts_and_queries_may_be_one_axis_while_the_softmax_is_taken():
    """As OpenNMT-py's GlobalAttention and pytorch-seq2seq's Attention are written."""

    def written(query, key, value):
        scores = torch.bmm(query, key.mT)
        scores.data.masked_fill_(torch.arange(6) == 5, -torch.inf)
        weights = F.softmax(scores.view(-1, 6), dim=1).view(3, -1, 6)
        return torch.bmm(weights, value)

    query, key, value = torch.randn(3, 4, 8), *torch.randn(2, 3, 6, 8)
    expected = (query @ key.mT).masked_fill(torch.arange(6) == 5, -torch.inf).softmax(-1)
    check(written, expected.unsqueeze(1), query, key, value, kind=DenseAttentionMap)

    def plain(query, key, value):
        weights = torch.bmm(query, key.mT).view(-1, 6).softmax(-1).view(3, -1, 6)
        return torch.bmm(weights, value)

    expected = (query @ key.mT).softmax(-1).unsqueeze(1)
    check(plain, expected, query, key, value, kind=DenseAttentionMap)
    model = Calling(plain)
    with intervene(model, lambda weights, seen, layer: torch.ones_like(weights) / 6):
        changed = model(query, key, value)
    torch.testing.assert_close(changed, value.mean(1, keepdim=True).expand(3, 4, 8))


def test_slots_need_not_be_the_last_axis():
    """As Transformer-XL is written."""

    def written(query, key, value):
        weights = F.softmax(torch.einsum("ibnd,jbnd->ijbn", query, key) / 2, dim=1)
        return torch.einsum("ijbn,jbnd->ibnd", weights, value)

    query, key, value = vectors(QUERIES, 2, 3, 4)
    expected = torch.einsum("ibnd,jbnd->bnij", query, key).div(2).softmax(-1)
    check(written, expected, query, key, value, kind=DenseAttentionMap)


@pytest.mark.parametrize(
    "cut", [lambda w: w.narrow(-1, 0, QUERIES), lambda w: w.split([QUERIES, 1], -1)[0]]
)
def test_the_logits_of_a_sink_may_be_cut_off_by_other_names(cut):
    def weights(query, key):
        scores = query @ key.mT
        return cut(torch.cat([scores, torch.zeros_like(scores[..., :1])], -1).softmax(-1))

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(
        lambda query, key, value: weights(query, key) @ value,
        weights(query, key),
        *(query, key, value),
        kind=DenseAttentionMap,
    )


def test_weights_that_are_dropped_before_they_are_reported_apart_are_those_before():
    def written(query, key, value):
        weights = torch.bmm(query, key.mT).view(-1, 6).log_softmax(-1).exp()
        return F.dropout(weights, 0.5, training=True).view(3, -1, 6) @ value

    query, key, value = torch.randn(3, 4, 8), *torch.randn(2, 3, 6, 8)
    model = Calling(written)
    with observe(model) as trace:
        model(query, key, value)
    expected = (query @ key.mT).softmax(-1).unsqueeze(1)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)


def test_products_with_tables_of_words_are_no_attention():
    """Logits and gates are products, too."""

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Linear(8, 12, bias=False)
            self.attention = Calling(F.scaled_dot_product_attention)

        def forward(self, x):
            x = self.attention(x, x, x).squeeze(1)
            words = torch.matmul(x.reshape(-1, 8), self.table.weight.t()).view(2, 5, -1)
            each = torch.einsum("bnd,nde->bne", x, self.table.weight.view(5, 8, -1)[:, :, :2])
            return words.softmax(-1), each.softmax(-1) if each.numel() else each

    class Wide(Heads):
        def __init__(self):
            super().__init__()
            self.table = nn.Linear(8, 10, bias=False)

    model = Wide()
    with warnings.catch_warnings(), observe(model) as trace:
        warnings.simplefilter("error")
        model(torch.randn(2, 1, 5, 8))
    assert tuple(trace) == ("attention",)
