"""torch's own attention as referee."""

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.layers import MultiheadAttention
from attlas.layers import scaled_dot_product_attention as sdpa
from attlas.patterns import causal, everywhere
from attlas.recording import observe
from attlas.reference import layer_norm

sizes = st.integers(1, 5)


def noise(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-11)


def padded(batch, keys, lengths):
    """real, with at least one token in each row: torch gives NaN where nothing is seen."""
    return torch.arange(keys) < torch.tensor([1 + n % keys for n in lengths[:batch]])[:, None]


def twins(width, heads, key_dim, bias, pattern=everywhere):
    """torch's multi-head attention and ours, with the same parameters."""
    theirs = nn.MultiheadAttention(
        width,
        heads,
        bias=bias,
        kdim=key_dim,
        vdim=key_dim,
        batch_first=True,
        dtype=torch.float64,
    )
    dims = {"kdim": key_dim, "vdim": key_dim}
    ours = MultiheadAttention(width, heads, bias=bias, pattern=pattern, **dims).double()
    if theirs.in_proj_weight is None:
        projections = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
    else:
        projections = theirs.in_proj_weight.chunk(3)
    with torch.no_grad():
        if bias:
            nn.init.normal_(theirs.in_proj_bias)
            nn.init.normal_(theirs.out_proj.bias)
            for linear, values in zip(_linears(ours), theirs.in_proj_bias.chunk(3), strict=True):
                linear.bias.copy_(values)
            ours.out_proj.bias.copy_(theirs.out_proj.bias)
        for linear, values in zip(_linears(ours), projections, strict=True):
            linear.weight.copy_(values)
        ours.out_proj.weight.copy_(theirs.out_proj.weight)
    return ours, theirs


def _linears(attention):
    return attention.q_proj, attention.k_proj, attention.v_proj


@given(
    seed=st.integers(0, 2**20),
    batch=st.integers(1, 3),
    queries=sizes,
    keys=sizes,
    heads=st.sampled_from([1, 2, 4]),
    key_dim=st.sampled_from([4, 6]),
    bias=st.booleans(),
    lengths=st.lists(st.integers(0, 4), min_size=3, max_size=3),
)
def test_cross_attention_agrees_with_torchs_multihead(
    seed, batch, queries, keys, heads, key_dim, bias, lengths
):
    ours, theirs = twins(4, heads, key_dim, bias)
    query, source = noise(seed, batch, queries, 4), noise(seed + 1, batch, keys, key_dim)
    token_mask = padded(batch, keys, lengths)
    context, weights = theirs(
        query, source, source, key_padding_mask=~token_mask, average_attn_weights=False
    )
    memory = ours.project_kv(source, token_mask)
    close(ours.attend(query, memory), context)
    close(ours.attention_weights(query, memory), weights)
    # need_weights = False runs torch's fused path; by default it averages over the heads.
    fast, _ = theirs(query, source, source, key_padding_mask=~token_mask, need_weights=False)
    close(ours.attend(query, memory), fast)
    _, averaged = theirs(query, source, source, key_padding_mask=~token_mask)
    with observe(ours) as trace:
        ours.attend(query, memory)
    close(trace[""].weights().mean(1), averaged)


@given(seed=st.integers(0, 2**20), batch=st.integers(1, 3), length=sizes, bias=st.booleans())
def test_causal_self_attention_agrees_with_torchs_multihead(seed, batch, length, bias):
    ours, theirs = twins(4, 2, 4, bias, pattern=causal)
    source = noise(seed, batch, length, 4)
    ahead = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
    context, weights = theirs(
        source, source, source, attn_mask=ahead, is_causal=True, average_attn_weights=False
    )
    memory = ours.project_kv(source)
    close(ours.attend(source, memory), context)
    close(ours.attention_weights(source, memory), weights)


@given(seed=st.integers(0, 2**20), batch=st.integers(1, 3), queries=sizes, keys=sizes)
def test_gradients_agree_with_torchs_multihead(seed, batch, queries, keys):
    ours, theirs = twins(4, 2, 4, bias=True)
    query, source = noise(seed, batch, queries, 4), noise(seed + 1, batch, keys, 4)
    query.requires_grad_(), source.requires_grad_()
    of_ours = torch.autograd.grad(
        ours.attend(query, ours.project_kv(source)).square().sum(),
        [query, source, ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight],
    )
    of_theirs = torch.autograd.grad(
        theirs(query, source, source, need_weights=False)[0].square().sum(),
        [query, source, theirs.in_proj_weight],
    )
    close(list(of_ours[:2]), list(of_theirs[:2]))
    close(torch.cat(of_ours[2:]), of_theirs[2])


@given(
    seed=st.integers(0, 2**20),
    batch=st.integers(1, 3),
    num_kv_heads=st.integers(1, 2),
    sharing=st.integers(1, 3),
    queries=sizes,
    keys=sizes,
    scale=st.none() | st.floats(0.1, 2.0),
    masked=st.sampled_from([None, "bool", "float"]),
)
def test_attend_agrees_with_torchs_function(
    seed, batch, num_kv_heads, sharing, queries, keys, scale, masked
):
    heads = num_kv_heads * sharing
    query = noise(seed, batch, heads, queries, 3)
    key, value = (
        noise(seed + 1, batch, num_kv_heads, keys, 3),
        noise(seed + 2, batch, num_kv_heads, keys, 2),
    )
    added = noise(seed + 3, batch, heads, queries, keys)
    mask = (added > -0.5) | (torch.arange(keys) == 0)  # torch gives NaN where nothing is seen
    given = {"bool": mask, "float": added, None: None}[masked]
    close(
        sdpa(query, key, value, attn_mask=given, scale=scale, enable_gqa=True),
        F.scaled_dot_product_attention(
            query, key, value, attn_mask=given, scale=scale, enable_gqa=True
        ),
    )


@given(seed=st.integers(0, 2**20), queries=sizes, keys=sizes)
def test_torchs_causal_is_ours_with_first_zero(seed, queries, keys):
    query, source = noise(seed, 1, 2, queries, 3), noise(seed + 1, 1, 2, keys, 3)
    close(
        sdpa(query, source, source, is_causal=True),
        F.scaled_dot_product_attention(query, source, source, is_causal=True),
    )


def test_torchs_layer_norm_agrees_with_the_reference():
    a, g, b = noise(0, 5, 8), noise(1, 8), noise(2, 8)
    ours = torch.from_numpy(layer_norm(a.numpy(), g.numpy(), b.numpy()))
    close(ours, F.layer_norm(a, (8,), g, b, eps=1e-5))
