"""Scaled dot-product attention over all pairs: the fused kernel and its explicit twin."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from attlas.layers.dropout import dropout_mask
from attlas.layers.memory import Memory
from attlas.layers.written import softmax_of, written_attention, written_pays
from attlas.patterns import Causal, Everywhere, Pattern


def dense_attention(
    query: Float[Tensor, "batch heads queries width"],
    memory: Memory,
    pattern: Pattern,
    first: int,
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_width"]:
    """softmax(scale · q kᵀ) v by `fused`; heads may share keys.

    Where every query sees every slot no mask is made; O(queries × slots) bools otherwise, at most.
    """
    keys, values, real = memory.keys, memory.values, memory.real
    queries, slots = query.shape[2], memory.slots
    past = isinstance(pattern, Causal)
    # A causal query at or after the last slot sees them all: the step of a decoder with a cache.
    if isinstance(pattern, Everywhere) or (past and first >= slots - 1):
        if real is None:
            return fused(query, keys, values, None, scale, dropout)
        seen = real[:, None, None, :]
    # The kernel's own causal mask counts queries from the first slot, whatever the cache.
    elif real is None and past and first == 0 and queries == slots:
        return fused(query, keys, values, None, scale, dropout, causal=True)
    else:
        seen = pattern.mask(queries, slots, first, query.device)[None, None]
        seen = seen if real is None else seen & real[:, None, None, :]
    return masked_attention(query, keys, values, seen, scale, dropout)


def masked_attention(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    values: Float[Tensor, "batch key_heads slots value_width"],
    seen: Bool[Tensor, "#batch #heads #queries slots"],
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_width"]:
    """`fused` over the seen slots; zeros where a query sees none."""
    # Kernels differ in what they make of a row without a slot (NaN, a mean, zeros), forwards and
    # backwards; such a row looks everywhere instead, and what it read is thrown away.
    blind = ~seen.any(-1, keepdim=True)
    context = fused(query, keys, values, seen | blind, scale, dropout)
    return context.masked_fill(blind, 0.0)


def brief_attention(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    values: Float[Tensor, "batch key_heads slots value_width"],
    bias: Float[Tensor, "#batch 1 #queries slots"] | None,
    scale: float,
) -> Float[Tensor, "batch heads queries value_width"]:
    """softmax(scale · q kᵀ + bias) v for few queries, without a gradient; every query sees a slot.

    On a CPU the fused kernel needs several times as long for a handful of pairs as their
    arithmetic: so this is written out.
    """
    exact = query.dtype in (torch.float32, torch.float64)
    if query.device.type != "cpu" or not exact:
        mask = None if bias is None else bias.to(query.dtype)
        return fused(query, keys, values, mask, scale, dropout=0.0)
    batch, heads, queries, width = query.shape
    # Heads that share keys become queries of one head.
    asked = query.reshape(batch * keys.shape[1], -1, width)
    scores = torch.bmm(asked, keys.flatten(0, 1).transpose(1, 2)).mul_(scale)
    if bias is not None:
        scores.view(batch, heads, queries, -1).add_(bias)
    context = torch.bmm(softmax_of(scores), values.flatten(0, 1))
    return context.view(batch, heads, queries, -1)


def explicit_weights(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    seen: Bool[Tensor, "#batch 1 queries slots"],
    scale: float,
) -> Float[Tensor, "batch heads queries slots"]:
    """softmax(scale · q kᵀ) over the seen slots, written out: what the fused kernel never holds."""
    return masked_softmax(scaled_scores(query, keys, scale), seen).to(query.dtype)


def scaled_scores(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    scale: float,
) -> Float[Tensor, "batch heads queries slots"]:
    """scale · q kᵀ of every pair, in float32 or better as inside the kernels.

    In half precision a score of 100 would be off by up to ¼, and its weight by a quarter.
    """
    batch, heads, queries, width = query.shape
    precise = torch.promote_types(query.dtype, torch.float32)
    # Heads that share keys become queries of one head.
    shape = (batch, keys.shape[1], heads // keys.shape[1] * queries, width)
    with torch.autocast(query.device.type, enabled=False):
        asked = (query.to(precise) * scale).reshape(shape)
        scores = asked @ keys.to(precise).transpose(-1, -2)
    return scores.reshape(batch, heads, queries, keys.shape[2])


def weighted_values(
    weights: Float[Tensor, "batch heads queries slots"],
    values: Float[Tensor, "batch key_heads slots value_width"],
) -> Float[Tensor, "batch heads queries value_width"]:
    """Σ_s weight_s · v_s, written out."""
    batch, heads, queries, slots = weights.shape
    grouped = weights.reshape(batch, values.shape[1], heads // values.shape[1] * queries, slots)
    context = grouped @ values
    return context.reshape(batch, heads, queries, values.shape[-1])


def fused(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    values: Float[Tensor, "batch key_heads slots value_width"],
    mask: Shaped[Tensor, "#batch #heads #queries slots"] | None,
    scale: float,
    dropout: float,
    causal: bool = False,
) -> Float[Tensor, "batch heads queries value_width"]:
    """torch's kernel, or `written_attention` where that is faster; every query sees a slot.

    O(queries) memory by the kernel; of short texts, or where weights are dropped, O(heads · queries
    · slots). mask: bool, or without dropout what is added to the scores.
    """
    grouped = keys.shape[1] != query.shape[1]
    if (mask is None or mask.dtype == torch.bool) and written_pays(query, keys, values, dropout):
        return written_attention(query, keys, values, mask, dropout, causal, scale, grouped)
    halved = query.dtype in (torch.float16, torch.bfloat16)
    if grouped and query.is_cuda and (mask is not None or not halved):
        # On CUDA only the kernel without masks and in half precision knows shared keys; the one
        # that the others fall back to would hold every pair. Copies of the keys are smaller.
        repeats = query.shape[1] // keys.shape[1]
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        grouped = False
    if dropout and query.device.type == "cpu":
        return _dropped(query, keys, values, mask, scale, dropout, causal)
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


def _dropped(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    values: Float[Tensor, "batch key_heads slots value_width"],
    mask: Bool[Tensor, "#batch #heads #queries slots"] | None,
    scale: float,
    dropout: float,
    causal: bool,
) -> Float[Tensor, "batch heads queries value_width"]:
    """The same with the weights written out, as torch does where weights are dropped on a CPU, but
    with the masks of our own `Dropout`.
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
    scores: Float[Tensor, "*shape slots"], seen: Bool[Tensor, "*#shape slots"]
) -> Float[Tensor, "*shape slots"]:
    """exp(s_j) / Σ_seen exp(s_k) on the seen slots, 0 elsewhere; all zeros where nothing is seen.

    Gradients are finite everywhere: a row without a seen slot never meets −inf alone.
    """
    hidden = ~seen
    blind = hidden.all(-1, keepdim=True)
    if scores.dtype == torch.float16:
        greatest = torch.finfo(scores.dtype).max
        scores = scores.clamp(-greatest, greatest)  # a product that overflowed counts as that
    scores = scores.masked_fill(hidden, -torch.inf).masked_fill(blind, 0.0)
    # Sums of half-precision terms drift from 1, so they are taken in float32.
    precise = torch.promote_types(scores.dtype, torch.float32)
    return F.softmax(scores, dim=-1, dtype=precise).to(scores.dtype).masked_fill(hidden, 0.0)
