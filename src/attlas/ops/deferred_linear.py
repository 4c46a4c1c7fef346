"""A linear map inside a loop, whose weight gradient is computed at the end of the loop."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.ops.linear import (
    bf16_matmul,
    gradient_of_weight,
    is_bf16_matmul,
    is_general_backward,
    is_traced_or_transformed,
    linear,
)

_Pairs = dict[int, list[tuple[Tensor, Tensor]]]
"""(g_t, x_t) of the steps, by the backward pass that met them: one graph may be walked twice, and
a pass that wants no gradient of the parameters never collects its pairs."""


class DeferredLinear:
    """y_t = W x_t + b for t = 1 … T, with dW = [g_1 … g_T] [x_1 … x_T]ᵀ as one product.

    A recurrence multiplies by the same matrix at every step. Autograd would make dW as T thin
    products (their inner size is the batch) and T − 1 sums of the whole matrix; if the pairs (g_t,
    x_t) are kept until the backward pass of all steps is done, one large product is enough. The
    same numbers up to the order of summation; the twin is `linear`, which also runs wherever no
    gradient is wanted. A backward pass that is to be differentiated itself (create_graph) defers
    nothing.

    Args:
        weight: (outputs, inputs), bias: (outputs,) or None. One instance serves one pass.
    """

    def __init__(
        self, weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, " outputs"] | None = None
    ) -> None:
        self._pairs: _Pairs = {}
        # Autocast keeps its own cast copies of a weight; leave it to them.
        kind = weight.device.type
        self._deferred = (
            torch.is_grad_enabled()
            and weight.requires_grad
            and not torch.is_autocast_enabled(kind)
            and not is_traced_or_transformed()
            and (bias is None or bias.requires_grad)
        )
        self._weight, self._bias = weight, bias
        if self._deferred:
            self._weight, self._bias = _Gathering.apply(self._pairs, weight, bias)  # type: ignore[no-untyped-call]

    def __call__(self, inputs: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        """W x + b for one step."""
        if not self._deferred:
            return linear(inputs, self._weight, self._bias)
        outputs: Tensor = _Step.apply(self._pairs, inputs, self._weight, self._bias)  # type: ignore[no-untyped-call]
        return outputs


class _Gathering(torch.autograd.Function):
    """Hands the parameters on; its backward runs after those of all steps, and sums them up."""

    @staticmethod
    def forward(
        ctx: Any, pairs: _Pairs, weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        ctx.pairs, ctx.biased, ctx.half = pairs, bias is not None, is_bf16_matmul()
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(
        ctx: Any, of_weight: Tensor | None, of_bias: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        # What comes in by itself is of steps that deferred nothing, or of their derivatives.
        pairs = ctx.pairs.pop(torch._C._current_graph_task_id(), None)
        if pairs is None:
            return None, of_weight, of_bias
        gradients, inputs = (torch.cat(part) for part in zip(*pairs, strict=True))
        with bf16_matmul(ctx.half):
            of_weight = _sum(of_weight, gradient_of_weight(gradients, inputs))
        return None, of_weight, _sum(of_bias, gradients.sum(0)) if ctx.biased else None


class _Step(torch.autograd.Function):
    """One step: its own gradient at once, its share of the parameters' to the gathering."""

    @staticmethod
    def forward(
        ctx: Any, pairs: _Pairs, inputs: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        ctx.pairs, ctx.half = pairs, is_bf16_matmul()
        ctx.save_for_backward(inputs, weight)
        return linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        with bf16_matmul(ctx.half):
            of_inputs = linear(gradient, weight.t()) if ctx.needs_input_grad[1] else None
            if is_general_backward(gradient):  # in a pair it would be a constant
                of_bias = gradient.sum(0) if ctx.needs_input_grad[3] else None
                return None, of_inputs, gradient_of_weight(gradient, inputs), of_bias
        task_id = torch._C._current_graph_task_id()
        # Detached: a pair that is never asked for must not hold the graph that holds the pairs.
        ctx.pairs.setdefault(task_id, []).append((gradient.detach(), inputs.detach()))
        return None, of_inputs, None, None


def _sum(first: Tensor | None, second: Tensor) -> Tensor:
    return second if first is None else first + second
