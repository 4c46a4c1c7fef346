import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.similarity import divergence, diversity, head_divergences, layer_divergences
from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap

LOG2 = math.log(2)


def test_the_divergence_of_two_rows_is_that_worked_by_hand() -> None:
    one, other = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5])
    # m = (.75, .25): H(m) = .562335, H(p) = 0, H(q) = ln 2
    expected = 0.5623351446 - LOG2 / 2
    assert divergence(one, other).item() == pytest.approx(expected, abs=1e-9)
    assert divergence(one, one.flip(0)).item() == pytest.approx(LOG2)
    assert divergence(one, one).item() == 0
    # Over the keys that both see, of which there is but one.
    shared = torch.tensor([True, False])
    assert divergence(one, other, shared).item() == 0
    assert math.isnan(divergence(one.flip(0), other, shared).item())


@given(st.integers(0, 2**31), st.integers(1, 9))
def test_it_is_symmetric_bounded_and_its_root_a_distance(seed, slots) -> None:
    torch.manual_seed(seed)
    a, b, c = (torch.randn(3, 20, slots) * 5).softmax(-1)
    ab, bc, ac = divergence(a, b), divergence(b, c), divergence(a, c)
    torch.testing.assert_close(ab, divergence(b, a), atol=1e-12, rtol=0)
    assert bool((ab >= 0).all())
    assert bool((ab <= LOG2 + 1e-12).all())
    assert bool((divergence(a, a) < 1e-12).all())
    assert bool((ac.sqrt() <= ab.sqrt() + bc.sqrt() + 1e-7).all())
    # Kullback & Leibler's divergence from the mean, halved and added: the definition.
    p, q = a.double(), b.double()
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    m = (p + q) / 2
    by_definition = (torch.xlogy(p, p / m).sum(-1) + torch.xlogy(q, q / m).sum(-1)) / 2
    torch.testing.assert_close(ab, by_definition, atol=1e-12, rtol=0)


@given(
    st.integers(0, 2**31),
    st.integers(1, 3),
    st.integers(1, 8),
    st.lists(st.sampled_from([everywhere, causal, window(1)]), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_streamed_over_blocks_it_is_the_mean_over_dense_rows(
    seed, batch, length, patterns, some, tiny
) -> None:
    torch.manual_seed(seed)
    attention_maps = [
        FactoredAttentionMap(
            *torch.randn(2, batch, 2, length, 4), scale=2.0, pattern=one, query_offset=0
        )
        for one in patterns
    ]
    query_mask = torch.rand(batch, length) > 0.3 if some else None
    with pytest.MonkeyPatch.context() as patch:
        if tiny:
            patch.setattr("attlas.analysis.similarity._AT_ONCE", 1)
        found = head_divergences(attention_maps, query_mask)
    heads = [
        (
            attention_map.weights()[:, head],
            attention_map.allowed_rows(0, length).expand(attention_map.shape)[:, head],
        )
        for attention_map in attention_maps
        for head in range(2)
    ]
    assert found.shape == (len(heads), len(heads))
    counted = torch.ones(batch, length, dtype=torch.bool) if query_mask is None else query_mask
    for a, (rows, seen) in enumerate(heads):
        for b, (others, visible) in enumerate(heads):
            each = divergence(rows, others, seen & visible)[counted]
            expected = each[~each.isnan()].mean()
            torch.testing.assert_close(found[a, b], expected, atol=1e-9, rtol=0, equal_nan=True)
    torch.testing.assert_close(found, found.mT, equal_nan=True)
    known = found[~found.isnan()]
    assert bool(((known >= 0) & (known <= LOG2 + 1e-9)).all())
    if query_mask is None:
        assert bool((found.diagonal() == 0).all())


def test_one_slot_each_and_the_same_slot_for_all_are_the_ends_of_diversity() -> None:
    apart = DenseAttentionMap(torch.eye(4).reshape(1, 4, 1, 4))
    assert diversity(head_divergences([apart])) == pytest.approx(LOG2)
    alike = DenseAttentionMap(torch.full((1, 4, 3, 5), 0.2))
    assert diversity(head_divergences([alike])) == 0
    assert diversity(torch.tensor([[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]])) == (
        pytest.approx(0.4)
    )
    with pytest.raises(AttlasError, match="at least two heads that can be compared"):
        diversity(torch.zeros(1, 1))
    with pytest.raises(AttlasError, match="at least two heads that can be compared"):
        diversity(torch.full((2, 2), torch.nan))


def test_layers_are_compared_by_the_mean_of_their_heads() -> None:
    one = DenseAttentionMap(torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]))  # mean ½, ½
    other = DenseAttentionMap(torch.tensor([[[[0.5, 0.5]]]]))
    torch.testing.assert_close(layer_divergences([one, other]), torch.zeros(2, 2).double())
    assert diversity(head_divergences([one, other])) > 0.2


def test_heads_that_share_no_slot_cannot_be_compared() -> None:
    attention_map = DenseAttentionMap(
        torch.eye(2).reshape(1, 2, 1, 2), torch.eye(2).bool().reshape(1, 2, 1, 2)
    )
    found = head_divergences([attention_map])
    assert found.isnan().tolist() == [[False, True], [True, False]]


def test_what_cannot_be_compared_says_why() -> None:
    one, other = (
        DenseAttentionMap(torch.ones(1, 1, 2, 2)),
        DenseAttentionMap(torch.ones(1, 1, 2, 3)),
    )
    with pytest.raises(AttlasError, match=r"same queries and keys; got \(1, 1, 2, 2\), \(1, 1"):
        head_divergences([one, other])
    with pytest.raises(AttlasError, match="got none"):
        head_divergences([])
    with pytest.raises(AttlasError, match=r"queries= as bools of shape \(1, 2\)"):
        head_divergences([one], torch.ones(1, 3, dtype=torch.bool))


def test_queries_of_padding_are_left_out_where_nobody_says_who_asks() -> None:
    torch.manual_seed(0)
    query, keys = torch.randn(2, 1, 2, 5, 4)
    alone = FactoredAttentionMap(query, keys, 1.0, everywhere, 0)
    junk = torch.randn(1, 2, 3, 4)
    token_mask = torch.tensor([[True] * 5 + [False] * 3])
    longer = torch.cat((query, junk), 2), torch.cat((keys, junk), 2)
    padded = FactoredAttentionMap(*longer, 1.0, everywhere, 0, token_mask)
    for divergences in (head_divergences, layer_divergences):
        plain = divergences([alone, alone])
        torch.testing.assert_close(divergences([padded, padded]), plain, atol=1e-6, rtol=0)
    # Between two texts a query's own key says nothing of it.
    every = head_divergences([padded], torch.ones(1, 8, dtype=torch.bool))
    torch.testing.assert_close(head_divergences([padded], cross_attention=True), every)
    assert not torch.allclose(every, head_divergences([padded]))
