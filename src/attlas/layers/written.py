"""Scaled dot-product attention with the weights written out, forwards and back, on a CPU.

The fused kernel needs up to three times as long for short texts as their arithmetic: torch does not
vectorise the softmax of a few slots, and the kernel packs every head of every text by itself.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from attlas.layers.dropout import dropout_mask
from attlas.layers.linear import overseen, plain
from attlas.recording.foreign.watch import heard_as_kernel

_FEW = 16  # slots: torch does not vectorise the softmax of shorter rows, nor its way back
# Positions times width of a head, and positions, up to which it pays, as far as was measured
# (docs/log.md): what is copied and multiplied grows with them, what the kernel spends besides does
# not. So the weights take hardly more memory than what they are of.
_WITH_GRADIENT, _WITHOUT, _LONGEST = 2048, 1024, 64
_LEAST_HEADS = 64  # of all texts together: the kernel has fewer calls
_CALLS = 1024  # scores, for which one call costs less than several
_NOTHING = 1e-30  # of a weight: what is left of a hidden slot, and of one that is e⁶⁹ times less


def written_pays(query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> bool:
    """Whether `written_attention` is the faster way here: texts are short, or weights are dropped,
    which no kernel does on a CPU."""
    return (
        # First: what follows is not for those who trace.
        not (torch.compiler.is_compiling() or overseen())
        and all(plain(tensor) and tensor.numel() for tensor in (query, keys, values))
        and (bool(dropout) or _short(query, keys, values))
        and not torch.is_autocast_enabled("cpu")
    )


def _short(query: Tensor, keys: Tensor, values: Tensor) -> bool:
    batch, heads, queries, width = query.shape
    learns = torch.is_grad_enabled() and any(one.requires_grad for one in (query, keys, values))
    most = min(_LONGEST, (_WITH_GRADIENT if learns else _WITHOUT) // width)
    return batch * heads >= _LEAST_HEADS and max(queries, keys.shape[2]) <= max(_FEW - 1, most)


@heard_as_kernel
def written_attention(
    query: Float[Tensor, "batch heads queries width"],
    key: Float[Tensor, "batch key_heads slots width"],
    value: Float[Tensor, "batch key_heads slots value_width"],
    attn_mask: Bool[Tensor, "#batch #heads #queries slots"] | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Float[Tensor, "batch heads queries value_width"]:
    """dropped(softmax(scale · q kᵀ)) v over the seen slots; O(heads · queries · slots) memory.

    With the arguments of `F.scaled_dot_product_attention`, of which this takes the place, also for
    those who watch the functions of torch. Every query sees a slot; heads may share keys in any
    case. Weights are dropped by the masks of our own `Dropout`.
    """
    given = (query, key, value)
    if has_torch_function(given):
        read: Tensor = handle_torch_function(
            written_attention, given, *given, attn_mask, dropout_p, is_causal, scale, enable_gqa
        )
        return read
    batch, heads, queries, width = query.shape
    shape = (batch, heads, queries, key.shape[2])
    seen = attn_mask
    if is_causal:
        seen = torch.ones(shape[2:], dtype=torch.bool, device=query.device).tril_()[None, None]
    dropped = dropout_mask(query.new_empty(shape), dropout_p) if dropout_p else None
    # Heads that share keys become queries of one head.
    asked = query.reshape(batch * key.shape[1], -1, width)
    factor = width**-0.5 if scale is None else scale
    context: Tensor = _Read.apply(  # type: ignore[no-untyped-call]
        asked, key.flatten(0, 1), value.flatten(0, 1), seen, dropped, factor, shape
    )
    return context.view(batch, heads, queries, -1)


class _Read(torch.autograd.Function):
    """Y = (W ∘ M) V of every head, with W = softmax(scale · Q Kᵀ) over the seen slots and M the
    mask of dropout.

    dV = (W ∘ M)ᵀ dY,  dS = W ∘ (G − Σ_s W ∘ G) with G = (dY Vᵀ) ∘ M,  dQ = scale · dS K,
    dK = scale · dSᵀ Q.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Float[Tensor, "groups asked width"],
        keys: Float[Tensor, "groups slots width"],
        values: Float[Tensor, "groups slots value_width"],
        seen: Bool[Tensor, "#batch #heads #queries slots"] | None,
        dropped: Float[Tensor, "batch heads queries slots"] | None,
        scale: float,
        shape: tuple[int, int, int, int],
    ) -> Float[Tensor, "groups asked value_width"]:
        scores = _product(query, keys.transpose(1, 2), scale)
        if seen is not None:
            _hide(scores.view(shape), seen)
        weights = softmax_of(scores)
        ctx.scale, ctx.shape = scale, shape
        ctx.save_for_backward(query, keys, values, seen, dropped, weights)
        return torch.bmm(_used(weights, dropped), values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):  # it was of float32 forwards
            found = _gradients(ctx, gradient)
        return (*found, None, None, None, None)


def _gradients(ctx: Any, gradient: Tensor) -> Sequence[Tensor | None]:
    """Of query, keys and values, where they are asked for."""
    query, keys, values, seen, dropped, weights = ctx.saved_tensors
    if torch.is_grad_enabled():  # to be differentiated in turn
        return _in_turn(gradient, (query, keys, values), seen, dropped, ctx.scale, ctx.shape)
    of_query, of_keys, of_values = ctx.needs_input_grad[:3]
    of_scores = weights
    if of_query or of_keys:
        of_used = torch.bmm(gradient, values.transpose(1, 2))
        if dropped is not None:
            of_used.mul_(dropped.view_as(of_used))
        of_scores = _before_softmax(of_used, weights)
    of_these = None
    if of_values:
        of_these = torch.bmm(_used(weights, dropped).transpose(1, 2), gradient)
    return (
        _product(of_scores, keys, ctx.scale) if of_query else None,
        _product(of_scores.transpose(1, 2), query, ctx.scale) if of_keys else None,
        of_these,
    )


def _in_turn(
    gradient: Tensor,
    given: tuple[Tensor, Tensor, Tensor],
    seen: Tensor | None,
    dropped: Tensor | None,
    scale: float,
    shape: tuple[int, int, int, int],
) -> list[Tensor | None]:
    """The gradients of query, keys and values by functions that autograd knows."""
    query, keys, values = given
    scores = (torch.bmm(query, keys.transpose(1, 2)) * scale).view(shape)
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    y = torch.bmm(_used(weights.view(len(query), -1, shape[-1]), dropped), values)
    asked = [one for one in given if one.requires_grad]
    found = iter(torch.autograd.grad(y, asked, gradient, create_graph=True))
    return [next(found) if one.requires_grad else None for one in given]


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """scale · a b; the scale costs nothing inside the product."""
    return torch.baddbmm(a.new_zeros(()), a, b, beta=0, alpha=scale)


def _hide(
    scores: Float[Tensor, "batch heads queries slots"],
    seen: Bool[Tensor, "#batch #heads #queries slots"],
) -> None:
    """−∞ in place of what is not seen.

    To add it is up to ten times as quick as to fill it in, and the same where it is added to
    numbers: −∞ + ∞ is none.
    """
    if bool(scores.sum().isfinite()):
        scores.add_(torch.where(seen, 0.0, scores.new_tensor(-torch.inf)))
    else:
        scores.masked_fill_(~seen, -torch.inf)


def softmax_of(scores: Float[Tensor, "*rows slots"]) -> Float[Tensor, "*rows slots"]:
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


def _used(weights: Tensor, dropped: Tensor | None) -> Tensor:
    return weights if dropped is None else weights * dropped.view_as(weights)
