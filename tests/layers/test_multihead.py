from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F

from attlas.errors import AttlasError
from attlas.layers import MultiheadAttention, RotaryPositions, ScaledDotProductAttention
from attlas.ops.cache import KeyValueCache
from attlas.ops.dropout import dropout_generator
from attlas.patterns import both, causal, either, everywhere, landmarks, scattered, strided, window
from attlas.recording import intervene, observe, uniform


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


PATTERNS = [
    everywhere,
    causal,
    window(2),
    strided(3),
    scattered(0.3, 1),
    both(causal, window(3)),
    either(window(1), landmarks(0, 20)),
]


def padding(kind: str, slots: int) -> torch.Tensor | None:
    """No padding; padding here and there, with a row of nothing else; padding on the left."""
    if kind == "none":
        return None
    if kind == "left":
        return torch.arange(slots) >= torch.tensor([[0], [5], [slots - 1]])
    token_mask = torch.rand(3, slots) > 0.4
    token_mask[1] = False
    return token_mask


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("kind", ["none", "scattered", "left"])
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize(("queries", "first"), [(40, None), (1, None), (6, 31), (7, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_the_kernels_and_their_explicit_twin_agree(
    pattern, kind, num_kv_heads, queries, first, training
):
    attention = MultiheadAttention(
        8,
        4,
        kdim=5,
        vdim=5,
        num_kv_heads=num_kv_heads,
        pattern=pattern,
        positions=RotaryPositions(2),
    )
    attention.double().train(training)
    torch.nn.init.normal_(attention.k_proj.bias)  # so that padding, once projected, is not zero
    query = torch.randn(3, queries, 8, dtype=torch.float64, requires_grad=True)
    source = torch.randn(3, 40, 5, dtype=torch.float64, requires_grad=True)
    token_mask = padding(kind, 40)
    wanted = [query, source, *attention.parameters()]
    results = []
    for read in (attention.attend, attention.forward_reference):
        context = read(query, attention.project_kv(source, token_mask), first)
        results.append((context, *torch.autograd.grad(context.sin().sum(), wanted)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-11)
    assert all(torch.isfinite(result).all() for result in results[0])


@pytest.mark.parametrize(
    "pattern", [everywhere, causal, strided(3), both(causal, window(3))], ids=str
)
@pytest.mark.parametrize("kind", ["none", "scattered", "left"])
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
def test_the_kernel_drops_the_weights_that_its_explicit_twin_drops(pattern, kind, num_kv_heads):
    attention = MultiheadAttention(
        8, 4, num_kv_heads=num_kv_heads, pattern=pattern, dropout=0.4
    ).double()
    source = torch.randn(3, 40, 8, dtype=torch.float64, requires_grad=True)
    token_mask = padding(kind, 40)
    wanted = [source, *attention.parameters()]
    results = []
    for read in (attention.attend, attention.forward_reference):
        with dropout_generator(torch.Generator().manual_seed(5)):
            context = read(source, attention.project_kv(source, token_mask))
        results.append((context, *torch.autograd.grad(context.sin().sum(), wanted)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-11)
    attention.eval()
    assert not torch.allclose(
        results[0][0], attention.attend(source, attention.project_kv(source, token_mask))
    )


def test_the_weights_in_use_are_those_that_an_intervention_leaves():
    attention = MultiheadAttention(8, 2, pattern=causal)
    source = torch.randn(2, 6, 8)
    memory = attention.project_kv(source)
    look = attention.forward_with_weights(source, memory)
    assert torch.equal(look.applied, attention.attention_weights(source, memory))
    assert torch.equal(look.applied, look.weights)
    torch.testing.assert_close(look.context, attention.attend(source, memory))
    with intervene(attention, uniform):
        look = attention.forward_with_weights(source, memory)
        assert torch.equal(look.context, attention.attend(source, memory))
    share = causal.mask(6, 6) / torch.arange(1, 7).unsqueeze(1)
    torch.testing.assert_close(look.applied, share.expand(2, 2, 6, 6))
    assert torch.equal(look.weights, attention.attention_weights(source, memory))


def test_a_look_is_noted_as_a_call_is():
    attention = MultiheadAttention(8, 2)
    source = torch.randn(2, 6, 8)
    memory = attention.project_kv(source)
    with observe(attention) as called:
        attention.attend(source, memory)
    with observe(attention) as looked:
        attention.forward_with_weights(source, memory)
    assert torch.equal(called[""].weights(), looked[""].weights())


def test_weights_are_dropped_where_their_dropout_alone_is_in_training():
    attention = MultiheadAttention(16, 2, dropout=0.5).eval()
    source = torch.randn(1, 6, 16)
    memory = attention.project_kv(source)
    attention.attn_dropout.train()
    assert not torch.allclose(attention.attend(source, memory), attention.attend(source, memory))


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_a_scaled_dot_product_is_its_formula_fused_and_explicit(pattern):
    attention = ScaledDotProductAttention(pattern=pattern).double()
    source = torch.randn(2, 30, 4).double()
    memory = attention.project_kv(source)
    scores = (source @ source.transpose(1, 2) / 2).masked_fill(~pattern.mask(30, 30), -torch.inf)
    expected = scores.softmax(-1)
    torch.testing.assert_close(attention.attention_weights(source, memory)[:, 0], expected)
    torch.testing.assert_close(attention.attend(source, memory), expected @ source)
    torch.testing.assert_close(attention.forward_reference(source, memory), expected @ source)


def test_a_scaled_dot_product_reads_keys_and_values_of_its_own():
    query, keys, values = torch.randn(2, 3, 4), torch.randn(2, 1, 5, 4), torch.randn(2, 1, 5, 7)
    context = ScaledDotProductAttention(scale=0.1)(query, KeyValueCache(keys, values))
    expected = (query.unsqueeze(1) @ keys.transpose(2, 3) * 0.1).softmax(-1) @ values
    torch.testing.assert_close(context, expected[:, 0])


def test_heads_that_share_keys_are_neighbours():
    shared, full = MultiheadAttention(8, 4, num_kv_heads=2), MultiheadAttention(8, 4)
    with torch.no_grad():
        for name in ("q_proj", "out_proj"):
            getattr(full, name).load_state_dict(getattr(shared, name).state_dict())
        for name in ("k_proj", "v_proj"):
            weight = getattr(shared, name).weight.view(2, 2, 8)
            getattr(full, name).weight.copy_(weight.repeat_interleave(2, 0).reshape(8, 8))
    source = torch.randn(2, 6, 8)
    memory = shared.project_kv(source)
    assert memory.keys.shape == (2, 2, 6, 2)
    torch.testing.assert_close(
        shared.attend(source, memory), full.attend(source, full.project_kv(source))
    )


def test_heads_may_be_of_any_width():
    attention = MultiheadAttention(6, 4, kdim=5, vdim=5, head_dim=3, value_dim=2, bias=False)
    query, source = torch.randn(2, 7, 6), torch.randn(2, 9, 5)
    memory = attention.project_kv(source)
    assert memory.keys.shape == (2, 4, 9, 3)
    assert memory.values.shape == (2, 4, 9, 2)
    assert attention.attend(query, memory).shape == (2, 7, 6)
    torch.testing.assert_close(
        attention.attend(query, memory), attention.forward_reference(query, memory)
    )
    assert sum(p.numel() for p in attention.parameters()) == 6 * 12 + 5 * 12 + 5 * 8 + 8 * 6


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("pattern", [causal, both(causal, window(3))], ids=str)
def test_a_growing_memory_gives_step_by_step_what_comes_at_once(pattern, rotary):
    positions = RotaryPositions(4) if rotary else None
    attention = MultiheadAttention(8, 2, pattern=pattern, positions=positions).double()
    source = torch.randn(2, 20, 8).double()
    at_once = attention.attend(source, attention.project_kv(source))
    memory = attention.project_kv(source[:, :1])
    steps = [attention.attend(source[:, :1], memory)]
    for t in range(1, 20):
        new = source[:, t : t + 1]
        memory = memory.append(attention.project_kv(new, key_offset=memory.num_keys))
        steps.append(attention.attend(new, memory))
    torch.testing.assert_close(torch.cat(steps, 1), at_once)


def test_rotary_attention_depends_on_distances_alone():
    attention = MultiheadAttention(8, 2, positions=RotaryPositions(4)).double()
    source = torch.randn(1, 6, 8).double()
    here = attention.attention_weights(source, attention.project_kv(source), query_offset=0)
    there = attention.attention_weights(
        source, attention.project_kv(source, key_offset=100), query_offset=100
    )
    elsewhere = attention.attention_weights(
        source, attention.project_kv(source, key_offset=100), query_offset=90
    )
    torch.testing.assert_close(there, here)
    assert (elsewhere - here).abs().max() > 1e-3


@pytest.fixture
def calls(monkeypatch):
    """What the fused kernel was asked, call by call."""
    requested = []
    kernel = F.scaled_dot_product_attention

    def counting(*tensors, **options):
        requested.append(options)
        return kernel(*tensors, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counting)
    return requested


@pytest.mark.parametrize("rotary", [False, True])
def test_no_score_exceeds_what_the_gains_of_the_norm_allow(rotary: bool) -> None:
    positions = RotaryPositions(4) if rotary else None
    attention = MultiheadAttention(8, 2, qk_norm=True, positions=positions)
    x = 1e6 * torch.randn(2, 5, 8)
    with torch.no_grad(), observe(attention) as trace:
        attention.attend(x, attention.project_kv(x))
        assert trace[""].scores(0, 5).abs().max() <= 4**0.5 + 1e-4
        attention.q_norm.weight.mul_(3.0)
        attention.k_norm.weight.mul_(-2.0)
    with torch.no_grad(), observe(attention) as trace:
        attention.attend(x, attention.project_kv(x))
        assert 4**0.5 < trace[""].scores(0, 5).abs().max() <= 6 * 4**0.5 + 1e-3


def test_the_norm_of_queries_and_keys_is_that_of_torch_in_each_head() -> None:
    attention = MultiheadAttention(8, 2, qk_norm=True, batch_first=True).double()
    x = torch.randn(1, 5, 8, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        attention.q_norm.weight.normal_()
        attention.k_norm.weight.normal_()
    q, k, v = (
        linear(x).view(1, 5, 2, 4).transpose(1, 2)
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    q = F.rms_norm(q, (4,), attention.q_norm.weight, 1e-6)
    k = F.rms_norm(k, (4,), attention.k_norm.weight, 1e-6)
    heads = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    expected = attention.out_proj(heads)
    found, _ = attention(x, x, x)
    torch.testing.assert_close(found, expected)
    leaves = [x, attention.q_norm.weight, attention.k_norm.weight]
    ours, theirs = (torch.autograd.grad(y.sin().sum(), leaves) for y in (found, expected))
    torch.testing.assert_close(ours, theirs)


def test_what_is_in_padding_reaches_no_gradient_through_the_norm() -> None:
    attention = MultiheadAttention(8, 2, qk_norm=True, bias=False)
    x, token_mask = torch.randn(2, 5, 8), torch.arange(5) < torch.tensor([[5], [2]])
    x[1, 2:] = torch.nan
    x.requires_grad_()
    output = attention.attend(x.nan_to_num(), attention.project_kv(x, token_mask))
    gradients = torch.autograd.grad(output[token_mask].sum(), list(attention.parameters()))
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_observing_keeps_the_fused_kernel_and_intervening_leaves_it(calls):
    attention = MultiheadAttention(8, 2)
    source = torch.randn(1, 6, 8)
    memory = attention.project_kv(source)
    plain = attention.attend(source, memory)
    with observe(attention) as trace:
        heard = attention.attend(source, memory)
    assert len(calls) == 2
    assert torch.equal(heard, plain)
    torch.testing.assert_close(trace[""].weights(), attention.attention_weights(source, memory))
    with intervene(attention, uniform):
        changed = attention.attend(source, memory)
    assert len(calls) == 2
    mean = attention.out_proj(memory.values.mean(2).flatten(1)).unsqueeze(1)
    torch.testing.assert_close(changed, mean.expand(1, 6, 8))


def test_no_mask_is_made_where_none_is_needed(calls):
    everyone, past = MultiheadAttention(8, 2), MultiheadAttention(8, 2, pattern=causal)
    source = torch.randn(1, 6, 8)
    everyone.attend(source, everyone.project_kv(source))
    past(source, past.project_kv(source))
    past(source[:, -1:], past.project_kv(source))
    past(source[:, -2:], past.project_kv(source))
    assert [options["is_causal"] for options in calls] == [False, True, False, False]
    assert [options["attn_mask"] is None for options in calls] == [True, True, True, False]


def test_dropout_falls_in_training_alone():
    attention = MultiheadAttention(16, 2, dropout=0.5)
    source = torch.randn(1, 6, 16)
    memory = attention.project_kv(source)
    assert not torch.allclose(attention.attend(source, memory), attention.attend(source, memory))
    attention.eval()
    torch.testing.assert_close(
        attention.attend(source, memory), attention.forward_reference(source, memory)
    )


def test_fused_dropout_keeps_the_mean_and_drops_its_share():
    attention = ScaledDotProductAttention(dropout=0.25)
    values = torch.eye(200).expand(1, 1, 200, 200)  # the context is the weights
    memory = KeyValueCache(torch.zeros(1, 1, 200, 4), values)
    for read in (attention.attend, attention.forward_reference):
        weights = read(torch.zeros(1, 100, 4), memory)
        assert abs((weights == 0).float().mean().item() - 0.25) < 0.02
        assert abs(weights.sum(-1).mean().item() - 1) < 0.02


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("pattern", [everywhere, causal, window(1)], ids=str)
def test_half_precision_stays_finite_and_near(dtype, pattern):
    attention = MultiheadAttention(16, 4, num_kv_heads=2, pattern=pattern)
    source, token_mask = torch.randn(2, 80, 16), torch.rand(2, 80) > 0.5
    exact = attention.attend(source, attention.project_kv(source, token_mask))
    attention.to(dtype)
    memory = attention.project_kv(source.to(dtype), token_mask)
    for read in (attention.attend, attention.forward_reference):
        context = read(source.to(dtype), memory)
        assert context.dtype == dtype
        torch.testing.assert_close(context.float(), exact, rtol=0.05, atol=0.05)


def test_an_empty_memory_reads_nothing():
    attention = MultiheadAttention(8, 2)
    context = attention.attend(torch.randn(2, 3, 8), attention.project_kv(torch.randn(2, 0, 8)))
    assert torch.equal(context, torch.zeros(2, 3, 8))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"embed_dim": 10, "num_heads": 4},
            "expected an embed_dim that num_heads divides; got embed_dim 10 for 4 heads; "
            "choose num_heads that divides embed_dim, or give head_dim",
        ),
        (
            {"embed_dim": 8, "num_heads": 0},
            "expected num_heads as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"embed_dim": 8, "num_heads": 4, "num_kv_heads": 3},
            "expected a num_heads that num_kv_heads divides; got 4 heads for 3 num_kv_heads; "
            "choose num_kv_heads that divides num_heads",
        ),
        (
            {"embed_dim": 8, "num_heads": 4, "num_kv_heads": 0},
            "expected num_kv_heads as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"embed_dim": 8, "num_heads": 2, "positions": RotaryPositions(2)},
            "expected rotary positions of the head's width, 4; got RotaryPositions(2); "
            "pass RotaryPositions(4)",
        ),
        (
            {"embed_dim": 8, "num_heads": 2, "head_dim": 0},
            "expected head_dim as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"embed_dim": 8, "num_heads": 2, "scale": 0.0},
            "expected a scale above 0; got 0.0; leave it out for 1 / √width",
        ),
        (
            {"embed_dim": 8, "num_heads": 2, "scale": float("inf")},
            "expected a scale above 0; got inf; leave it out for 1 / √width",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(options, text):
    with pytest.raises(AttlasError) as caught:
        MultiheadAttention(**options)
    assert str(caught.value) == text


def test_a_memory_of_another_layer_is_refused():
    with pytest.raises(AttlasError) as caught:
        MultiheadAttention(8, 2)(
            torch.randn(1, 3, 8), MultiheadAttention(8, 4).project_kv(torch.randn(1, 3, 8))
        )
    assert str(caught.value) == (
        "expected keys of shape (batch, kv_heads, keys, 4) for 2 head(s); got shape (1, 4, 3, 2); "
        "make the cache with `project_kv` of this layer, from a source of the right width"
    )
    with pytest.raises(AttlasError, match=r"for 1 head\(s\); got shape \(1, 3, 4\)"):
        ScaledDotProductAttention()(
            torch.randn(1, 3, 4), KeyValueCache(torch.randn(1, 3, 4), torch.randn(1, 3, 4))
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("slots", [1, 7, 15, 16, 40])
@pytest.mark.parametrize(("memories", "each"), [(1, 1), (2, 3), (40, 5)])
@pytest.mark.parametrize("training", [True, False])
def test_a_glance_reads_what_a_call_reads(dtype, num_kv_heads, slots, memories, each, training):
    turned = RotaryPositions(4)
    attention = (
        MultiheadAttention(16, 4, num_kv_heads=num_kv_heads, positions=turned)
        .to(dtype)
        .train(training)
    )
    token_mask = torch.rand(memories * each, slots) < 0.6
    token_mask[:, -1] = True
    query = torch.randn(memories * each, 16, dtype=dtype)
    memory = attention.project_kv(torch.randn(memories, slots, 16, dtype=dtype))
    spread = memory.select(torch.arange(memories).repeat_interleave(each))
    bias = (
        torch.zeros(token_mask.shape)
        .masked_fill(~token_mask, -torch.inf)
        .view(memories, 1, each, slots)
    )
    with torch.no_grad():
        for seen, added in ((None, None), (token_mask, bias)):
            alone = KeyValueCache(spread.keys, spread.values, seen)
            wanted = attention.attend(query.unsqueeze(1), alone, 9).squeeze(1)
            rough = {"rtol": 0.05, "atol": 0.05} if dtype == torch.bfloat16 else {}
            torch.testing.assert_close(
                attention.decode_step(query, memory, 9, added), wanted, **rough
            )


def test_a_layer_that_was_pickled_before_qk_norm_still_attends():
    layer = MultiheadAttention(16, 4, batch_first=True)
    older = MultiheadAttention.__new__(MultiheadAttention)
    state = {name: value for name, value in layer.__dict__.items() if name[2:] != "norm"}
    assert len(state) < len(layer.__dict__)
    older.__setstate__(state)
    x = torch.randn(2, 5, 16)
    for ours, expected in zip(older(x, x, x), layer(x, x, x), strict=True):
        assert torch.equal(ours, expected)
    copied = deepcopy(MultiheadAttention(16, 4, qk_norm=True))
    assert isinstance(copied.q_norm, torch.nn.RMSNorm)
