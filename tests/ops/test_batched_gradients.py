"""Many gradients in one backward pass (`is_grads_batched`) are those of as many passes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attlas.layers import AdditiveAttention
from attlas.models import RecurrentModel
from attlas.ops.additive import recomputed_scores
from attlas.ops.attention import math_attention
from attlas.ops.deferred_linear import DeferredLinear
from attlas.ops.deferred_reads import LONG
from attlas.ops.linear import linear
from support.recurrent_kinds import LOOKING, SOURCES, TARGETS, made


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


def recurrence(start: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    step = DeferredLinear(weight, bias)
    return step(torch.tanh(step(start)))


def read_of_long_source(query: Tensor, source: Tensor) -> Tensor:
    torch.manual_seed(0)
    context, weights = AdditiveAttention(4, 4, 4)(query, source)
    return torch.cat([context, weights], dim=-1)


CASES: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "additive scores": (recomputed_scores, [drawn(2, 3, 4), drawn(2, 5, 4), drawn(1, 4)]),
    "additive attention": (read_of_long_source, [drawn(2, 3, 4), drawn(2, LONG, 4)]),
    "a loop over one matrix": (recurrence, [drawn(2, 4), drawn(4, 4), drawn(4)]),
    "attention": (math_attention, [drawn(1, 2, 3, 4), drawn(1, 2, 5, 4), drawn(1, 2, 5, 4)]),
    "grouped attention": (
        lambda q, k, v: math_attention(q, k, v, enable_gqa=True, is_causal=True),
        [drawn(1, 4, 3, 4), drawn(1, 2, 3, 4), drawn(1, 2, 3, 5)],
    ),
    "a large product": (
        lambda x, weight: linear(x, weight)[:2, :2],
        [drawn(256, 512), drawn(512, 512)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_of_every_fast_path(name: str) -> None:
    function, inputs = CASES[name]
    compare(function(*inputs), inputs)


def compare(output: Tensor, inputs: list[Tensor]) -> None:
    count = min(output.numel(), 6)
    rows = torch.eye(output.numel())[:: output.numel() // count][:count].view(-1, *output.shape)
    batched = torch.autograd.grad(
        output, inputs, rows, is_grads_batched=True, retain_graph=True, allow_unused=True
    )
    single = [
        torch.autograd.grad(output, inputs, row, retain_graph=True, allow_unused=True)
        for row in rows
    ]
    for found, expected in zip(batched, zip(*single, strict=True), strict=True):
        assert (found is None) == (expected[0] is None)
        if found is not None:
            torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOOKING)
def test_of_every_kind_of_recurrent_model_with_a_long_source(name: str) -> None:
    model: RecurrentModel = made(LOOKING[name]).float().eval()
    ids = torch.arange(LONG + 2)[None] % (SOURCES - 4) + 4
    target = torch.arange(3)[None] % (TARGETS - 4) + 4
    logits = model(ids, target)
    parameters = [p for p in model.parameters() if p.requires_grad]
    compare(logits[:, -1, :4], parameters)


def test_a_jacobian_of_a_module_is_vectorized() -> None:
    torch.manual_seed(0)
    attention, source = AdditiveAttention(8, 8, 8), torch.randn(2, 200, 8)
    query = torch.randn(2, 3, 8)
    of_query = lambda query: attention(query, source)[0]  # noqa: E731
    jacobian = torch.autograd.functional.jacobian
    torch.testing.assert_close(jacobian(of_query, query, vectorize=True), jacobian(of_query, query))
