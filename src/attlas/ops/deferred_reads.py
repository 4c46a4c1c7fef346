"""Keys and values that every step of a loop reads, whose gradients are summed up outside of
autograd."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_linear import DeferredLinear
from attlas.ops.linear import is_general_backward, is_plain_cpu_float32, is_traced_or_transformed

Fact = TypeVar("Fact")

LONG = 128
"""From so many keys on. Fewer keep the bits of earlier releases: recipes that come with attlas have
up to 101 where every step reads all keys."""


@dataclass
class DeferredGradient:
    """The gradient of one tensor that many steps read, as far as it is known.

    Autograd would make a whole gradient at every step, and add it to the sum of those before. For
    long sources both are slower than the step itself. A step that finds this object adds into
    `sums`, or leaves the two factors of its share in `pairs`.

    Each backward pass has its own sums and pairs, because a graph may be walked twice. `facts` are
    what the first step found and the others need, too.
    """

    sums: dict[int, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    pairs: dict[int, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    facts: dict[object, Any] = field(default_factory=dict)

    def once(self, name: object, find: Callable[[], Fact]) -> Fact:
        """What `find()` returns, from its first call in this loop."""
        if name not in self.facts:
            self.facts[name] = find()
        fact: Fact = self.facts[name]
        return fact

    def step_linear(self, weight: Float[Tensor, "outputs inputs"]) -> DeferredLinear:
        """The linear map of every step, the gradient of whose matrix waits for the last step."""
        return self.once(id(weight), lambda: DeferredLinear(weight))

    def sum_like(self, tensor: Tensor, scale: Float[Tensor, " dim"]) -> Tensor:
        """The sum of this backward pass, to be added to in place; `scale` multiplies all of it."""
        sums = self.sums.setdefault(torch._C._current_graph_task_id(), [])
        for known, total in sums:
            if known.data_ptr() == scale.data_ptr():
                return total
        sums.append((scale, torch.zeros_like(tensor)))
        return sums[-1][1]

    def add_pair(
        self,
        weights: Float[Tensor, "batch queries keys"],
        gradient: Float[Tensor, "batch queries dim"],
    ) -> None:
        """A share weightsᵀ gradient, which is multiplied when all are known."""
        pairs = self.pairs.setdefault(torch._C._current_graph_task_id(), [])
        # Detached: a pair that is never asked for must not hold the graph that holds the pairs.
        pairs.append((weights.detach(), gradient.detach()))

    def collect(self) -> Tensor | None:
        """The gradient of this backward pass; None if no step left anything."""
        task = torch._C._current_graph_task_id()
        total: Tensor | None = None
        for scale, unscaled in self.sums.pop(task, []):
            total = unscaled.mul_(scale) if total is None else total.addcmul_(unscaled, scale)
        pairs = self.pairs.pop(task, None)
        if pairs is None:
            return total
        weights, gradients = (torch.cat(part, dim=1) for part in zip(*pairs, strict=True))
        if total is None:
            return torch.bmm(weights.transpose(1, 2), gradients)
        return total.baddbmm_(weights.transpose(1, 2), gradients)


def defer_gradients(cache: KeyValueCache) -> KeyValueCache:
    """The same cache for the steps of a loop, its gradients deferred where that is faster.

    A step finds the `DeferredGradient` by `deferred_gradient`. The gradients are the same up to the
    order of summation.
    """
    if not (torch.is_grad_enabled() and reads_are_long(cache.keys, cache.values)):
        return cache
    keys, values = (
        _Gathering.apply(DeferredGradient(), part) if part.requires_grad else part  # type: ignore[no-untyped-call]
        for part in (cache.keys, cache.values)
    )
    return replace(cache, keys=keys, values=values)


def deferred_gradient(tensor: Tensor) -> DeferredGradient | None:
    """Where the gradient of a tensor of `defer_gradients` is summed up; None for any other.

    A tensor that is computed from such a tensor has none.
    """
    if torch.compiler.is_compiling():
        return None
    return getattr(tensor.grad_fn, "deferred", None)  # of `_Gathering` alone


def reads_are_long(keys: Float[Tensor, "batch keys dim"], *others: Tensor) -> bool:
    """Return True if there are so many keys that a step should not keep a number for each, and if
    all are plain tensors of float32 on a CPU.
    """
    return (
        not torch.compiler.is_compiling()  # first, because the rest must not run under tracing
        and keys.ndim == 3
        and keys.shape[1] >= LONG
        and all(is_plain_cpu_float32(tensor) for tensor in (keys, *others))
        and not torch.is_autocast_enabled("cpu")
        and not is_traced_or_transformed()
    )


def weighted_mean(
    weights: Float[Tensor, "batch queries keys"], values: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch queries dim"]:
    """Σ_j weight_j · value_j of every query."""
    if torch.is_grad_enabled() and deferred_gradient(values) is not None:
        mean: Tensor = _WeightedMean.apply(weights, values)  # type: ignore[no-untyped-call]
        return mean
    return weights @ values


class _Gathering(torch.autograd.Function):
    """Hands a tensor on; its backward runs after those of all steps, and adds what they left."""

    @staticmethod
    def forward(ctx: Any, deferred: DeferredGradient, tensor: Tensor) -> Tensor:
        ctx.deferred = deferred
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[None, Tensor | None]:
        # What comes in by itself is of steps that deferred nothing, or of their derivatives.
        deferred = ctx.deferred.collect()
        if deferred is None or gradient is None:
            return None, gradient if deferred is None else deferred
        return None, gradient + deferred


class _WeightedMean(torch.autograd.Function):
    """C = W V, whose share Wᵀ dC of dV is left for the end of the loop."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.end_of_loop = deferred_gradient(values)
        return torch.bmm(weights, values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        weights, values = ctx.saved_tensors
        of_weights = gradient @ values.transpose(1, 2) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return of_weights, None
        if is_general_backward(gradient):  # in a pair it would be a constant
            return of_weights, weights.transpose(1, 2) @ gradient
        ctx.end_of_loop.add_pair(weights, gradient)
        return of_weights, None
