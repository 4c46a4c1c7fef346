"""The Transformer's decoder."""

from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiheadAttention
from attlas.models.cache import SourceCache
from attlas.models.transformer.block import FeedForward, Residual, Vectors, fed_forward
from attlas.models.transformer.state import TargetCache, TransformerState
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Everywhere
from attlas.recording.hooks import has_hooks

Rows = Float[Tensor, "rows embed_dim"]


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each with add & norm    Vaswani et al.,
    2017, figure 1.
    """

    def __init__(
        self,
        self_attention: MultiheadAttention,
        around_self_attention: Residual,
        cross_attention: MultiheadAttention,
        around_cross_attention: Residual,
        feed_forward: FeedForward | None,
        around_feed_forward: Residual | None,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self_attention = around_self_attention
        self.cross_attention = cross_attention
        self.self_attention.hook.cross_attention, self.cross_attention.hook.cross_attention = (
            False,
            True,
        )
        self.around_cross_attention = around_cross_attention
        self.feed_forward = feed_forward
        self.around_feed_forward = around_feed_forward

    @property
    def can_step_fast(self) -> bool:
        """Return True if a newest position sees itself and all of the source, no hook or listener
        is active, and no weight is dropped.
        """
        self_attention, cross_attention = self.self_attention, self.cross_attention
        return (
            self_attention.pattern.sees_itself
            and isinstance(cross_attention.pattern, Everywhere)
            and not any(
                a.hook.is_recording or a.hook.is_patched or a.attn_dropout.active_p
                for a in (self_attention, cross_attention)
            )
            and not has_hooks((self_attention, cross_attention))
        )

    def self_attention_block(
        self, x: Vectors, past: KeyValueCache | None
    ) -> tuple[Vectors, KeyValueCache]:
        """Self-attention over the past and these newest positions. Return the output and the new
        past.
        """
        y = self.around_self_attention.enter(x)
        cache = self.self_attention.project_kv(y, key_offset=0 if past is None else past.num_keys)
        if past is not None:
            cache = past.append(cache)
        attended = self.self_attention.attend(y, cache)
        return self.around_self_attention.leave(x, attended), cache

    def cross_attention_block(self, x: Vectors, source: KeyValueCache) -> Vectors:
        """Cross-attention to the source; several neighbouring rows may share a source."""
        y = self.around_cross_attention.enter(x)
        queries = y.reshape(source.keys.shape[0], -1, y.shape[-1])
        attended = self.cross_attention.attend(queries, source).view_as(y)
        return self.around_cross_attention.leave(x, attended)

    def cross_attention_block_with_weights(
        self, x: Vectors, source: KeyValueCache
    ) -> tuple[Vectors, Float[Tensor, "rows heads queries keys"]]:
        """`cross_attention_block` with a source for each row, and the weights with which it
        read.
        """
        output = self.cross_attention.forward_with_weights(
            self.around_cross_attention.enter(x), source
        )
        return self.around_cross_attention.leave(x, output.context), output.applied

    def self_attention_step(
        self,
        x: Rows,
        past: KeyValueCache | None,
        bias: Float[Tensor, "#caches 1 each keys"] | None,
        caches: int,
        position: int,
    ) -> tuple[Rows, KeyValueCache]:
        """`self_attention_block` for one newest position of each row; rows may share a
        cache.

        Args:
            bias: What is added to the scores: 0, or −∞ where a row must not see a position;
                None = 0 everywhere.
        """
        y = self.around_self_attention.enter(x)
        cache = self.self_attention.project_kv(y.unsqueeze(1), key_offset=position).merge_rows(
            caches
        )
        cache = cache if past is None else past.append(cache)
        attended = self.self_attention.decode_step(y, cache, position, bias)
        return self.around_self_attention.leave(x, attended), cache

    def cross_attention_step(
        self, x: Rows, source: KeyValueCache, token_mask: Float[Tensor, "sources 1 1 keys"] | None
    ) -> Rows:
        """`cross_attention_block` for one position of each row; `token_mask` as `own_keys` of
        `self_attention_step`.
        """
        y = self.around_cross_attention.enter(x)
        return self.around_cross_attention.leave(
            x, self.cross_attention.decode_step(y, source, 0, token_mask)
        )

    def cross_attention_step_weights(
        self, x: Rows, source: KeyValueCache, token_mask: Float[Tensor, "sources 1 1 keys"] | None
    ) -> Float[Tensor, "rows keys"]:
        """The weights of `cross_attention_step`, the mean over its heads."""
        y = self.around_cross_attention.enter(x)
        weights = self.cross_attention.decode_step_weights(y, source, 0, token_mask)
        return weights.mean(1).flatten(0, 1)

    def feed_forward_block(self, x: Vectors) -> Vectors:
        """The feed-forward, if there is one."""
        return fed_forward(x, self.feed_forward, self.around_feed_forward)


class TransformerDecoder(nn.Module):
    """N layers, and behind pre-normed ones a last norm."""

    def __init__(self, layers: list[DecoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def start(
        self,
        encoded: Float[Tensor, "batch keys embed_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None,
    ) -> TransformerState:
        """The state before the first target token."""
        caches = tuple(
            layer.cross_attention.project_kv(encoded, token_mask) for layer in self._layers
        )
        if not torch.is_grad_enabled():  # the following steps read them many times
            caches = tuple(cache.contiguous() for cache in caches)
        return TransformerState(SourceCache(caches))

    def forward(self, x: Vectors, state: TransformerState) -> tuple[Vectors, TransformerState]:
        """The features of the next positions, and the state after them."""
        past: tuple[KeyValueCache | None, ...] = state.past.expand_rows().layers or (None,) * len(
            self.layers
        )
        after, coverage = [], state.coverage
        for number, (layer, past_cache) in enumerate(zip(self._layers, past, strict=True)):
            x, cache = layer.self_attention_block(x, past_cache)
            after.append(cache)
            needs_coverage = coverage is not None and number == len(past) - 1
            hook = layer.cross_attention.hook
            # Listeners and coverage need one batch row for each row, even if rows share a source.
            needs_weights = needs_coverage or hook.is_recording or hook.is_patched
            source = (
                state.source.expand_rows(number) if needs_weights else state.source.layers[number]
            )
            if coverage is not None and needs_coverage:
                x, weights = layer.cross_attention_block_with_weights(x, source)
                coverage = coverage + weights.mean(1).sum(1)
            else:
                x = layer.cross_attention_block(x, source)
            x = layer.feed_forward_block(x)
        features = x if self.norm is None else self.norm(x)
        target_cache = TargetCache(tuple(after), state.position + x.shape[1])
        return features, replace(state, past=target_cache, coverage=coverage)

    def step(self, x: Rows, state: TransformerState) -> tuple[Rows, TransformerState]:
        """`forward` for the newest position of each row: the same with fewer and larger products,
        where no gradient is wanted, no listener is active and no weight is to be dropped.
        """
        sources = state.source.layers[0]
        if not self._can_step_fast(state):
            features, longer = self(x.unsqueeze(1), state)
            return features.squeeze(1), longer
        past = state.past.expand_if_sparse().with_next_keys(len(x), sources.keys.shape[0], x.device)
        patterns = {layer.self_attention.pattern for layer in self._layers}
        biases = {pattern: _bias(past.allowed(pattern, x.device)) for pattern in patterns}
        token_mask = None if sources.token_mask is None else _bias(sources.token_mask.unsqueeze(1))
        past_layers: tuple[KeyValueCache | None, ...] = past.layers or (None,) * len(self.layers)
        after: list[KeyValueCache] = []
        coverage = state.coverage
        for layer, past_cache, source in zip(
            self._layers, past_layers, state.source.layers, strict=True
        ):
            allowed = biases[layer.self_attention.pattern]
            x, cache = layer.self_attention_step(
                x, past_cache, allowed, len(x) // past.rows_per_cache, state.position
            )
            after.append(cache)
            if coverage is not None and len(after) == len(past_layers):  # the last layer's counts
                coverage = coverage + layer.cross_attention_step_weights(x, source, token_mask)
            x = layer.feed_forward_block(layer.cross_attention_step(x, source, token_mask))
        features = x if self.norm is None else self.norm(x)
        past = replace(past, layers=tuple(after))
        return features, replace(state, past=past, coverage=coverage)

    def _can_step_fast(self, state: TransformerState) -> bool:
        """Return True if `step` may be used."""
        token_mask = state.source.layers[0].token_mask
        return not (
            torch.is_grad_enabled()
            or any(not layer.can_step_fast for layer in self._layers)
            or (
                token_mask is not None and not bool(token_mask.any(1).all())
            )  # a query that sees nothing
        )

    @property
    def _layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.layers))


def _bias(
    allowed: Bool[Tensor, "sources each keys"] | None,
) -> Float[Tensor, "sources 1 each keys"] | None:
    if allowed is None:
        return None
    return (
        torch.zeros(allowed.shape, device=allowed.device)
        .masked_fill_(~allowed, -torch.inf)
        .unsqueeze(1)
    )
