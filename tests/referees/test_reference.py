"""The NumPy reference as referee of every mechanism.

The reference reads one sentence without padding, position by position; the layers read batches.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas import reference
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    MultiheadAttention,
    RotaryPositions,
    ScaledDotProductAttention,
    SinusoidalPositions,
)
from attlas.patterns import both, causal, either, everywhere, landmarks, strided, window

PATTERNS = [
    everywhere,
    causal,
    window(1),
    strided(2),
    both(causal, window(2)),
    either(window(1), landmarks(0)),
]


def values(parameter):
    return parameter.detach().numpy()


def close(ours, theirs):
    np.testing.assert_allclose(values(ours), theirs, atol=1e-11, rtol=1e-11)


@st.composite
def questions(draw, query_dim, key_dim):
    """(query, source, real, pattern, first, seed) of a batch, padding anywhere."""
    batch, queries, keys = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 7)),
    )
    seed = draw(st.integers(0, 2**20))
    noise = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, queries, query_dim, dtype=torch.float64, generator=noise)
    source = torch.randn(batch, keys, key_dim, dtype=torch.float64, generator=noise)
    token_mask = torch.rand(batch, keys, generator=noise) < draw(st.sampled_from([1.0, 0.6]))
    pattern, query_offset = (
        draw(st.sampled_from(PATTERNS)),
        draw(st.none() | st.integers(-1, keys + 1)),
    )
    return query, source, token_mask, pattern, query_offset, seed


def drawn(attention, seed):
    """The layer with random parameters in float64."""
    noise = torch.Generator().manual_seed(seed)
    for parameter in attention.double().parameters():
        nn.init.normal_(parameter, generator=noise)
    return attention


def agree(attention, question, read):
    """Hold every row of the batch against `read(queries, sentence, mask, first)`."""
    query, source, token_mask, pattern, query_offset, _ = question
    memory = attention.project_kv(source, token_mask)
    contexts = attention.attend(query, memory, query_offset)
    weights = attention.attention_weights(query, memory, query_offset)
    queries, keys = query.shape[1], source.shape[1]
    mask = values(pattern.mask(queries, keys, query_offset))
    start = keys - queries if query_offset is None else query_offset
    for row, tokens in enumerate(values(token_mask)):
        sentence = values(source[row])[tokens]
        context, of_tokens = read(values(query[row]), sentence, mask[:, tokens], start)
        close(contexts[row], context)
        expected = np.zeros(weights.shape[1:])
        expected[..., tokens] = of_tokens
        close(weights[row], expected)


@given(question=questions(3, 2))
def test_additive(question):
    attention = drawn(AdditiveAttention(3, 2, 4, pattern=question[3]), question[-1])
    W_a, U_a = values(attention.q_proj.weight), values(attention.k_proj.weight)
    v_a = values(attention.score_proj.weight)[0]
    agree(attention, question, lambda s, h, mask, _: reference.additive(s, h, W_a, U_a, v_a, mask))


@given(question=questions(3, 3))
def test_dot(question):
    agree(
        DotAttention(pattern=question[3]),
        question,
        lambda h_t, h_s, mask, _: reference.global_attention(reference.dot(h_t, h_s), h_s, mask),
    )


@given(question=questions(3, 2))
def test_general(question):
    attention = drawn(GeneralAttention(3, 2, pattern=question[3]), question[-1])
    W_a = values(attention.k_proj.weight)
    agree(
        attention,
        question,
        lambda h_t, h_s, mask, _: reference.global_attention(
            reference.general(h_t, h_s, W_a), h_s, mask
        ),
    )


@given(question=questions(3, 2))
def test_concat(question):
    attention = drawn(ConcatAttention(3, 2, 4, pattern=question[3]), question[-1])
    W_a, v_a = values(attention.pair_proj.weight), values(attention.score_proj.weight)[0]

    def read(h_t, h_s, mask, query_offset):
        score = np.zeros((len(h_t), 0)) if len(h_s) == 0 else reference.concat(h_t, h_s, W_a, v_a)
        return reference.global_attention(score, h_s, mask)

    agree(attention, question, read)


@given(question=questions(3, 3), radius=st.integers(1, 3))
def test_local_m(question, radius):
    attention = LocalMonotonicAttention(DotAttention(pattern=question[3]), radius)

    def read(h_t, h_s, mask, query_offset):
        return reference.local_monotonic(reference.dot(h_t, h_s), h_s, radius, query_offset, mask)

    agree(attention, question, read)


@given(question=questions(3, 2), radius=st.integers(1, 3))
def test_local_p_is_the_papers_divided_by_its_sum(question, radius):
    inner = GeneralAttention(3, 2, pattern=question[3])
    attention = drawn(LocalPredictiveAttention(inner, radius, 3, 4), question[-1])
    W_a = values(attention.inner.k_proj.weight)
    W_p, v_p = values(attention.q_proj.weight), values(attention.position_proj.weight)[0]

    def read(h_t, h_s, mask, query_offset):
        p = reference.predicted_positions(h_t, len(h_s), W_p, v_p)
        score = reference.general(h_t, h_s, W_a)
        _, a = reference.local_predictive(score, h_s, radius, p, mask)
        total = a.sum(-1, keepdims=True)
        a = a / np.where(total == 0.0, 1.0, total)
        return a @ h_s, a

    agree(attention, question, read)


@given(question=questions(3, 3))
def test_scaled_dot_product(question):
    agree(
        ScaledDotProductAttention(pattern=question[3]),
        question,
        lambda Q, K, mask, _: reference.scaled_dot_product(Q, K, K, mask),
    )


def projections(linear, heads):
    """(heads, width + 1, head width): the bias is the row of an input that is always 1."""
    kernel = np.concatenate([values(linear.weight), values(linear.bias)[:, None]], axis=1)
    return kernel.reshape(heads, -1, kernel.shape[1]).transpose(0, 2, 1)


def with_one(x):
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


@given(
    question=questions(4, 3),
    num_kv_heads=st.integers(1, 2),
    sharing=st.integers(1, 2),
    value_dim=st.integers(1, 3),
    qk_norm=st.booleans(),
)
def test_multi_head(question, num_kv_heads, sharing, value_dim, qk_norm):
    heads = num_kv_heads * sharing
    attention = MultiheadAttention(
        4,
        heads,
        kdim=3,
        vdim=3,
        num_kv_heads=num_kv_heads,
        head_dim=2,
        value_dim=value_dim,
        pattern=question[3],
        qk_norm=qk_norm,
    )
    attention = drawn(attention, question[-1])
    W_Q = projections(attention.q_proj, heads)
    W_K, W_V = (projections(of, num_kv_heads) for of in (attention.k_proj, attention.v_proj))
    W_O, b_O = values(attention.out_proj.weight).T, values(attention.out_proj.bias)

    norms = (attention.q_norm, attention.k_norm)
    g_Q, g_K = (None if norm is None else values(norm.weight) for norm in norms)

    def read(Q, K, mask, query_offset):
        Q, K = with_one(Q), with_one(K)
        context, weights = reference.multi_head(Q, K, K, W_Q, W_K, W_V, W_O, mask, g_Q=g_Q, g_K=g_K)
        return context + b_O, weights

    agree(attention, question, read)


@given(question=questions(4, 4))
def test_rotary_multi_head(question):
    query, source, token_mask, pattern, query_offset, seed = question
    attention = MultiheadAttention(4, 2, positions=RotaryPositions(2), pattern=pattern)
    attention = drawn(attention, seed)
    memory = attention.project_kv(source, token_mask)
    weights = attention.attention_weights(query, memory, query_offset)
    queries, keys = query.shape[1], source.shape[1]
    start = keys - queries if query_offset is None else query_offset
    mask = values(pattern.mask(queries, keys, query_offset))
    W_Q, W_K = (projections(of, 2) for of in (attention.q_proj, attention.k_proj))
    for row, tokens in enumerate(values(token_mask)):
        Q, K = with_one(values(query[row])), with_one(values(source[row]))
        for head in range(2):
            # Padding stands somewhere too: it is masked here, not left out.
            _, expected = reference.scaled_dot_product(
                reference.rotary(Q @ W_Q[head], start),
                reference.rotary(K @ W_K[head]),
                K,
                mask & tokens,
            )
            close(weights[row, head], expected)


@pytest.mark.parametrize("width", [2, 6, 64])
def test_sinusoidal_positions(width):
    encoding = SinusoidalPositions(width).encoding(200)
    np.testing.assert_allclose(values(encoding), reference.sinusoidal(200, width), atol=1e-9)
