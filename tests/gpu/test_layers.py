"""What a GPU computes is what the CPU computes: outputs and gradients."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from torch.profiler import ProfilerActivity, profile

from attlas.layers import MultiheadAttention, RotaryPositions, ScaledDotProductAttention
from attlas.ops.linear import Autocast, autocast
from attlas.patterns import Pattern, both, causal, either, everywhere, landmarks, strided, window
from attlas.recording import observe
from support.mechanisms import MECHANISMS, Layout, Mechanism, Scene, layouts

GPU = torch.device("cuda")
of_every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)


def on_gpu(scene: Scene) -> Scene:
    token_mask = None if scene.token_mask is None else scene.token_mask.to(GPU)
    return replace(
        scene, attention=deepcopy(scene.attention).to(GPU), query=scene.query.to(GPU),
        source=scene.source.to(GPU), token_mask=token_mask,
    )  # fmt: skip


def close(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    assert ours.device.type == "cuda"
    torch.testing.assert_close(ours.cpu(), theirs, atol=tolerance, rtol=tolerance)


@of_every_mechanism
@given(layout=layouts())
def test_every_mechanism_reads_on_a_gpu_as_on_the_cpu(mechanism: Mechanism, layout: Layout) -> None:
    here = layout.on(mechanism)
    there = on_gpu(here)
    for one, other in zip(there.outcome(), here.outcome(), strict=True):
        close(one, other)
    close(there.attention_weights(), here.attention_weights())


@of_every_mechanism
@given(layout=layouts())
def test_being_listened_to_changes_nothing_on_a_gpu(mechanism: Mechanism, layout: Layout) -> None:
    scene = on_gpu(layout.on(mechanism))
    plain = scene.read()
    with observe(scene.attention) as trace:
        heard = scene.read()
    assert torch.equal(heard, plain)
    close(trace[next(iter(trace))].weights().double(), scene.attention_weights().cpu(), 1e-6)


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "pattern",
    [everywhere, causal, window(16), both(causal, window(30)), strided(5),
     either(window(9), landmarks(0, 50))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("positions", [None, RotaryPositions(32)], ids=["plain", "rotary"])
def test_many_heads_over_many_positions(
    pattern: Pattern, positions: Any, dtype: torch.dtype, train: bool
) -> None:
    torch.manual_seed(1)
    attention = MultiheadAttention(64, 2, pattern=pattern, positions=positions).train(train)
    source, token_mask = (
        torch.randn(3, 300, 64),
        torch.arange(300) < torch.tensor([[300], [211], [1]]),
    )
    there = deepcopy(attention).to(GPU, dtype)

    def outcome(
        layer: MultiheadAttention, source: torch.Tensor, token_mask: torch.Tensor
    ) -> list[torch.Tensor]:
        source = source.clone().requires_grad_()
        context = layer.attend(source, layer.project_kv(source, token_mask)).float()
        context = context * token_mask.unsqueeze(-1)
        context.sin().sum().backward()
        assert source.grad is not None
        return [context.detach(), source.grad.float()]

    ours = outcome(there, source.to(GPU, dtype), token_mask.to(GPU))
    theirs = outcome(attention, source, token_mask)
    tolerance = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}[dtype]
    for one, other in zip(ours, theirs, strict=True):
        assert one.device.type == "cuda"
        assert (one.cpu() - other).norm() <= tolerance * other.norm()


def test_dropout_on_a_gpu_keeps_the_mean_and_differs_from_call_to_call() -> None:
    torch.manual_seed(1)
    attention = ScaledDotProductAttention(dropout=0.5).to(GPU)
    query = torch.randn(1, 8, 16, device=GPU)
    memory = attention.project_kv(torch.randn(1, 50, 16, device=GPU))
    calls = torch.stack([attention.attend(query, memory) for _ in range(4000)])
    assert not torch.equal(calls[0], calls[1])
    torch.testing.assert_close(calls.mean(0), attention.eval()(query, memory), atol=0.05, rtol=0)


@pytest.mark.parametrize("name", ["fp16", *["bf16"] * torch.cuda.is_bf16_supported(False)])
def test_half_precision_takes_no_kernel_that_plans_for_every_new_shape(name: Autocast) -> None:
    layer, source = MultiheadAttention(64, 1).to(GPU), torch.randn(2, 9, 64, device=GPU)
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as found, autocast(name, GPU):
        layer.attend(source, layer.project_kv(source)).sum().backward()
    called = {event.key for event in found.key_averages()}
    assert any("_efficient_attention" in one or "_flash_attention" in one for one in called)
    assert not any("_cudnn_attention" in one for one in called)
