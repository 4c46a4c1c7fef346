import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.flow import attention_flow
from attlas.analysis.rollout import rollout
from attlas.errors import AttlasError
from attlas.patterns import both, causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace


def dense(rows) -> DenseAttentionMap:
    return DenseAttentionMap(torch.tensor([[rows]]))


def test_two_layers_are_rolled_out_by_hand() -> None:
    first, second = dense([[0.5, 0.5], [0.0, 1.0]]), dense([[1.0, 0.0], [0.8, 0.2]])
    # Ã₁ = [[.75, .25], [0, 1]], Ã₂ = [[1, 0], [.4, .6]]; Ã₂ Ã₁ = [[.75, .25], [.3, .7]]
    expected = torch.tensor([[0.75, 0.25], [0.3, 0.7]], dtype=torch.float64)
    torch.testing.assert_close(rollout([first, second]), expected, atol=1e-7, rtol=0)
    torch.testing.assert_close(rollout([first, second], [1]), expected[1:], atol=1e-7, rtol=0)
    # Without the residual connection it is the product of the maps.
    product = torch.tensor([[0.5, 0.5], [0.4, 0.6]], dtype=torch.float64)
    torch.testing.assert_close(rollout([first, second], residual=0.0), product, atol=1e-7, rtol=0)
    torch.testing.assert_close(
        rollout([first, second], residual=1.0), torch.eye(2, dtype=torch.float64)
    )


@given(
    st.integers(0, 2**31),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from([everywhere, causal, window(1)]),
    st.booleans(),
    st.booleans(),
)
def test_rolled_out_in_blocks_it_is_the_product_of_dense_maps(
    seed, layers, length, pattern, padded, tiny
) -> None:
    torch.manual_seed(seed)
    token_mask = torch.rand(1, length) > 0.3 if padded else None
    attention_maps = [
        FactoredAttentionMap(
            *torch.randn(2, 1, 3, length, 4),
            scale=1.0,
            pattern=pattern,
            query_offset=0,
            token_mask=token_mask,
        )
        for _ in range(layers)
    ]
    expected = torch.eye(length, dtype=torch.float64)
    for attention_map in attention_maps:
        mixed = 0.5 * torch.eye(length) + 0.5 * attention_map.weights()[0].double().mean(0)
        expected = (mixed / mixed.sum(-1, keepdim=True)) @ expected
    with pytest.MonkeyPatch.context() as patch:
        if tiny:
            patch.setattr(sys.modules["attlas.analysis.rollout"], "_AT_ONCE", 1)
        found = rollout(attention_maps)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.sum(-1), torch.ones(length, dtype=torch.float64))
    some = torch.randint(length, (3,)).tolist()
    torch.testing.assert_close(rollout(attention_maps, some), found[some])


def test_all_of_a_long_text_is_refused_and_one_position_of_it_is_not() -> None:
    length = 20_000
    torch.manual_seed(0)
    query, keys = torch.randn(2, 1, 1, length, 2)
    attention_maps = [FactoredAttentionMap(query, keys, 1.0, causal, 0)]
    with pytest.raises(AttlasError, match="at most 134,217,728 shares; got 20,000 positions"):
        rollout(attention_maps)
    near = FactoredAttentionMap(
        query[:, :, :5000], keys[:, :, :5000], 1.0, both(causal, window(9)), 0
    )
    shares = rollout([near, near], [4000])
    # Two steps of at most nine.
    assert shares[0].nonzero().flatten().tolist() == list(range(4000 - 18, 4001))
    assert float(shares.sum()) == pytest.approx(1)


def test_what_is_no_stack_of_self_attention_says_why() -> None:
    square, wide = (
        DenseAttentionMap(torch.ones(1, 1, 2, 2)),
        DenseAttentionMap(torch.ones(1, 1, 2, 3)),
    )
    for wrong in ([], [wide], [square, DenseAttentionMap(torch.ones(1, 1, 3, 3))]):
        with pytest.raises(AttlasError, match="layers of self-attention over one text"):
            rollout(wrong)
    with pytest.raises(AttlasError, match=r"attention_map.at\(row\)"):
        rollout([DenseAttentionMap(torch.ones(2, 1, 2, 2))])
    with pytest.raises(AttlasError, match=r"positions from 0 to 1; got \[2\]"):
        rollout([square], [0, 2])
    with pytest.raises(AttlasError, match=r"a residual share from 0 to 1; got 1\.5"):
        rollout([square], residual=1.5)


def maps(batch=1, length=3, ahead=True) -> DenseAttentionMap:
    scores = torch.randn(batch, 2, length, length)
    later = torch.ones(length, length, dtype=torch.bool).triu(1) & (not ahead)
    return DenseAttentionMap(scores.masked_fill(later, -torch.inf).softmax(-1))


def translated(encoder: str, decoder: str, batch=1) -> Trace:
    """As a translator would be traced whose source is as long as its target."""
    torch.manual_seed(0)
    trace = Trace()
    for layer, cross_attention, ahead in (
        *((f"{encoder}.{number}.self", False, True) for number in range(2)),
        *((f"{decoder}.{number}.self", False, False) for number in range(2)),
        (f"{decoder}.0.cross", True, True),
    ):
        trace.record(layer, maps(batch, ahead=ahead))
        trace.set_kind(layer, cross_attention=cross_attention)
    return trace


@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [("encoder", "decoder"), ("a", "b"), ("encoder.encoder", "decoder.encoder")],
)
def test_of_a_trace_one_side_is_rolled_out_and_two_are_refused(encoder: str, decoder: str) -> None:
    trace = translated(encoder, decoder)
    for side in (encoder, decoder):
        chosen = [f"{side}.0.self", f"{side}.1.self"]
        by_hand = [trace[layer] for layer in chosen]
        torch.testing.assert_close(rollout(trace, layers=chosen), rollout(by_hand))
        flow = attention_flow(trace, layers=chosen)
        torch.testing.assert_close(flow, attention_flow(by_hand))
    for mixed in (rollout, attention_flow):
        with pytest.raises(
            AttlasError, match=rf"\['{decoder}.0.cross'\], which are cross-attention; name"
        ):
            mixed(trace)
        with pytest.raises(AttlasError, match=rf"of two sides; .* layers=\['{encoder}.0.self'\]"):
            mixed(trace, layers=[f"{encoder}.0.self", f"{decoder}.1.self"])
        with pytest.raises(AttlasError, match="observe a model with self-attention"):
            mixed(trace, layers=[f"{decoder}.0.cross"])


def test_a_text_of_a_batch_is_rolled_out_by_its_row() -> None:
    trace = translated("encoder", "decoder", batch=2)
    chosen = ["encoder.0.self", "encoder.1.self"]
    attention_maps = [trace[layer] for layer in chosen]
    expected = rollout([attention_map.at(1) for attention_map in attention_maps])
    torch.testing.assert_close(rollout(trace, layers=chosen, row=1), expected)
    torch.testing.assert_close(rollout(attention_maps, row=1), expected)
    with pytest.raises(AttlasError, match=r"choose the text by row=…"):
        rollout(trace, layers=chosen)
    with pytest.raises(AttlasError, match=r"a text from 0 to 1; got row=2"):
        rollout(trace, layers=chosen, row=2)
    with pytest.raises(AttlasError, match="a trace, whose layers can be named; got attention maps"):
        rollout(attention_maps, layers=chosen, row=0)


def test_calls_of_one_layer_are_layers_where_the_caller_says_so() -> None:
    torch.manual_seed(0)
    trace, calls = Trace(), [maps(), maps()]
    for attention_map in calls:
        trace.record("shared", attention_map)
    with pytest.raises(AttlasError, match=r"got 2 calls; of a layer .* trace.calls\('shared'\)"):
        rollout(trace)
    torch.testing.assert_close(rollout(trace.calls("shared")), rollout(calls))


def test_layers_may_be_named_by_a_pattern() -> None:
    torch.manual_seed(0)
    trace = Trace()
    for layer in ("encoder.0", "encoder.1", "other"):
        trace.record(layer, maps())
    torch.testing.assert_close(
        rollout(trace, layers="encoder.*"), rollout([trace["encoder.0"], trace["encoder.1"]])
    )
    with pytest.raises(AttlasError, match=r"some of the layers .* got 'decoder.\*'"):
        rollout(trace, layers=["encoder.*", "decoder.*"])


def test_a_query_that_sees_nothing_keeps_what_it_has_without_a_residual_too() -> None:
    weights = torch.tensor([[[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]])
    shares = rollout([DenseAttentionMap(weights)] * 2, residual=0.0)
    torch.testing.assert_close(
        shares, torch.tensor([[0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).double()
    )


def test_a_row_of_readings_with_other_numbers_of_rows_is_refused() -> None:
    """As of a beam search, in which a decoder has several rows of each text."""
    of_two, of_six = (DenseAttentionMap(torch.rand(batch, 1, 3, 3)) for batch in (2, 6))
    with pytest.raises(AttlasError, match="row=1 is of several texts"):
        rollout([of_two, of_six], row=1)
    torch.testing.assert_close(rollout([of_six, of_six], row=5), rollout([of_six.at(5)] * 2))
