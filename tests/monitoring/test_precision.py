"""How far what a layer reads is from exact attention, in roundings of the type of its inputs."""

import subprocess
import sys

import pytest
import torch

import attlas
from attlas.layers import MultiheadAttention, scaled_dot_product
from attlas.monitoring.precision import context_errors, unit_roundoff
from attlas.patterns import causal, everywhere
from attlas.recording.maps.factored import FactoredAttentionMap

FLOAT32, FLOAT16, BFLOAT16 = 2.0**-24, 2.0**-11, 2.0**-8


def drawn(size, kv_heads=4, dtype=torch.float32, pattern=everywhere):
    """A map, the values, and which queries count; scores grow with the size."""
    generator = torch.Generator().manual_seed(int(size * 10) + kv_heads)
    query = size * torch.randn(3, 4, 20, 8, generator=generator, dtype=torch.float64)
    keys, values = (
        torch.randn(3, kv_heads, 20, 8, generator=generator, dtype=torch.float64) for _ in "kv"
    )
    query, keys, values = (tensor.to(dtype) for tensor in (query, keys, values))
    mask = torch.arange(20) < torch.tensor([[20], [7], [1]])
    shown = FactoredAttentionMap(query, keys, 8**-0.5, pattern, 0, mask)
    return shown, values, mask


def read(attention_map, values, dtype):
    """What a kernel reads that computes in another type, the softmax without its maximum."""
    groups = attention_map.query.shape[1] // values.shape[1]
    keys, values = (x.to(dtype).repeat_interleave(groups, 1) for x in (attention_map.keys, values))
    scores = attention_map.query.to(dtype) @ keys.mT * attention_map.scale
    weights = torch.exp(scores) * attention_map.allowed_rows(0, attention_map.shape[2])
    return (weights / weights.sum(-1, keepdim=True)) @ values


@pytest.mark.parametrize("pattern", [everywhere, causal], ids=str)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("size", [0.1, 1.0, 3.0, 30.0])
def test_a_kernel_in_the_type_of_its_inputs_is_off_by_few_roundings(size, kv_heads, pattern):
    shown, values, mask = drawn(size, kv_heads, pattern=pattern)
    groups = 4 // kv_heads
    keys, wide = (x.repeat_interleave(groups, 1) for x in (shown.keys, values))
    context = torch.nn.functional.scaled_dot_product_attention(
        shown.query, keys, wide, attn_mask=shown.allowed_rows(0, 20)
    )
    errors = context_errors(shown, context, values, mask)
    assert errors.shape == (4,)
    assert (errors < 8).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [0.1, 1.0, 2.0])
def test_a_kernel_in_a_lower_precision_is_off_by_hundreds(size, dtype):
    shown, values, mask = drawn(size)
    assert (context_errors(shown, read(shown, values, dtype), values, mask) > 90).all()
    shown, values, mask = drawn(size, dtype=dtype)  # which its inputs have, too
    assert (context_errors(shown, read(shown, values, dtype), values, mask) < 8).all()


def test_the_error_is_that_of_the_formula():
    shown, values, mask = drawn(1.0)
    context = read(shown, values, torch.float16)
    q, k, v = (x.double() for x in (shown.query, shown.keys, values))
    scores = (q @ k.mT) * shown.scale
    scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    apart = (context.double() - torch.softmax(scores, -1) @ v).abs().amax(3)
    apart = (apart * mask[:, None]).amax(2)
    lengths = [(x.norm(dim=-1) * mask[:, None]).amax(2) for x in (q, k)]
    bound = 1 + shown.scale * lengths[0] * lengths[1]
    expected = (apart / (FLOAT32 * bound * v.abs().amax((2, 3)))).amax(0)
    found = torch.from_numpy(context_errors(shown, context, values, mask))
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=0.0)


def test_queries_of_padding_do_not_count_and_what_is_no_number_is_the_largest():
    shown, values, mask = drawn(1.0)
    context = read(shown, values, torch.float32)
    junk = context.masked_fill(~mask[:, None, :, None], torch.nan)
    assert (context_errors(shown, junk, values, mask) < 8).all()
    junk[0, 1, 0, 0] = torch.nan
    errors = context_errors(shown, junk, values, mask)
    assert (errors == torch.finfo(torch.float32).max).tolist() == [False, True, False, False]


def test_a_rounding_is_one_of_the_type_that_is_multiplied():
    one = torch.zeros(1)
    assert unit_roundoff(one) == FLOAT32
    assert unit_roundoff(one.half()) == FLOAT16
    assert unit_roundoff(one.bfloat16()) == BFLOAT16
    with torch.autocast("cpu", torch.bfloat16):
        assert unit_roundoff(one) == BFLOAT16
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert unit_roundoff(one) == FLOAT16
        torch.set_float32_matmul_precision("medium")
        assert unit_roundoff(one) == BFLOAT16
    finally:
        torch.set_float32_matmul_precision(before)


def reading_of(layer, monkeypatch, dtype):
    """What a watch says of a layer whose kernel computes in this type."""

    def kernel(query, cache, *rest):
        low = [x.to(dtype) for x in (query, cache.keys, cache.values)]
        shown = FactoredAttentionMap(low[0], low[1], query.shape[-1] ** -0.5, everywhere, 0)
        return read(shown, low[2], dtype).to(query.dtype)

    if dtype is not None:
        monkeypatch.setattr(scaled_dot_product, "dense_attention", kernel)
    torch.manual_seed(0)
    x, alarms = torch.randn(2, 9, 16), []
    with attlas.watch(layer, every=1, on_alarm=alarms.append) as watch:
        layer(x, x, x, need_weights=False)
        return watch.step(), [alarm.kind for alarm in alarms]


def test_a_watch_tells_a_kernel_in_half_precision_at_once(monkeypatch):
    layer = MultiheadAttention(16, 4, batch_first=True)
    reading, kinds = reading_of(layer, monkeypatch, None)
    assert all(0 < head.context_error < 8 for head in reading.heads)
    assert kinds == []
    reading, kinds = reading_of(layer, monkeypatch, torch.float16)
    assert all(head.context_error > 90 for head in reading.heads)
    assert kinds == ["context_error"]


def test_with_dropout_of_weights_nothing_is_compared(monkeypatch):
    layer = MultiheadAttention(16, 4, batch_first=True, dropout=0.1)
    reading, kinds = reading_of(layer, monkeypatch, None)
    assert all(head.context_error is None for head in reading.heads)
    assert kinds == []


def watched(layer, x):
    """The reading of one call, and the kinds of its alarms."""
    alarms = []
    with attlas.watch(layer, every=1, on_alarm=alarms.append) as watch:
        layer(x, x, x, need_weights=False)
        return watch.step(), [alarm.kind for alarm in alarms]


@pytest.mark.parametrize("factor", [1.0, 1e-5, 1e-7, 1e-9])
def test_values_below_the_smallest_normal_number_are_no_alarm(factor):
    torch.manual_seed(0)
    layer = MultiheadAttention(16, 4, batch_first=True, bias=False, dtype=torch.float16)
    x = torch.randn(2, 9, 16, dtype=torch.float16)
    with torch.no_grad():
        layer.v_proj.weight.mul_(factor)
    reading, kinds = watched(layer, x)
    assert all(0 <= head.context_error < 8 for head in reading.heads)
    assert kinds == []


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_without_finite_numbers_nothing_is_compared(name, number):
    torch.manual_seed(0)
    layer = MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        layer.get_submodule(name).bias[:4] = number  # the first head
    reading, kinds = watched(layer, torch.randn(2, 9, 16))
    assert [head.context_error is None for head in reading.heads] == [True, False, False, False]
    assert "context_error" not in kinds


def test_autocast_does_not_round_what_the_context_is_compared_with():
    shown, values, mask = drawn(1.0, dtype=torch.float32)
    context = read(shown, values, torch.bfloat16)
    alone = context_errors(shown, context, values, mask)
    with torch.autocast("cpu", torch.bfloat16):
        under = context_errors(shown, context, values, mask)
        assert torch.is_autocast_enabled("cpu")
    # Another unit of the same difference; η of float32 and bfloat16 is nothing beside it.
    assert under == pytest.approx(alone * FLOAT32 / BFLOAT16, rel=1e-6)


def test_the_newer_settings_of_torch_are_read():
    script = """
import torch, attlas
torch.backends.fp32_precision = "tf32"
layer = attlas.layers.MultiheadAttention(16, 4, batch_first=True)
x = torch.randn(2, 9, 16)
with attlas.watch(layer, every=1) as watch:
    layer(x, x, x, need_weights=False)
    print(max(head.context_error for head in watch.step().heads))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 8
