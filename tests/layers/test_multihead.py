import pytest
import torch
import torch.nn.functional as F

from attlas.errors import AttlasError
from attlas.layers import MultiHead, RotaryPositions, ScaledDotProduct
from attlas.ops.cache import Memory
from attlas.ops.dropout import dropping_by
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
    real = torch.rand(3, slots) > 0.4
    real[1] = False
    return real


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("kind", ["none", "scattered", "left"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize(("queries", "first"), [(40, None), (1, None), (6, 31), (7, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_the_kernels_and_their_explicit_twin_agree(
    pattern, kind, key_heads, queries, first, training
):
    attention = MultiHead(
        8, 4, source_width=5, key_heads=key_heads, pattern=pattern, positions=RotaryPositions(2)
    )
    attention.double().train(training)
    torch.nn.init.normal_(attention.of_key.bias)  # so that padding, once projected, is not zero
    query = torch.randn(3, queries, 8, dtype=torch.float64, requires_grad=True)
    source = torch.randn(3, 40, 5, dtype=torch.float64, requires_grad=True)
    real = padding(kind, 40)
    wanted = [query, source, *attention.parameters()]
    results = []
    for read in (attention, attention.explicit):
        context = read(query, attention.remember(source, real), first)
        results.append((context, *torch.autograd.grad(context.sin().sum(), wanted)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-11)
    assert all(torch.isfinite(result).all() for result in results[0])


@pytest.mark.parametrize(
    "pattern", [everywhere, causal, strided(3), both(causal, window(3))], ids=str
)
@pytest.mark.parametrize("kind", ["none", "scattered", "left"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_the_kernel_drops_the_weights_that_its_explicit_twin_drops(pattern, kind, key_heads):
    attention = MultiHead(8, 4, key_heads=key_heads, pattern=pattern, dropout=0.4).double()
    source = torch.randn(3, 40, 8, dtype=torch.float64, requires_grad=True)
    real = padding(kind, 40)
    wanted = [source, *attention.parameters()]
    results = []
    for read in (attention, attention.explicit):
        with dropping_by(torch.Generator().manual_seed(5)):
            context = read(source, attention.remember(source, real))
        results.append((context, *torch.autograd.grad(context.sin().sum(), wanted)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-11)
    attention.eval()
    assert not torch.allclose(results[0][0], attention(source, attention.remember(source, real)))


def test_the_weights_in_use_are_those_that_an_intervention_leaves():
    attention = MultiHead(8, 2, pattern=causal)
    source = torch.randn(2, 6, 8)
    memory = attention.remember(source)
    look = attention.look(source, memory)
    assert torch.equal(look.used, attention.weigh(source, memory))
    assert torch.equal(look.used, look.weights)
    torch.testing.assert_close(look.context, attention(source, memory))
    with intervene(attention, uniform):
        look = attention.look(source, memory)
        assert torch.equal(look.context, attention(source, memory))
    share = causal.mask(6, 6) / torch.arange(1, 7).unsqueeze(1)
    torch.testing.assert_close(look.used, share.expand(2, 2, 6, 6))
    assert torch.equal(look.weights, attention.weigh(source, memory))


def test_a_look_is_noted_as_a_call_is():
    attention = MultiHead(8, 2)
    source = torch.randn(2, 6, 8)
    memory = attention.remember(source)
    with observe(attention) as called:
        attention(source, memory)
    with observe(attention) as looked:
        attention.look(source, memory)
    assert torch.equal(called[""].weights(), looked[""].weights())


def test_weights_are_dropped_where_their_dropout_alone_is_in_training():
    attention = MultiHead(16, 2, dropout=0.5).eval()
    source = torch.randn(1, 6, 16)
    memory = attention.remember(source)
    attention.dropout.train()
    assert not torch.allclose(attention(source, memory), attention(source, memory))


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_a_scaled_dot_product_is_its_formula_fused_and_explicit(pattern):
    attention = ScaledDotProduct(pattern=pattern).double()
    source = torch.randn(2, 30, 4).double()
    memory = attention.remember(source)
    scores = (source @ source.transpose(1, 2) / 2).masked_fill(~pattern.mask(30, 30), -torch.inf)
    expected = scores.softmax(-1)
    torch.testing.assert_close(attention.weigh(source, memory)[:, 0], expected)
    torch.testing.assert_close(attention(source, memory), expected @ source)
    torch.testing.assert_close(attention.explicit(source, memory), expected @ source)


def test_a_scaled_dot_product_reads_keys_and_values_of_its_own():
    query, keys, values = torch.randn(2, 3, 4), torch.randn(2, 1, 5, 4), torch.randn(2, 1, 5, 7)
    context = ScaledDotProduct(scale=0.1)(query, Memory(keys, values))
    expected = (query.unsqueeze(1) @ keys.transpose(2, 3) * 0.1).softmax(-1) @ values
    torch.testing.assert_close(context, expected[:, 0])


def test_heads_that_share_keys_are_neighbours():
    shared, full = MultiHead(8, 4, key_heads=2), MultiHead(8, 4)
    with torch.no_grad():
        for name in ("of_query", "of_heads"):
            getattr(full, name).load_state_dict(getattr(shared, name).state_dict())
        for name in ("of_key", "of_value"):
            weight = getattr(shared, name).weight.view(2, 2, 8)
            getattr(full, name).weight.copy_(weight.repeat_interleave(2, 0).reshape(8, 8))
    source = torch.randn(2, 6, 8)
    memory = shared.remember(source)
    assert memory.keys.shape == (2, 2, 6, 2)
    torch.testing.assert_close(shared(source, memory), full(source, full.remember(source)))


def test_heads_may_be_of_any_width():
    attention = MultiHead(6, 4, source_width=5, head_width=3, value_width=2, bias=False)
    query, source = torch.randn(2, 7, 6), torch.randn(2, 9, 5)
    memory = attention.remember(source)
    assert memory.keys.shape == (2, 4, 9, 3)
    assert memory.values.shape == (2, 4, 9, 2)
    assert attention(query, memory).shape == (2, 7, 6)
    torch.testing.assert_close(attention(query, memory), attention.explicit(query, memory))
    assert sum(p.numel() for p in attention.parameters()) == 6 * 12 + 5 * 12 + 5 * 8 + 8 * 6


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("pattern", [causal, both(causal, window(3))], ids=str)
def test_a_growing_memory_gives_step_by_step_what_comes_at_once(pattern, rotary):
    positions = RotaryPositions(4) if rotary else None
    attention = MultiHead(8, 2, pattern=pattern, positions=positions).double()
    source = torch.randn(2, 20, 8).double()
    at_once = attention(source, attention.remember(source))
    memory = attention.remember(source[:, :1])
    steps = [attention(source[:, :1], memory)]
    for t in range(1, 20):
        new = source[:, t : t + 1]
        memory = memory.extend(attention.remember(new, first=memory.slots))
        steps.append(attention(new, memory))
    torch.testing.assert_close(torch.cat(steps, 1), at_once)


def test_rotary_attention_depends_on_distances_alone():
    attention = MultiHead(8, 2, positions=RotaryPositions(4)).double()
    source = torch.randn(1, 6, 8).double()
    here = attention.weigh(source, attention.remember(source), first=0)
    there = attention.weigh(source, attention.remember(source, first=100), first=100)
    elsewhere = attention.weigh(source, attention.remember(source, first=100), first=90)
    torch.testing.assert_close(there, here)
    assert (elsewhere - here).abs().max() > 1e-3


@pytest.fixture
def calls(monkeypatch):
    """What the fused kernel was asked, call by call."""
    asked = []
    kernel = F.scaled_dot_product_attention

    def counting(*tensors, **options):
        asked.append(options)
        return kernel(*tensors, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counting)
    return asked


def test_observing_keeps_the_fused_kernel_and_intervening_leaves_it(calls):
    attention = MultiHead(8, 2)
    source = torch.randn(1, 6, 8)
    memory = attention.remember(source)
    plain = attention(source, memory)
    with observe(attention) as trace:
        heard = attention(source, memory)
    assert len(calls) == 2
    assert torch.equal(heard, plain)
    torch.testing.assert_close(trace[""].weights(), attention.weigh(source, memory))
    with intervene(attention, uniform):
        changed = attention(source, memory)
    assert len(calls) == 2
    mean = attention.of_heads(memory.values.mean(2).flatten(1)).unsqueeze(1)
    torch.testing.assert_close(changed, mean.expand(1, 6, 8))


def test_no_mask_is_made_where_none_is_needed(calls):
    everyone, past = MultiHead(8, 2), MultiHead(8, 2, pattern=causal)
    source = torch.randn(1, 6, 8)
    everyone(source, everyone.remember(source))
    past(source, past.remember(source))
    past(source[:, -1:], past.remember(source))
    past(source[:, -2:], past.remember(source))
    assert [options["is_causal"] for options in calls] == [False, True, False, False]
    assert [options["attn_mask"] is None for options in calls] == [True, True, True, False]


def test_dropout_falls_in_training_alone():
    attention = MultiHead(16, 2, dropout=0.5)
    source = torch.randn(1, 6, 16)
    memory = attention.remember(source)
    assert not torch.allclose(attention(source, memory), attention(source, memory))
    attention.eval()
    torch.testing.assert_close(attention(source, memory), attention.explicit(source, memory))


def test_fused_dropout_keeps_the_mean_and_drops_its_share():
    attention = ScaledDotProduct(dropout=0.25)
    values = torch.eye(200).expand(1, 1, 200, 200)  # the context is the weights
    memory = Memory(torch.zeros(1, 1, 200, 4), values)
    for read in (attention, attention.explicit):
        weights = read(torch.zeros(1, 100, 4), memory)
        assert abs((weights == 0).float().mean().item() - 0.25) < 0.02
        assert abs(weights.sum(-1).mean().item() - 1) < 0.02


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("pattern", [everywhere, causal, window(1)], ids=str)
def test_half_precision_stays_finite_and_near(dtype, pattern):
    attention = MultiHead(16, 4, key_heads=2, pattern=pattern)
    source, real = torch.randn(2, 80, 16), torch.rand(2, 80) > 0.5
    exact = attention(source, attention.remember(source, real))
    attention.to(dtype)
    memory = attention.remember(source.to(dtype), real)
    for read in (attention, attention.explicit):
        context = read(source.to(dtype), memory)
        assert context.dtype == dtype
        torch.testing.assert_close(context.float(), exact, rtol=0.05, atol=0.05)


def test_an_empty_memory_reads_nothing():
    attention = MultiHead(8, 2)
    context = attention(torch.randn(2, 3, 8), attention.remember(torch.randn(2, 0, 8)))
    assert torch.equal(context, torch.zeros(2, 3, 8))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"width": 10, "heads": 4},
            "wanted a width that the heads share evenly; got width 10 for 4 heads; "
            "choose heads that divide the width, or give head_width",
        ),
        (
            {"width": 8, "heads": 0},
            "wanted heads as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"width": 8, "heads": 4, "key_heads": 3},
            "wanted heads that share key_heads evenly; got 4 heads for 3 key_heads; "
            "choose key_heads that divide the heads",
        ),
        (
            {"width": 8, "heads": 4, "key_heads": 0},
            "wanted key_heads as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"width": 8, "heads": 2, "positions": RotaryPositions(2)},
            "wanted rotary positions of the head's width, 4; got RotaryPositions(2); "
            "pass RotaryPositions(4)",
        ),
        (
            {"width": 8, "heads": 2, "head_width": 0},
            "wanted head_width as a whole number ≥ 1; got 0; choose such a size",
        ),
        (
            {"width": 8, "heads": 2, "scale": 0.0},
            "wanted a scale above 0; got 0.0; leave it out for 1 / √width",
        ),
        (
            {"width": 8, "heads": 2, "scale": float("inf")},
            "wanted a scale above 0; got inf; leave it out for 1 / √width",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(options, text):
    with pytest.raises(AttlasError) as caught:
        MultiHead(options.pop("width"), options.pop("heads"), **options)
    assert str(caught.value) == text


def test_a_memory_of_another_layer_is_refused():
    with pytest.raises(AttlasError) as caught:
        MultiHead(8, 2)(torch.randn(1, 3, 8), MultiHead(8, 4).remember(torch.randn(1, 3, 8)))
    assert str(caught.value) == (
        "wanted keys of shape (batch, key_heads, slots, 4) for 2 head(s); got shape (1, 4, 3, 2); "
        "make the memory with `remember` of this layer, from a source of the right width"
    )
    with pytest.raises(AttlasError, match=r"for 1 head\(s\); got shape \(1, 3, 4\)"):
        ScaledDotProduct()(torch.randn(1, 3, 4), Memory(torch.randn(1, 3, 4), torch.randn(1, 3, 4)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("slots", [1, 7, 15, 16, 40])
@pytest.mark.parametrize(("memories", "each"), [(1, 1), (2, 3), (40, 5)])
@pytest.mark.parametrize("training", [True, False])
def test_a_glance_reads_what_a_call_reads(dtype, key_heads, slots, memories, each, training):
    turned = RotaryPositions(4)
    attention = MultiHead(16, 4, key_heads=key_heads, positions=turned).to(dtype).train(training)
    real = torch.rand(memories * each, slots) < 0.6
    real[:, -1] = True
    query = torch.randn(memories * each, 16, dtype=dtype)
    memory = attention.remember(torch.randn(memories, slots, 16, dtype=dtype))
    spread = memory.select(torch.arange(memories).repeat_interleave(each))
    bias = torch.zeros(real.shape).masked_fill(~real, -torch.inf).view(memories, 1, each, slots)
    with torch.no_grad():
        for seen, added in ((None, None), (real, bias)):
            alone = Memory(spread.keys, spread.values, seen)
            wanted = attention(query.unsqueeze(1), alone, 9).squeeze(1)
            rough = {"rtol": 0.05, "atol": 0.05} if dtype == torch.bfloat16 else {}
            torch.testing.assert_close(attention.glance(query, memory, 9, added), wanted, **rough)
