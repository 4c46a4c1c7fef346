"""A call of `torch.nn.attention.flex_attention`: its attention map, and its explicit twin."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch._higher_order_ops.flex_attention import flex_attention
from torch.nn.attention import flex_attention as flex

from attlas.errors import AttlasError
from attlas.recording.hooks import CallSite
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap, may_differ_by
from attlas.recording.torch_functions.context import TrackingContext
from attlas.recording.torch_functions.heads import (
    Fold,
    Folds,
    heads_of,
    in_order,
    of_channels,
    shared_keys,
)
from attlas.recording.torch_functions.masks import MaskSpec, mask_spec_of, with_causal_pattern
from attlas.recording.torch_functions.tensors import default_scale, unreadable

# A call of `F.scaled_dot_product_attention`: its attention map, and its explicit twin.


_AXES = 4  # of what has heads

Change = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class FusedCall:
    """softmax(scale · q kᵀ + mask) v, with the arguments of PyTorch's function.

    is_causal counts queries from the first key, whatever the number of keys; beside a mask, which
    some kernels allow, it hides what is left.
    """

    query: Float[Tensor, "... queries dim"]
    key: Float[Tensor, "... keys dim"]
    value: Float[Tensor, "... keys value_dim"]
    attn_mask: Shaped[Tensor, "... #queries #keys"] | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def attention_map(
        self,
        site: CallSite,
        folds: Folds,
        parse_mask: Callable[..., MaskSpec] = mask_spec_of,
        repeats: int = 1,
    ) -> FactoredAttentionMap:
        """The weights before dropout, of these very tensors; the call was made at `site`."""
        fold, key_fold = self._folds(site, folds)
        mask = self.attn_mask
        query_offset = 0 if self.is_causal else _first_of(mask)
        if query_offset is not None:
            parse_mask = with_causal_pattern(parse_mask, query_offset)
            mask = mask if self.is_causal else None
        mask = None if mask is None else fold.open(mask)
        scale = default_scale(self.query) if self.scale is None else float(self.scale)
        query, keys = fold.open(self.query), key_fold.open(self.key, shared=True)
        return factored_map(query, keys, scale, mask, site.module, parse_mask, repeats=repeats)

    def changed(
        self, site: CallSite, folds: Folds, change: Change
    ) -> Float[Tensor, "... queries value_dim"]:
        """The same call, before dropout, with other weights: `change(weights, allowed)`."""
        attention_map = self.attention_map(site, folds)
        queries, num_keys = attention_map.shape[2:]
        weights = attention_map.rows(0, queries).to(self.query.dtype)
        weights = change(weights, attention_map.allowed_rows(0, queries)).to(self.query.dtype)
        fold, key_fold = self._folds(site, folds)
        values = key_fold.open(self.value)[:, :, :num_keys]
        if self.enable_gqa:
            values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
        context = fold.close(F.dropout(weights, self.dropout_p) @ values)
        rows = self.query.shape[:-2] if self.enable_gqa else self._rows
        context = context.expand(*rows, -1, -1) if context.ndim == len(rows) + 2 else context
        context = context.reshape(*rows, *context.shape[-2:])
        return like_kernel_layout(self.query, context)

    def refused(self, site: CallSite, folds: Folds) -> str | None:
        """Why no attention map is made of this call, where none is."""
        fold, _ = self._folds(site, folds)
        return of_channels(self.value, self.query.shape[-2], fold.count, site)

    @property
    def _rows(self) -> torch.Size:
        """The sizes of the axes before places."""
        query, keys, values = (tensor.shape[:-2] for tensor in (self.query, self.key, self.value))
        if query == keys == values:
            return query
        rows: torch.Size = torch.broadcast_shapes(query, keys, values)  # type: ignore[no-untyped-call]
        return rows

    def _folds(self, site: CallSite, folds: Folds) -> tuple[Fold, Fold]:
        """Where heads are in the queries, and in keys and values."""
        if self.enable_gqa:  # the last axis before places, says torch
            query, keys = (
                (*[1] * (4 - tensor.ndim), *tensor.shape[:-2]) for tensor in (self.query, self.key)
            )
            return in_order(query), in_order(keys)
        evidence = self.query, self.key, self.value
        fold = heads_of(self._rows, evidence, site, folds)
        return fold, fold


def _first_of(mask: Tensor | None) -> int | None:
    """Where the first query stands by a `CausalBias`, a tensor by name alone: by the corner in
    which its triangle begins. None for any other mask.

    Its module brings torch's compiler with it, which a translation has no use for. Whoever has made
    such a mask has imported it.
    """
    module = sys.modules.get("torch.nn.attention.bias")
    if module is None or not isinstance(mask, module.CausalBias):
        return None
    upper_left = mask.variant == module.CausalVariant.UPPER_LEFT
    return 0 if upper_left else int(mask.seq_len_kv - mask.seq_len_q)


def factored_map(
    query: Float[Tensor, "#batch heads queries head_dim"],
    keys: Float[Tensor, "#batch kv_heads keys head_dim"],
    scale: float,
    mask: Shaped[Tensor, "#batch #heads #queries #keys"] | None,
    module: nn.Module,
    parse_mask: Callable[..., MaskSpec] = mask_spec_of,
    softcap: float | None = None,
    repeats: int = 1,
) -> FactoredAttentionMap:
    """softmax(cap(scale · q kᵀ) + mask) as an attention map, with the heads that the module has."""
    batch = max(query.shape[0], keys.shape[0])
    heads = max(query.shape[1], keys.shape[1])
    query, keys = as_multiplied(query), as_multiplied(keys)
    query, keys = query.expand(batch, heads, -1, -1), keys.expand(batch, -1, -1, -1)
    query, keys, mask = shared_keys(query, keys, mask, module, repeats)

    def reached(gap: float) -> bool:
        return may_differ_by(gap, query, keys, scale, softcap)

    mask_spec = parse_mask(mask, batch, query.shape[2], keys.shape[2], reached)
    return FactoredAttentionMap(
        query,
        keys,
        scale,
        mask_spec.pattern,
        mask_spec.query_offset,
        mask_spec.token_mask,
        mask_spec.bias,
        softcap,
    )


def like_kernel_layout(
    query: Float[Tensor, "..."], context: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """The same in memory as kernels lay it out, place by place where the queries are: models count
    on it when they bring heads together by `transpose(1, 2).view(...)`."""
    if context.ndim != _AXES or query.stride(1) >= query.stride(2):
        return context
    return context.transpose(1, 2).contiguous().transpose(1, 2)


def as_multiplied(vectors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """What a product takes of these: rounded to autocast's type where that is on."""
    kind = vectors.device.type
    if vectors.dtype == torch.float64 or not torch.is_autocast_enabled(kind):
        return vectors
    return vectors.to(torch.get_autocast_dtype(kind))


OPERATOR: Any = flex_attention
"""What the function calls in the end, when it runs as it is written."""


@dataclass(frozen=True, slots=True)
class FlexCall:
    """softmax(modify(scale · q kᵀ)) v over the pairs that the rule of a block mask shows.

    Args:
        modify: What is made of each score, a function of the score, batch, head, query and key.
        run: The call itself, of queries, keys and other values.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    key: Float[Tensor, "#batch kv_heads keys head_dim"]
    value: Float[Tensor, "#batch kv_heads keys value_dim"]
    modify: Callable[..., Tensor]
    blocks: tuple[Any, ...]
    scale: float
    run: Callable[[Tensor, Tensor, Tensor], Sequence[Tensor]]

    @classmethod
    def of(
        cls, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> "FlexCall":
        """From what the operator is given."""
        names = ("query", "key", "value", "score_mod", "block_mask", "scale")
        query, key, value, modify, blocks, scale = (
            args[index] if index < len(args) else kwargs[name] for index, name in enumerate(names)
        )
        keywords = {name: value for name, value in kwargs.items() if name not in names[:3]}

        def run(*vectors: Tensor) -> Sequence[Tensor]:
            result: Sequence[Tensor] = operator(*vectors, *args[3:], **keywords)
            return result

        return cls(query, key, value, modify, blocks, scale, run)

    def attention_map(
        self, module: nn.Module, parse_mask: Callable[..., MaskSpec] = mask_spec_of
    ) -> AttentionMap:
        """The weights: queries and keys where scores are as they come, else the weights themselves.

        These are read by values of which each is 1 in a key of its own.

        Raises:
            AttlasError: For a mask whose blocks say something else than its rule.
        """
        shown = self._shown()
        self._check_blocks(shown)
        if self.modify is flex._identity:
            return factored_map(self.query, self.key, self.scale, shown, module, parse_mask)
        batch, heads, num_keys, _ = self.key.shape
        single = torch.eye(num_keys, dtype=self.value.dtype, device=self.value.device)
        with torch.no_grad():
            weights = self.run(self.query, self.key, single.expand(batch, heads, -1, -1))[0]
        unhidden = self._unhidden() | (weights > 0)  # which round their scores in their own way
        mask_spec = unhidden if shown is None else shown & unhidden
        return DenseAttentionMap(weights, None if bool(mask_spec.all()) else mask_spec, None)

    def changed(
        self, attention_map: AttentionMap, change: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch heads queries value_dim"]:
        """What comes of it with other weights: `change(weights, allowed) → weights`."""
        queries = attention_map.shape[2]
        weights = attention_map.rows(0, queries).to(self.query.dtype)
        weights = change(weights, attention_map.allowed_rows(0, queries)).to(
            as_multiplied(self.query).dtype
        )
        shared = weights.shape[1] // self.value.shape[1]
        context = weights @ as_multiplied(self.value).repeat_interleave(shared, 1)
        return like_kernel_layout(self.query, context)

    def _shown(self) -> Bool[Tensor, "#batch #heads queries keys"] | None:
        """The pairs that the rule shows; None where it shows all."""
        rule = self.blocks[-1]
        return None if rule is flex.noop_mask else self._pairs_of(rule)

    def _pairs_of(self, rule: Callable[..., Tensor]) -> Bool[Tensor, "batch heads queries keys"]:
        """The pairs that a rule shows."""
        (batch, heads, queries, _), num_keys = self.query.shape, self.key.shape[2]
        sizes = (batch, heads, queries, num_keys)
        return flex.create_mask(rule, *sizes, device=self.query.device).expand(sizes)

    def _unhidden(self) -> Bool[Tensor, "batch heads queries keys"]:
        """The pairs whose score is not made −∞, which may depend on the score."""
        # torch's compiler, which comes with it, is at work already.
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

        heads = self.query.shape[1]
        dtype = torch.promote_types(self.query.dtype, torch.float32)
        with torch.no_grad():
            keys = self.key.to(dtype).repeat_interleave(heads // self.key.shape[1], 1)
            scores = self.query.to(dtype) @ keys.mT * self.scale
            positions = (torch.arange(size, device=scores.device) for size in scores.shape)
            with TransformGetItemToIndex():  # so that it may look up numbers in tables
                modified = flex._vmap_for_bhqkv(self.modify, prefix=(0,))(scores, *positions)
        return modified > -torch.inf

    def _check_blocks(self, shown: Bool[Tensor, "batch heads queries keys"] | None) -> None:
        """Compiled, the function skips what the blocks leave out, and asks no rule within whole
        ones; as it is written it asks the rule alone."""
        _, _, counts, indices, whole_counts, whole_indices, *_, height, width, _ = self.blocks
        queries, num_keys = self.query.shape[2], self.key.shape[2]
        if min(height, width) >= max(queries, num_keys):
            return  # one block
        full_blocks = [_blocks(counts, indices, height, width)[..., :queries, :num_keys]]
        if whole_counts is not None:
            full_blocks.append(
                _blocks(whole_counts, whole_indices, height, width)[..., :queries, :num_keys]
            )
        empty_blocks = ~(full_blocks[0] | full_blocks[-1])
        hidden = empty_blocks.new_zeros(()) if shown is None else ~shown
        if bool((empty_blocks & ~hidden).any()) or (
            len(full_blocks) > 1 and bool((full_blocks[1] & hidden).any())
        ):
            raise AttlasError(
                "a BlockMask whose mask_mod says what its blocks say",
                "blocks that hide what the mask_mod shows, or show what it hides",
                "make it with create_block_mask, or give BlockMask.from_kv_blocks a mask_mod: "
                "observed, flex_attention runs as it is written, which asks the mask_mod alone",
            )


def _blocks(
    counts: Int[Tensor, "batch heads rows"],
    indices: Int[Tensor, "batch heads rows columns"],
    height: int,
    width: int,
) -> Bool[Tensor, "batch heads queries keys"]:
    """The pairs in the blocks of each row, of which there are so many, in these columns."""
    is_counted = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    shown = torch.zeros_like(is_counted).scatter_reduce_(-1, indices.long(), is_counted, "amax")
    return shown.repeat_interleave(height, -2).repeat_interleave(width, -1)


def handle_flex_attention(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The operator, wherever it was called."""
    call = FlexCall.of(func, args, kwargs)
    reason = unreadable(call.query, call.key, call.value)
    if reason is not None:
        tracking.record_unreadable(reason)
    interested = tracking.interested() if reason is None else ()
    if not interested:
        return func(*args, **kwargs)
    attention_map = call.attention_map(interested[0][1].module, tracking.mask_specs)
    tracking.deliver(interested, attention_map, (id(call.query), id(call.key), id(call.value)))
    result = func(*args, **kwargs)
    change = tracking.patch_function(interested)
    return result if change is None else (call.changed(attention_map, change), *result[1:])
