"""A call of one of transformers' attention kernels: its attention map, and its explicit twin."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.patterns import Pattern, both, causal, everywhere, window
from attlas.recording.maps.factored import FactoredAttentionMap, may_differ_by
from attlas.recording.torch_functions.context import TrackingContext
from attlas.recording.torch_functions.masks import MaskSpec, mask_spec_of
from attlas.recording.torch_functions.tensors import default_scale, unreadable

_UNREADABLE = ("s_aux", "cache", "cu_seq_lens_q", "cu_seqlens_q")
"""Logits of sinks, paged caches and packed texts: what an attention map has no words for."""


@dataclass(frozen=True, slots=True)
class InterfaceCall:
    """softmax(cap(scale · q kᵀ) + bias) v over what the mask and the module's own rule allow.

    Args:
        mask: bool or float over pairs. Without one the queries are the newest of the keys, and look
            back alone where the module is causal, `sliding_window` keys at most, themselves
            included.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    keys: Float[Tensor, "batch kv_heads keys head_dim"]
    values: Float[Tensor, "batch kv_heads keys value_dim"]
    scale: float
    pattern: Pattern
    token_mask: Tensor | None
    mask: Shaped[Tensor, "#batch #heads #queries #keys"] | None
    softcap: float | None
    dropout: float

    @classmethod
    def of(
        cls,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Any,
        kwargs: Mapping[str, Any],
    ) -> "InterfaceCall | None":
        """From the arguments of transformers' interface; None for what cannot be read."""
        if any(kwargs.get(name) is not None for name in _UNREADABLE):
            return None
        if mask is None and _is_packed(kwargs.get("position_ids")):
            return None
        queries, num_keys = query.shape[2], key.shape[2]
        token_mask, allowed = None, _allowed(mask, query, key)
        if isinstance(mask, Tensor) and mask.ndim == 2:
            token_mask, allowed = mask[:, -num_keys:].bool(), None
        elif mask is not None and allowed is None:
            return None
        pattern: Pattern = everywhere
        if allowed is None:
            looks_back = kwargs.get("is_causal")
            looks_back = getattr(module, "is_causal", False) if looks_back is None else looks_back
            pattern = causal if looks_back and queries > 1 else everywhere
            width = kwargs.get("sliding_window")
            if width is not None and num_keys > width:
                band = window(width - 1)
                pattern = both(pattern, band) if pattern == causal else band
        bias = kwargs.get("position_bias")
        if bias is not None:
            if allowed is None and pattern != everywhere:
                allowed = pattern.mask(queries, num_keys, device=query.device)
            allowed = bias if allowed is None else _together(allowed, bias)
        scale = kwargs.get("scaling")
        return cls(
            query,
            key,
            value,
            default_scale(query) if scale is None else float(scale),
            pattern,
            token_mask,
            allowed,
            kwargs.get("softcap"),
            float(kwargs.get("dropout") or 0.0),
        )

    def attention_map(
        self, parse_mask: Callable[..., MaskSpec] = mask_spec_of
    ) -> FactoredAttentionMap:
        """The weights before dropout, of these very tensors."""
        batch, _, queries, _ = self.query.shape
        num_keys = self.keys.shape[2]

        def reached(gap: float) -> bool:
            return may_differ_by(gap, self.query, self.keys, self.scale, self.softcap)

        mask_spec = parse_mask(self.mask, batch, queries, num_keys, reached)
        pattern, query_offset, token_mask = (
            mask_spec.pattern,
            mask_spec.query_offset,
            mask_spec.token_mask,
        )
        if self.mask is None:
            token_mask = (
                None if self.token_mask is None or bool(self.token_mask.all()) else self.token_mask
            )
            pattern = self.pattern
            query_offset = None if pattern == everywhere else num_keys - queries
        return FactoredAttentionMap(
            self.query,
            self.keys,
            self.scale,
            pattern,
            query_offset,
            token_mask,
            mask_spec.bias,
            self.softcap,
        )

    def changed(
        self, change: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch queries heads value_dim"]:
        """The same call, before dropout, with other weights: `change(weights, allowed)`."""
        attention_map = self.attention_map()
        queries = attention_map.shape[2]
        weights = attention_map.rows(0, queries).to(self.query.dtype)
        new_weights = change(weights, attention_map.allowed_rows(0, queries)).to(self.query.dtype)
        weights = F.dropout(new_weights, self.dropout)
        shared = weights.shape[1] // self.values.shape[1]
        return (weights @ self.values.repeat_interleave(shared, 1)).transpose(1, 2).contiguous()


def _is_packed(positions: Any) -> bool:
    """Return True if several texts follow each other in one row, which kernels keep apart by
    position.
    """
    rows = isinstance(positions, Tensor) and positions.ndim == 2
    return rows and bool((positions.diff() != 1).any())


def _allowed(mask: Any, query: Tensor, key: Tensor) -> Tensor | None:
    """A mask over pairs; None where it is none."""
    if isinstance(mask, Tensor):
        return mask[..., : key.shape[2]] if mask.ndim == 4 else None
    rule = getattr(mask, "mask_mod", None)  # flex attention's BlockMask
    if rule is None:
        return None
    batch, heads = (int(size) for size in mask.shape[:2])
    row_index, head_index, query_index, key_index = (
        torch.arange(count, device=query.device)
        for count in (batch, heads, query.shape[2], key.shape[2])
    )
    allowed = rule(
        row_index.view(-1, 1, 1, 1), head_index.view(-1, 1, 1), query_index.unsqueeze(-1), key_index
    )
    full_mask: Tensor = torch.as_tensor(allowed).expand(
        batch, heads, len(query_index), len(key_index)
    )
    return full_mask


def _together(allowed: Tensor, bias: Tensor) -> Tensor:
    return torch.where(allowed, bias, -torch.inf) if allowed.dtype == torch.bool else allowed + bias


# Kernels that a model of Hugging Face calls by name, and that PyTorch's functions do not show.


_WORDLESS = (
    "a kernel that is given logits of sinks, a paged cache, packed texts or a mask of its own; "
    "load the model with attn_implementation='eager'"
)
_SHOWN = {None, "eager", "sdpa"}  # these run in functions that are watched anyway

_lock = threading.Lock()
_in_use: dict[str, int] = {}


@contextmanager
def observed_interfaces(
    modules: Sequence[nn.Module], tracking: Callable[[], TrackingContext | None]
) -> Iterator[None]:
    """For the length of a block, record attention by the kernels that these modules name.

    transformers keeps its kernels in one table for all threads. Each kernel in use gives its place
    in it to one that calls it, and tells whoever listens in the thread at hand, which is nobody
    elsewhere; the last block to end puts the table back.
    """
    table = _table()
    names = {_kernel_of(module) for module in modules} - _SHOWN if table is not None else set()
    for name in names:
        _enter(table, name, tracking)
    try:
        yield
    finally:
        for name in names:
            _restore(table, name)


def _table() -> Any:
    """transformers' table of attention kernels; None where transformers is not in use."""
    return getattr(sys.modules.get("transformers.modeling_utils"), "ALL_ATTENTION_FUNCTIONS", None)


def _kernel_of(module: nn.Module) -> Any:
    return getattr(getattr(module, "config", None), "_attn_implementation", None)


def _enter(table: Any, name: str, tracking: Callable[[], TrackingContext | None]) -> None:
    with _lock:
        count = _in_use.get(name, 0)
        _in_use[name] = count + 1
        if not count and name in table:
            table[name] = _telling(table[name], tracking)


def _restore(table: Any, name: str) -> None:
    with _lock:
        _in_use[name] -= 1
        entry = table.get(name)
        if not _in_use[name] and hasattr(entry, "attlas_tells_of"):
            kernel = entry.attlas_tells_of
            del table[name]  # the table's own entry for this name, if that is what it hid
            if table.get(name) is not kernel:
                table[name] = kernel


def _telling(
    kernel: Callable[..., Any], tracking: Callable[[], TrackingContext | None]
) -> Callable[..., Any]:
    def telling(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any = None,
        *rest: Any,
        **kwargs: Any,
    ) -> Any:
        active = tracking()
        if active is None:
            return kernel(module, query, key, value, attention_mask, *rest, **kwargs)
        previous, was_in_kernel, active.in_kernel = active.seen, active.in_kernel, True
        try:
            result = kernel(module, query, key, value, attention_mask, *rest, **kwargs)
        finally:
            active.in_kernel = was_in_kernel
        if active.seen != previous:
            return result  # it runs in functions that are watched
        return _deliver(active, module, (query, key, value, attention_mask), kwargs, result)

    telling.attlas_tells_of = kernel  # type: ignore[attr-defined]
    return telling


def _deliver(
    tracking: TrackingContext,
    module: nn.Module,
    inputs: tuple[Tensor, Tensor, Tensor, Any],
    kwargs: Mapping[str, Any],
    result: Any,
) -> Any:
    reason = unreadable(*inputs)
    call = InterfaceCall.of(module, *inputs, kwargs) if reason is None else None
    if call is None:
        tracking.record_unreadable(reason or _WORDLESS)
        return result
    interested = tracking.interested()
    if not interested:
        return result
    query, key, value, _ = inputs
    made_of, content = (id(query), id(key), id(value)), tracking.contents.content_of(key, -2)
    tracking.deliver(interested, call.attention_map(tracking.mask_specs), made_of, content=content)
    change = tracking.patch_function(interested)
    return result if change is None else (call.changed(change), *result[1:])
