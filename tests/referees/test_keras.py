"""Keras's attention layers as referees, on its torch backend, in float32 as Keras computes."""

import os

import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    MultiheadAttention,
)
from attlas.layers import (
    scaled_dot_product_attention as sdpa,
)
from attlas.layers import (
    scaled_dot_product_attention_with_weights as sdpa_with_weights,
)
from attlas.patterns import causal, everywhere

os.environ["KERAS_BACKEND"] = "torch"
import keras

sizes = st.integers(1, 5)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@st.composite
def sources(draw, width):
    """A source, and which of its keys are real: at least the first of each row.

    Where a query sees nothing Keras reads the mean of what it should not see; of a single key it
    warns, because a softmax over one thing is 1.
    """
    seed, batch = draw(st.integers(0, 2**20)), draw(st.integers(1, 3))
    keys = draw(st.integers(2, 5))
    lengths = torch.tensor([draw(st.integers(1, keys)) for _ in range(batch)])
    return noise(seed, batch, keys, width), torch.arange(keys) < lengths.unsqueeze(1)


def read(layer, query, source, token_mask, is_causal=False):
    """What a Keras layer reads, and its weights; it wants a mask for the query too."""
    everything = torch.ones(query.shape[:2], dtype=torch.bool)
    return layer(
        [query, source],
        mask=[everything, token_mask],
        use_causal_mask=is_causal,
        return_attention_scores=True,
    )


@given(source=sources(4), queries=sizes, is_causal=st.booleans())
def test_additive_agrees(source, queries, is_causal):
    # Keras leaves the projections to its user: W = U = 1, and its scale is v.
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    layer = keras.layers.AdditiveAttention()
    layer.build([query.shape, source.shape])
    layer.scale.assign(noise(2, 4))
    ours = AdditiveAttention(4, 4, 4, pattern=causal if is_causal else everywhere)
    with torch.no_grad():
        ours.q_proj.weight.copy_(torch.eye(4))
        ours.k_proj.weight.copy_(torch.eye(4))
        ours.score_proj.weight.copy_(layer.scale.value)
        context, weights = read(layer, query, source, token_mask, is_causal)
        # Keras counts causal queries from key 0.
        close(ours.attend(query, ours.project_kv(source, token_mask), query_offset=0), context)
        close(
            ours.attention_weights(
                query, ours.project_kv(source, token_mask), query_offset=0
            ).squeeze(1),
            weights,
        )


@given(source=sources(4), queries=sizes, is_causal=st.booleans())
def test_dot_agrees(source, queries, is_causal):
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    ours = DotAttention(pattern=causal if is_causal else everywhere)
    context, weights = read(keras.layers.Attention(), query, source, token_mask, is_causal)
    close(ours.attend(query, ours.project_kv(source, token_mask), query_offset=0), context)
    close(
        ours.attention_weights(query, ours.project_kv(source, token_mask), query_offset=0).squeeze(
            1
        ),
        weights,
    )


@given(source=sources(4), queries=sizes, scale=st.floats(0.125, 2.0, width=32))
def test_scaled_dot_product_agrees(source, queries, scale):
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    layer = keras.layers.Attention(use_scale=True)
    layer.build([query.shape, source.shape])
    layer.scale.assign(scale)
    with torch.no_grad():
        context, weights = read(layer, query, source, token_mask)
    close(
        sdpa(query, source, source, token_mask=token_mask, scale=scale),
        context,
    )
    close(
        sdpa_with_weights(query, source, source, token_mask=token_mask, scale=scale)[1],
        weights,
    )


@given(source=sources(4), queries=sizes, energy=st.floats(-2.0, 2.0, width=32))
def test_concat_agrees(source, queries, energy):
    # Keras adds query and key as they are, and sums what Luong weighs by v.
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    layer = keras.layers.Attention(score_mode="concat")
    layer.build([query.shape, source.shape])
    layer.concat_score_weight.assign(energy)
    ours = ConcatAttention(4, 4, 4)
    with torch.no_grad():
        ours.pair_proj.weight.copy_(torch.cat([torch.eye(4), torch.eye(4)], dim=1))
        ours.score_proj.weight.fill_(energy)
        context, weights = read(layer, query, source, token_mask)
        close(ours.attend(query, ours.project_kv(source, token_mask)), context)
        close(
            ours.attention_weights(query, ours.project_kv(source, token_mask)).squeeze(1), weights
        )


def copied(ours, layer):
    """Our layer with the parameters of Keras's, whose kernels are (width, heads, head width)."""
    pairs = zip(
        (ours.q_proj, ours.k_proj, ours.v_proj),
        (layer._query_dense, layer._key_dense, layer._value_dense),
        strict=True,
    )
    with torch.no_grad():
        for linear, dense in pairs:
            dense.bias.assign(noise(3, *dense.bias.shape))
            linear.weight.copy_(dense.kernel.value.flatten(1).T)
            linear.bias.copy_(dense.bias.value.flatten())
        ours.out_proj.weight.copy_(layer._output_dense.kernel.value.flatten(0, 1).T)
        ours.out_proj.bias.copy_(layer._output_dense.bias.value)
    return ours


@given(source=sources(3), queries=sizes, heads=st.integers(1, 3), is_causal=st.booleans())
def test_multihead_agrees(source, queries, heads, is_causal):
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    layer = keras.layers.MultiHeadAttention(heads, 3, value_dim=2)
    layer.build(query.shape, source.shape)
    pattern = causal if is_causal else everywhere
    ours = MultiheadAttention(4, heads, kdim=3, vdim=3, head_dim=3, value_dim=2, pattern=pattern)
    ours = copied(ours, layer)
    with torch.no_grad():
        context, weights = layer(
            query,
            source,
            value_mask=token_mask,
            use_causal_mask=is_causal,
            return_attention_scores=True,
        )
        close(ours.attend(query, ours.project_kv(source, token_mask), query_offset=0), context)
        close(
            ours.attention_weights(query, ours.project_kv(source, token_mask), query_offset=0),
            weights,
        )


@given(source=sources(4), queries=sizes, num_kv_heads=st.integers(1, 2), sharing=st.integers(1, 3))
def test_grouped_query_attention_agrees(source, queries, num_kv_heads, sharing):
    source, token_mask = source
    query = noise(1, len(source), queries, 4)
    heads = num_kv_heads * sharing
    layer = keras.layers.GroupQueryAttention(3, heads, num_kv_heads)
    layer.build(query.shape, source.shape)
    ours = copied(MultiheadAttention(4, heads, num_kv_heads=num_kv_heads, head_dim=3), layer)
    with torch.no_grad():
        context, weights = layer(query, source, value_mask=token_mask, return_attention_scores=True)
        close(ours.attend(query, ours.project_kv(source, token_mask)), context)
        close(ours.attention_weights(query, ours.project_kv(source, token_mask)), weights)
