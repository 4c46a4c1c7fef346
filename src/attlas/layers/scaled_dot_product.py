"""Scaled dot-product attention."""

import math
from abc import abstractmethod
from dataclasses import replace
from numbers import Real

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.base import (
    Attention,
    AttentionOutput,
    SingleHeadAttention,
    to_token_mask,
    zero_padding,
)
from attlas.ops.attention import (
    attention_weights_of,
    dense_attention,
    scaled_scores,
    short_query_attention,
    weighted_values,
)
from attlas.ops.banded import band_is_faster, banded_attention
from attlas.ops.cache import KeyValueCache, group_rows
from attlas.patterns import Pattern, everywhere
from attlas.recording import FactoredAttentionMap

# The base of scaled dot-product mechanisms: a fused kernel, and its explicit twin.


class DotProductAttention(Attention):
    """softmax(scale · q kᵀ) v per head; weights are computed only on request.

    Reading runs a kernel, the banded one where the pattern has a narrow band and the dense one
    otherwise (`fused_attention` says which weights it holds meanwhile). Observing keeps queries and
    keys and changes no kernel; intervening runs `forward_reference`.

    Args:
        scale: Factor of the scores; None = 1 / √head_dim.
    """

    def __init__(
        self,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> None:
        if scale is not None and not (isinstance(scale, Real) and 0.0 < scale < math.inf):
            raise AttlasError("a scale above 0", repr(scale), "leave it out for 1 / √width")
        super().__init__(pattern=pattern, dropout=dropout)
        self.scale: float | None = scale

    @abstractmethod
    def split_heads(
        self, query: Float[Tensor, "batch queries query_dim"], start: int | Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch heads queries head_dim"]:
        """The query of each head; `start` is the position of the first one."""

    @abstractmethod
    def merge_heads(
        self, context: Float[Tensor, "batch heads queries value_dim"]
    ) -> Float[Tensor, "batch queries context_dim"]:
        """What the heads read, as one context."""

    def attention_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The weights of every head, written out: O(heads · queries · keys) memory."""
        heads, start = self._split_query(query, cache, query_offset)
        return self._weights(heads, cache, self.allowed(heads.shape[2], cache, start))

    def forward_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        """The context as `attend` returns it, and recorded alike, with the weights written out."""
        heads, start = self._split_query(query, cache, query_offset)
        self._record(heads, cache, self._known_offset(start, query_offset))
        return self._forward_with_weights(heads, cache, start)

    def _attend(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        """The output of every head, by a fused kernel unless `intervene` is active."""
        heads, start = self._split_query(query, cache, query_offset)
        return self._attend_heads(heads, cache, start, query_offset)

    def _attend_heads(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        start: int,
        query_offset: int | None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        self._record(heads, cache, self._known_offset(start, query_offset))
        if self.hook.is_patched:
            return self._forward_with_weights(heads, cache, start).context
        scale = self._scale_of(heads)
        pays = band_is_faster(heads.shape[2], cache.num_keys, self.pattern, start)
        kernel = banded_attention if pays else dense_attention
        context = kernel(heads, cache, self.pattern, start, scale, self.attn_dropout.active_p)
        if self.hook.is_compared and not self.attn_dropout.active_p:
            self.hook.compare(context.detach(), cache.values.detach())
        return self.merge_heads(context)

    def decode_step(
        self,
        query: Float[Tensor, "rows query_dim"],
        cache: KeyValueCache,
        position: int | Int[Tensor, " rows"],
        bias: Float[Tensor, "#batch 1 #rows_of_each keys"] | None,
    ) -> Float[Tensor, "rows context_dim"]:
        """What `attend` returns for one query a row, all at `position`, outside of `observe`; as a
        tensor it holds the position of each row.

        Neighbouring rows may share a cache.

        Args:
            bias: −∞ hides a position; of some, every row sees some.
        """
        heads = group_rows(self.split_heads(query.unsqueeze(1), position), cache.keys.shape[0])
        scale = self._scale_of(heads)
        context = short_query_attention(heads, cache.keys, cache.values, bias, scale)
        return self.merge_heads(context).flatten(0, 1)

    def decode_step_weights(
        self,
        query: Float[Tensor, "rows query_dim"],
        cache: KeyValueCache,
        position: int | Int[Tensor, " rows"],
        bias: Float[Tensor, "#batch 1 #rows_of_each keys"] | None,
    ) -> Float[Tensor, "caches heads rows_of_each keys"]:
        """The weights with which `decode_step` reads, in float32 or better."""
        heads = group_rows(self.split_heads(query.unsqueeze(1), position), cache.keys.shape[0])
        scores = scaled_scores(heads, cache.keys, self._scale_of(heads))
        return torch.softmax(scores if bias is None else scores + bias, dim=-1)

    def forward_reference(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        """The same as calling the layer, but with explicit weights: the twin of the kernels."""
        heads, start = self._split_query(query, cache, query_offset)
        return self._forward_with_weights(heads, cache, start).context

    def _split_query(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None,
    ) -> tuple[Float[Tensor, "batch heads queries head_dim"], int]:
        """The query of each head, and the position of the first one."""
        self.check_query(query, cache)
        start = self.resolve_offset(query.shape[1], cache, query_offset)
        heads = self.split_heads(query, start)
        shape = cache.keys.shape
        if len(shape) != 4 or heads.shape[1] % shape[1] or heads.shape[-1] != shape[-1]:
            raise AttlasError(
                f"keys of shape (batch, kv_heads, keys, {heads.shape[-1]}) for "
                f"{heads.shape[1]} head(s)",
                f"shape {tuple(shape)}",
                "make the cache with `project_kv` of this layer, from a source of the right width",
            )
        return heads, start

    def _weights(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        allowed: Bool[Tensor, "#batch 1 queries keys"],
    ) -> Float[Tensor, "batch heads queries keys"]:
        return attention_weights_of(heads, cache.keys, allowed, self._scale_of(heads))

    def _record(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        start: int | None,
    ) -> None:
        if not self.hook.is_recording:
            return
        scale = self._scale_of(heads)
        token_mask = (
            None if cache.token_mask is None else cache.token_mask.clone()
        )  # the caller's own
        self.hook.record(
            FactoredAttentionMap(
                heads.detach(), cache.keys.detach(), scale, self.pattern, start, token_mask
            )
        )

    def _known_offset(self, start: int, query_offset: int | None) -> int | None:
        """The position of the first query; None in cross-attention if it is unknown and the pattern
        does not need it.
        """
        unsaid = query_offset is None and self.hook.cross_attention and self.pattern == everywhere
        return None if unsaid else start

    def _forward_with_weights(
        self, heads: Float[Tensor, "batch heads queries head_dim"], cache: KeyValueCache, start: int
    ) -> AttentionOutput:
        allowed = self.allowed(heads.shape[2], cache, start)
        weights = applied = self._weights(heads, cache, allowed)
        if self.hook.is_patched:
            applied = self.hook.patch(weights, allowed)
        context = weighted_values(self.attn_dropout(applied), cache.values)
        return AttentionOutput(self.merge_heads(context), weights, applied)

    def _scale_of(self, heads: Float[Tensor, "batch heads queries head_dim"]) -> float:
        return float(heads.shape[-1] ** -0.5) if self.scale is None else self.scale


class ScaledDotProductAttention(DotProductAttention, SingleHeadAttention):
    """softmax(q kᵀ / √d) v    Vaswani et al., 2017, section 3.2.1, eq. 1.

    One head and no parameters: queries and source have the same width d, and the values read are
    the source, unless others are given. A `KeyValueCache` of one's own has its positions on axis −2
    and one head on axis 1.
    """

    def _attend_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        return self.forward_with_weights(query, cache, query_offset)

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """The source is both key and value."""
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        head = zero_padding(source, token_mask).unsqueeze(1)
        return KeyValueCache(head, head, token_mask)

    def split_heads(
        self, query: Float[Tensor, "batch queries query_dim"], start: int | Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch heads queries head_dim"]:
        return query.unsqueeze(1)

    def merge_heads(
        self, context: Float[Tensor, "batch heads queries value_dim"]
    ) -> Float[Tensor, "batch queries context_dim"]:
        return context.squeeze(1)

    def _record(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        start: int | None,
    ) -> None:
        if self.hook.is_recording:  # queries and keys are the caller's own, who may write over them
            cache = replace(cache, keys=cache.keys.detach().clone())
            super()._record(heads.detach().clone(), cache, start)
