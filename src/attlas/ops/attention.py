"""Scaled dot-product attention over all pairs: the fused kernel and its explicit twin."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from attlas.ops.cache import KeyValueCache
from attlas.ops.dropout import dropout_mask
from attlas.ops.linear import is_general_backward, is_plain_cpu_float32, is_traced_or_transformed
from attlas.patterns import Causal, Everywhere, Pattern
from attlas.recording.torch_functions.mode import register_sdpa_equivalent

# Explicit scaled dot-product attention on a CPU, forward and backward.


_FEW = 16  # positions: torch does not vectorise the softmax of shorter rows, nor its way back
# Positions times width of a head, and positions, up to which it pays, as far as was measured
# (docs/dev/log.md): what is copied and multiplied grows with them, what the kernel spends besides
# does not. So the weights take hardly more memory than what they are of.
_WITH_GRADIENT, _WITHOUT, _LONGEST = 2048, 1024, 64
_LEAST_HEADS = 64  # of all texts together: the kernel has fewer calls
_CALLS = 1024  # scores, for which one call costs less than several
_NOTHING = (
    1e-30  # of a weight: what is left of a hidden position, and of one that is e⁶⁹ times less
)


def math_is_faster(query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> bool:
    """Return True if `math_attention` is faster here: for short texts, and with dropout, which no
    CPU kernel has.
    """
    return (
        # First, because the rest must not run under tracing.
        not (torch.compiler.is_compiling() or is_traced_or_transformed())
        and all(is_plain_cpu_float32(tensor) and tensor.numel() for tensor in (query, keys, values))
        and (bool(dropout) or _short(query, keys, values))
        and not torch.is_autocast_enabled("cpu")
    )


def _short(query: Tensor, keys: Tensor, values: Tensor) -> bool:
    batch, heads, queries, head_dim = query.shape
    learns = torch.is_grad_enabled() and any(
        tensor.requires_grad for tensor in (query, keys, values)
    )
    max_length = min(_LONGEST, (_WITH_GRADIENT if learns else _WITHOUT) // head_dim)
    return batch * heads >= _LEAST_HEADS and max(queries, keys.shape[2]) <= max(
        _FEW - 1, max_length
    )


@register_sdpa_equivalent
def math_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    key: Float[Tensor, "batch kv_heads keys head_dim"],
    value: Float[Tensor, "batch kv_heads keys value_dim"],
    attn_mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """dropped(softmax(scale · q kᵀ)) v over the allowed positions; O(heads · queries · keys)
    memory.

    It has the arguments of `F.scaled_dot_product_attention` and takes its place, also for observers
    of torch functions. Every query must see a position. Heads may share keys. Dropout uses the
    masks of our own `Dropout`.
    """
    inputs = (query, key, value)
    if has_torch_function(inputs):
        attended: Tensor = handle_torch_function(
            math_attention, inputs, *inputs, attn_mask, dropout_p, is_causal, scale, enable_gqa
        )
        return attended
    batch, heads, queries, head_dim = query.shape
    shape = (batch, heads, queries, key.shape[2])
    allowed = attn_mask
    if is_causal:
        allowed = torch.ones(shape[2:], dtype=torch.bool, device=query.device).tril_()[None, None]
    dropped = dropout_mask(query.new_empty(shape), dropout_p) if dropout_p else None
    # Heads that share keys become queries of one head.
    grouped_query = query.reshape(batch * key.shape[1], -1, head_dim)
    factor = head_dim**-0.5 if scale is None else scale
    context: Tensor = _Read.apply(  # type: ignore[no-untyped-call]
        grouped_query, key.flatten(0, 1), value.flatten(0, 1), allowed, dropped, factor, shape
    )
    return context.view(batch, heads, queries, -1)


class _Read(torch.autograd.Function):
    """Y = (W ∘ M) V of every head, with W = softmax(scale · Q Kᵀ) over the allowed positions and M
    the mask of dropout.

    dV = (W ∘ M)ᵀ dY,  dS = W ∘ (G − Σ_s W ∘ G) with G = (dY Vᵀ) ∘ M,  dQ = scale · dS K,
    dK = scale · dSᵀ Q.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Float[Tensor, "groups grouped_queries dim"],
        keys: Float[Tensor, "groups keys dim"],
        values: Float[Tensor, "groups keys value_dim"],
        allowed: Bool[Tensor, "#batch #heads #queries keys"] | None,
        dropped: Float[Tensor, "batch heads queries keys"] | None,
        scale: float,
        shape: tuple[int, int, int, int],
    ) -> Float[Tensor, "groups grouped_queries value_dim"]:
        scores = _product(query, keys.transpose(1, 2), scale)
        if allowed is not None:
            _hide(scores.view(shape), allowed)
        weights = softmax_of(scores)
        ctx.scale, ctx.shape = scale, shape
        ctx.save_for_backward(query, keys, values, allowed, dropped, weights)
        return torch.bmm(_apply_dropout(weights, dropped), values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):  # it was of float32 forwards
            gradients = _gradients(ctx, gradient)
        return (*gradients, None, None, None, None)


def _gradients(ctx: Any, gradient: Tensor) -> Sequence[Tensor | None]:
    """The gradients of query, keys and values, as far as needed."""
    query, keys, values, allowed, dropped, weights = ctx.saved_tensors
    if is_general_backward(gradient):
        return _in_turn(gradient, (query, keys, values), allowed, dropped, ctx.scale, ctx.shape)
    query_needs_grad, keys_need_grad, values_need_grad = ctx.needs_input_grad[:3]
    of_scores = weights
    if query_needs_grad or keys_need_grad:
        of_used = torch.bmm(gradient, values.transpose(1, 2))
        if dropped is not None:
            of_used.mul_(dropped.view_as(of_used))
        of_scores = _before_softmax(of_used, weights)
    of_these = None
    if values_need_grad:
        of_these = torch.bmm(_apply_dropout(weights, dropped).transpose(1, 2), gradient)
    return (
        _product(of_scores, keys, ctx.scale) if query_needs_grad else None,
        _product(of_scores.transpose(1, 2), query, ctx.scale) if keys_need_grad else None,
        of_these,
    )


def _in_turn(
    gradient: Tensor,
    inputs: tuple[Tensor, Tensor, Tensor],
    allowed: Tensor | None,
    dropped: Tensor | None,
    scale: float,
    shape: tuple[int, int, int, int],
) -> list[Tensor | None]:
    """The gradients of query, keys and values by functions that autograd knows."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        query, keys, values = inputs
        scores = (torch.bmm(query, keys.transpose(1, 2)) * scale).view(shape)
        scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        y = torch.bmm(_apply_dropout(weights.view(len(query), -1, shape[-1]), dropped), values)
    differentiable = [tensor for tensor in inputs if tensor.requires_grad]
    gradients = iter(torch.autograd.grad(y, differentiable, gradient, create_graph=again))
    return [next(gradients) if tensor.requires_grad else None for tensor in inputs]


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """scale · a b; the scale costs nothing inside the product."""
    return torch.baddbmm(a.new_zeros(()), a, b, beta=0, alpha=scale)


def _hide(
    scores: Float[Tensor, "batch heads queries keys"],
    allowed: Bool[Tensor, "#batch #heads #queries keys"],
) -> None:
    """Set hidden scores to −∞.

    Adding −∞ is up to ten times as fast as filling it in, and equal for finite scores.
    """
    if bool(scores.sum().isfinite()):
        scores.add_(torch.where(allowed, 0.0, scores.new_tensor(-torch.inf)))
    else:
        scores.masked_fill_(~allowed, -torch.inf)


def softmax_of(scores: Float[Tensor, "*rows keys"]) -> Float[Tensor, "*rows keys"]:
    """torch's softmax, or in place where rows are so short that torch would not vectorise it."""
    if scores.shape[-1] >= _FEW or scores.numel() < _CALLS:
        return torch.softmax(scores, dim=-1)
    # exp takes many times as long where it underflows, so what is hidden is made zero afterwards.
    weights = scores.sub_(scores.amax(-1, keepdim=True)).clamp_(min=-80.0).exp_()
    return torch.threshold_(weights.div_(weights.sum(-1, keepdim=True)), _NOTHING, 0.0)


def _before_softmax(gradient: Tensor, weights: Tensor) -> Tensor:
    """W ∘ (G − Σ_s W ∘ G), by torch or in the memory of G."""
    if weights.shape[-1] >= _FEW:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    gradient.mul_(weights)
    return gradient.addcmul_(weights, gradient.sum(-1, keepdim=True), value=-1)


def _apply_dropout(weights: Tensor, dropped: Tensor | None) -> Tensor:
    return weights if dropped is None else weights * dropped.view_as(weights)


def dense_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    cache: KeyValueCache,
    pattern: Pattern,
    query_offset: int,
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """softmax(scale · q kᵀ) v by `fused_attention`; heads may share keys.

    If every query sees every position, no mask is made; otherwise at most O(queries × keys) bools.
    """
    keys, values, token_mask = cache.keys, cache.values, cache.token_mask
    queries, num_keys = query.shape[2], cache.num_keys
    past = isinstance(pattern, Causal)
    # A causal query at or after the last position sees them all: the step of a decoder with a
    # cache.
    if isinstance(pattern, Everywhere) or (past and query_offset >= num_keys - 1):
        if token_mask is None:
            return fused_attention(query, keys, values, None, scale, dropout)
        allowed = token_mask[:, None, None, :]
    # The kernel's own causal mask counts queries from the first position, whatever the cache.
    elif token_mask is None and past and query_offset == 0 and queries == num_keys:
        return fused_attention(query, keys, values, None, scale, dropout, causal=True)
    else:
        allowed = pattern.mask(queries, num_keys, query_offset, query.device)[None, None]
        allowed = allowed if token_mask is None else allowed & token_mask[:, None, None, :]
    return masked_attention(query, keys, values, allowed, scale, dropout)


def masked_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    allowed: Bool[Tensor, "#batch #heads #queries keys"],
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """`fused_attention` over the allowed positions; zeros for a query that sees none."""
    # Kernels differ for a row without a position (NaN, a mean, zeros), forward and backward. So
    # such a row looks everywhere, and its output is replaced by zeros.
    sees_nothing = ~allowed.any(-1, keepdim=True)
    context = fused_attention(query, keys, values, allowed | sees_nothing, scale, dropout)
    return context.masked_fill(sees_nothing, 0.0)


def short_query_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    bias: Float[Tensor, "#batch 1 #queries keys"] | None,
    scale: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """softmax(scale · q kᵀ + bias) v for few queries, without a gradient; every query sees a
    position.

    On a CPU the fused kernel needs several times as long for a handful of pairs as their
    arithmetic: so this is written out.
    """
    is_full_precision = query.dtype in (torch.float32, torch.float64)
    if query.device.type != "cpu" or not is_full_precision:
        mask = None if bias is None else bias.to(query.dtype)
        return fused_attention(query, keys, values, mask, scale, dropout=0.0)
    batch, heads, queries, head_dim = query.shape
    # Heads that share keys become queries of one head.
    grouped_query = query.reshape(batch * keys.shape[1], -1, head_dim)
    scores = torch.bmm(grouped_query, keys.flatten(0, 1).transpose(1, 2)).mul_(scale)
    if bias is not None:
        scores.view(batch, heads, queries, -1).add_(bias)
    context = torch.bmm(softmax_of(scores), values.flatten(0, 1))
    return context.view(batch, heads, queries, -1)


def attention_weights_of(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    allowed: Bool[Tensor, "#batch #heads queries keys"],
    scale: float,
    bias: Float[Tensor, "#batch #heads #queries keys"] | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "batch heads queries keys"]:
    """softmax(cap(scale · q kᵀ) + bias) over the allowed positions: the weights that the fused
    kernel never holds.
    """
    scores = scaled_scores(query, keys, scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    return masked_softmax(scores if bias is None else scores + bias, allowed).to(query.dtype)


def scaled_scores(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    scale: float,
) -> Float[Tensor, "batch heads queries keys"]:
    """scale · q kᵀ of every pair, in float32 or better as inside the kernels.

    In half precision a score of 100 would be off by up to ¼, and its weight by a quarter.
    """
    batch, heads, queries, head_dim = query.shape
    dtype = torch.promote_types(query.dtype, torch.float32)
    # Heads that share keys become queries of one head.
    shape = (batch, keys.shape[1], heads // keys.shape[1] * queries, head_dim)
    with torch.autocast(query.device.type, enabled=False):
        grouped_query = (query.to(dtype) * scale).reshape(shape)
        scores = grouped_query @ keys.to(dtype).transpose(-1, -2)
    return scores.reshape(batch, heads, queries, keys.shape[2])


def weighted_values(
    weights: Float[Tensor, "batch heads queries keys"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
) -> Float[Tensor, "batch heads queries value_dim"]:
    """Σ_s weight_s · v_s, written out."""
    batch, heads, queries, num_keys = weights.shape
    grouped = weights.reshape(batch, values.shape[1], heads // values.shape[1] * queries, num_keys)
    context = grouped @ values
    return context.reshape(batch, heads, queries, values.shape[-1])


def fused_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    mask: Shaped[Tensor, "#batch #heads #queries keys"] | None,
    scale: float,
    dropout: float,
    causal: bool = False,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """torch's kernel, or `math_attention` if that is faster; every query sees a position.

    O(queries) memory in the kernel; O(heads · queries · positions) for short texts and with
    dropout.

    Args:
        mask: A bool mask, or (without dropout) numbers that are added to the scores.
    """
    grouped = keys.shape[1] != query.shape[1]
    if (mask is None or mask.dtype == torch.bool) and math_is_faster(query, keys, values, dropout):
        return math_attention(query, keys, values, mask, dropout, causal, scale, grouped)
    is_half = query.dtype in (torch.float16, torch.bfloat16)
    if grouped and query.is_cuda and (mask is not None or not is_half):
        # On CUDA only the kernel without masks and in half precision knows shared keys; the one
        # that the others fall back to would hold every pair. Copies of the keys are smaller.
        repeats = query.shape[1] // keys.shape[1]
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        grouped = False
    if dropout and query.device.type == "cpu":
        return _attend_with_dropout(query, keys, values, mask, scale, dropout, causal)
    context: Tensor = F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        scale=scale,
        enable_gqa=grouped,
    )
    return context


def _attend_with_dropout(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None,
    scale: float,
    dropout: float,
    causal: bool,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """The same with explicit weights, as torch computes dropout on a CPU, but with the masks of our
    own `Dropout`.
    """
    scores = scaled_scores(query, keys, scale)
    if causal:
        mask = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()[None, None]
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = F.softmax(scores, dim=-1).to(query.dtype)
    dropped = dropout_mask(weights, dropout)
    return weighted_values(weights if dropped is None else weights * dropped, values)


def masked_softmax(
    scores: Float[Tensor, "*shape keys"], allowed: Bool[Tensor, "*#shape keys"]
) -> Float[Tensor, "*shape keys"]:
    """exp(s_j) / Σ_seen exp(s_k) on the allowed positions, 0 elsewhere; all zeros where nothing is
    seen.

    Gradients are finite everywhere: a row without an allowed position never consists of −inf alone.
    """
    if _shows_all(scores, allowed):  # the same bits, by a third of the operators
        return F.softmax(scores, dim=-1)
    hidden = ~allowed
    sees_nothing = hidden.all(-1, keepdim=True)
    if scores.dtype == torch.float16:
        maximum = torch.finfo(scores.dtype).max
        scores = scores.clamp(-maximum, maximum)  # a product that overflowed counts as that
    scores = scores.masked_fill(hidden, -torch.inf).masked_fill(sees_nothing, 0.0)
    # Sums of half-precision terms drift from 1, so they are taken in float32.
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return F.softmax(scores, dim=-1, dtype=dtype).to(scores.dtype).masked_fill(hidden, 0.0)


def _shows_all(scores: Tensor, allowed: Tensor) -> bool:
    """Return True if it is cheap to see that nothing is hidden, and no type needs a cast."""
    return (
        not torch.compiler.is_compiling()  # first, because the rest must not run under tracing
        and is_plain_cpu_float32(scores)
        and not is_traced_or_transformed()
        and allowed.numel() <= scores.numel()
        and bool(allowed.all())
    )
