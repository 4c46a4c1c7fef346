"""Additive scores of long sources, whose tanh is computed again in the backward pass."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attlas._hardware import processor_maker
from attlas.ops.deferred_reads import DeferredGradient, deferred_gradient
from attlas.ops.linear import is_general_backward

_AT_ONCE = 2**18  # numbers in (rows, queries, keys, dim): 1 MiB of float32, which caches hold


def recomputed_scores(
    query: Float[Tensor, "batch queries dim"],
    keys: Float[Tensor, "batch keys dim"],
    energy: Float[Tensor, "1 dim"],
) -> Float[Tensor, "batch queries keys"]:
    """v · tanh(q + k) of every pair; no tanh is kept.

    The same numbers as written out, up to the order of summation, and so are the gradients. They
    need every tanh again, which costs less than to keep it: of a long source it is far larger than
    the caches of a processor. Memory: O(batch · (queries + keys) · dim), and 1 MiB for the pairs.
    The steps of a loop over the same keys share their exponentials, see `_StepScores`.
    """
    deferred = deferred_gradient(keys)
    if deferred is not None and query.shape[1] == 1 and 0 < keys[0].numel() <= _AT_ONCE:
        of_keys = deferred.once(("e²ᵏ", keys._version), lambda: _exponentials(keys))
        of_query = None if of_keys is None else _exponentials(query)
        if of_query is not None:
            step: Tensor = _StepScores.apply(query, keys, energy, of_query, of_keys)  # type: ignore[no-untyped-call]
            return step
    scores: Tensor = _Scores.apply(query, keys, energy)  # type: ignore[no-untyped-call]
    return scores


class _Scores(torch.autograd.Function):
    """s = v · t,  t = tanh(q + k);  dx = ds v (1 − t²),  dq = Σ_k dx,  dk = Σ_q dx,  dv = Σ ds t.

    Some pairs at a time; x = q + k.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, energy)
        ctx.end_of_loop = deferred_gradient(keys)  # where the gradient of keys is summed up
        scores = query.new_empty(*query.shape[:2], keys.shape[1])
        buffer, v = _buffer(query, keys), energy[0]
        for some_queries, some_keys, of_pairs in _parts([query], [keys], [scores]):
            of_pairs.copy_(_tanh(some_queries, some_keys, buffer) @ v)
        return scores

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, energy = ctx.saved_tensors
        if is_general_backward(gradient):
            return _in_turn(ctx, gradient)
        _, keys_need_grad, _ = ctx.needs_input_grad
        deferred: DeferredGradient | None = ctx.end_of_loop
        slopes_of_keys: Tensor | None = None  # Σ_q ds (1 − t²), still without v
        if keys_need_grad:
            slopes_of_keys = (
                torch.zeros_like(keys) if deferred is None else deferred.sum_like(keys, energy[0])
            )
        buffer, v = _buffer(query, keys), energy[0]
        of_query, of_energy = torch.zeros_like(query), torch.zeros_like(v)
        written = keys if slopes_of_keys is None else slopes_of_keys
        for some_queries, of_queries, some_keys, of_keys, of_pairs in _parts(
            [query, of_query], [keys, written], [gradient]
        ):
            tanh = _tanh(some_queries, some_keys, buffer)
            of_energy.addmv_(tanh.view(-1, len(v)).t(), of_pairs.reshape(-1))
            slope = torch.ops.aten.tanh_backward.grad_input(
                of_pairs.unsqueeze(-1).expand_as(tanh), tanh, grad_input=tanh
            )
            of_queries.add_(slope.sum(2))
            if slopes_of_keys is not None:
                of_keys.add_(slope.squeeze(1) if slope.shape[1] == 1 else slope.sum(1))
        if slopes_of_keys is not None:
            slopes_of_keys = slopes_of_keys.mul_(v) if deferred is None else None
        return of_query.mul_(v), slopes_of_keys, of_energy.unsqueeze(0)


class _StepScores(torch.autograd.Function):
    """s = v · t of one query a row,  t = tanh(q + k) = 1 − 2 r,  r = 1 / (1 + e²ᑫ e²ᵏ);
    dx = ds v (1 − t²) = 4 ds v r (1 − r).

    One product, one sum and one quotient cost less than a sum and a tanh. t is off by up to
    3·10⁻⁷, as e²ᑫ e²ᵏ is by so much of itself.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, keys: Tensor, energy: Tensor, of_query: Tensor, of_keys: Tensor
    ) -> Tensor:
        ctx.save_for_backward(query, keys, energy)
        ctx.end_of_loop, ctx.exponentials = deferred_gradient(keys), (of_query, of_keys)
        scores = query.new_empty(keys.shape[:2])
        for r, of_pairs in _quotients(of_query, of_keys, [scores]):
            torch.mv(r.view(-1, r.shape[2]), energy[0], out=of_pairs.view(-1))
        return torch.sub(energy.sum(), scores, alpha=2, out=scores).unsqueeze(1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, energy = ctx.saved_tensors
        if is_general_backward(gradient):
            return (*_in_turn(ctx, gradient), None, None)
        v = energy[0]
        of_query, of_energy = torch.empty_like(query), gradient.sum().expand_as(v).clone()
        tensors = [4 * gradient.transpose(1, 2), of_query]
        if ctx.needs_input_grad[1]:
            tensors.append(ctx.end_of_loop.sum_like(keys, v))  # Σ ds (1 − t²), still without v
        exponentials: tuple[Tensor, Tensor] = ctx.exponentials
        for r, of_pairs, of_queries, *of_keys in _quotients(*exponentials, tensors):
            of_energy.addmv_(r.view(-1, len(v)).t(), of_pairs.reshape(-1), alpha=-0.5)
            slope = torch.ops.aten.sigmoid_backward.grad_input(
                of_pairs.expand_as(r), r, grad_input=r
            )
            torch.sum(slope, 1, keepdim=True, out=of_queries)
            for known in of_keys:
                known.add_(slope)
        return of_query.mul_(v), None, of_energy.unsqueeze(0), None, None


_LARGEST = 20.0  # |q| and |k|: e⁴⁰ e⁴⁰ is still a number of float32


def _exponentials(numbers: Tensor) -> Tensor | None:
    """e²ˣ; None if one of these numbers is too large for it, or NaN."""
    with torch.no_grad():
        least, most = torch.aminmax(numbers)
        if not (float(least) >= -_LARGEST and float(most) <= _LARGEST):
            return None
        return (2 * numbers).exp_()


def _quotients(
    of_query: Float[Tensor, "batch 1 dim"],
    of_keys: Float[Tensor, "batch keys dim"],
    others: list[Tensor],
) -> Iterator[tuple[Tensor, ...]]:
    """r = 1 / (1 + e²ᑫ e²ᵏ) of some rows, and what the other tensors have of these rows."""
    size = _AT_ONCE // of_keys[0].numel()
    buffer = torch.empty_like(of_keys[:size])
    one = of_keys.new_ones(())
    for some_queries, some_keys, *some in _split([of_query, of_keys, *others], size, 0):
        r = torch.addcmul(one, some_keys, some_queries, out=buffer[: len(some_keys)])
        yield (r.reciprocal_(), *some)


def _in_turn(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients, by functions that autograd knows."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, because a query may itself be computed from the keys: only the direct way counts.
        inputs = [tensor.view_as(tensor) for tensor in ctx.saved_tensors]
        query, keys, energy = inputs
        scores = torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ energy[0]
    sources = [x for x, needed in zip(inputs, ctx.needs_input_grad[:3], strict=True) if needed]
    found = iter(torch.autograd.grad(scores, sources, gradient, create_graph=again))
    return tuple(next(found) if needed else None for needed in ctx.needs_input_grad[:3])


def _parts(
    of_queries: list[Tensor], of_keys: list[Tensor], of_pairs: list[Tensor]
) -> Iterator[tuple[Tensor, ...]]:
    """All pairs, `_AT_ONCE` numbers at a time: whole rows, else queries of one row, else keys.

    Args:
        of_queries, of_keys, of_pairs: Tensors of (batch, queries, dim), (batch, keys, dim) and
            (batch, queries, keys), of which each part has its own, in this order.
    """
    (_, queries, dim), num_keys = of_queries[0].shape, of_keys[0].shape[1]
    keys_at_once = max(1, min(num_keys, _AT_ONCE // max(1, dim)))
    left = max(1, _AT_ONCE // max(1, keys_at_once * dim))
    queries_at_once = max(1, min(queries, left))
    rows_at_once = max(1, left // queries_at_once)
    for row in _split([*of_queries, *of_keys, *of_pairs], rows_at_once, 0):
        if queries_at_once >= queries and keys_at_once >= num_keys:
            yield row
            continue
        row_keys = list(row[len(of_queries) : -len(of_pairs)])
        query_parts = [*row[: len(of_queries)], *row[-len(of_pairs) :]]
        for part in _split(query_parts, queries_at_once, 1):
            pairs = [tensor.transpose(1, 2) for tensor in part[len(of_queries) :]]
            for some in _split([*row_keys, *pairs], keys_at_once, 1):
                some_pairs = [tensor.transpose(1, 2) for tensor in some[len(of_keys) :]]
                yield (*part[: len(of_queries)], *some[: len(of_keys)], *some_pairs)


def _split(tensors: list[Tensor], size: int, dim: int) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(tensor, size, dim) for tensor in tensors), strict=True)


def _buffer(query: Tensor, keys: Tensor) -> Tensor:
    """Memory for the pairs of one part."""
    return query.new_empty(min(query.numel() * keys.shape[1], max(_AT_ONCE, query.shape[2])))


def _tanh(query: Tensor, keys: Tensor, buffer: Tensor) -> Tensor:
    """tanh(q + k) of all pairs of these, in the memory of the buffer."""
    (batch, queries, dim), num_keys = query.shape, keys.shape[1]
    sums = buffer[: batch * queries * num_keys * dim].view(batch, queries, num_keys, dim)
    torch.add(keys.unsqueeze(1), query.unsqueeze(2), out=sums)
    if sigmoid_is_faster():
        return sums.mul_(2).sigmoid_().mul_(2).sub_(1)  # off by up to 2·10⁻⁷
    return sums.tanh_()


@cache
def sigmoid_is_faster() -> bool:
    """Return True if 2 σ(2x) − 1 takes less time than tanh x: torch's tanh is MKL's, which is
    slower than the four passes on AMD's processors, and faster on Intel's.
    """
    return (
        torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.cpu.get_cpu_capability().startswith("AVX")
        and processor_maker() == "AuthenticAMD"
    )
