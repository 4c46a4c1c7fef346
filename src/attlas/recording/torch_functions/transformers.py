"""A call of one of transformers' attention kernels: its reading, and its explicit twin."""

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
from attlas.recording.maps.factored import FactoredReading, may_differ_by
from attlas.recording.torch_functions.context import Hearing
from attlas.recording.torch_functions.masks import Sight, sight_of
from attlas.recording.torch_functions.tensors import unreadable

_UNREADABLE = ("s_aux", "cache", "cu_seq_lens_q", "cu_seqlens_q")
"""Logits of sinks, paged caches and packed texts: what a reading has no words for."""


@dataclass(frozen=True, slots=True)
class InterfaceCall:
    """softmax(cap(scale · q kᵀ) + bias) v over what the mask and the module's own rule allow.

    mask: bool or float over pairs. Without one the queries are the newest of the slots, and look
    back alone where the module is causal, `sliding_window` slots at most, themselves included.
    """

    query: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch key_heads slots width"]
    values: Float[Tensor, "batch key_heads slots value_width"]
    scale: float
    pattern: Pattern
    real: Tensor | None
    mask: Shaped[Tensor, "#batch #heads #queries #slots"] | None
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
        named: Mapping[str, Any],
    ) -> "InterfaceCall | None":
        """From the arguments of transformers' interface; None for what cannot be read."""
        if any(named.get(name) is not None for name in _UNREADABLE):
            return None
        if mask is None and _packed(named.get("position_ids")):
            return None
        queries, slots = query.shape[2], key.shape[2]
        real, allowed = None, _allowed(mask, query, key)
        if isinstance(mask, Tensor) and mask.ndim == 2:
            real, allowed = mask[:, -slots:].bool(), None
        elif mask is not None and allowed is None:
            return None
        pattern: Pattern = everywhere
        if allowed is None:
            looks_back = named.get("is_causal")
            looks_back = getattr(module, "is_causal", False) if looks_back is None else looks_back
            pattern = causal if looks_back and queries > 1 else everywhere
            width = named.get("sliding_window")
            if width is not None and slots > width:
                near = window(width - 1)
                pattern = both(pattern, near) if pattern == causal else near
        bias = named.get("position_bias")
        if bias is not None:
            allowed = bias if allowed is None else _together(allowed, bias)
        scale = named.get("scaling")
        return cls(
            query,
            key,
            value,
            float(query.shape[-1] ** -0.5 if scale is None else scale),
            pattern,
            real,
            allowed,
            named.get("softcap"),
            float(named.get("dropout") or 0.0),
        )

    def reading(self, sight: Callable[..., Sight] = sight_of) -> FactoredReading:
        """The weights before dropout, of these very tensors."""
        batch, _, queries, _ = self.query.shape
        slots = self.keys.shape[2]

        def reached(gap: float) -> bool:
            return may_differ_by(gap, self.query, self.keys, self.scale, self.softcap)

        seen = sight(self.mask, batch, queries, slots, reached)
        pattern, first, real = seen.pattern, seen.first, seen.real
        if self.mask is None:
            real = None if self.real is None or bool(self.real.all()) else self.real
            pattern = self.pattern
            first = None if pattern == everywhere else slots - queries
        return FactoredReading(
            self.query, self.keys, self.scale, pattern, first, real, seen.bias, self.softcap
        )

    def changed(
        self, change: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch queries heads value_width"]:
        """The same call with other weights: `change(weights, seen) → weights`, before dropout."""
        reading = self.reading()
        queries = reading.shape[2]
        weights = reading.rows(0, queries).to(self.query.dtype)
        changed = change(weights, reading.seen(0, queries)).to(self.query.dtype)
        weights = F.dropout(changed, self.dropout)
        shared = weights.shape[1] // self.values.shape[1]
        return (weights @ self.values.repeat_interleave(shared, 1)).transpose(1, 2).contiguous()


def _packed(positions: Any) -> bool:
    """Whether several texts follow each other in one row, which kernels keep apart by position."""
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
    row, head, asking, slot = (
        torch.arange(count, device=query.device)
        for count in (batch, heads, query.shape[2], key.shape[2])
    )
    allowed = rule(row.view(-1, 1, 1, 1), head.view(-1, 1, 1), asking.unsqueeze(-1), slot)
    whole: Tensor = torch.as_tensor(allowed).expand(batch, heads, len(asking), len(slot))
    return whole


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
def heard_interfaces(
    modules: Sequence[nn.Module], hearing: Callable[[], Hearing | None]
) -> Iterator[None]:
    """For the length of a block, tell of attention by the kernels that these modules name.

    transformers keeps its kernels in one table for all threads. Each kernel in use gives its place
    in it to one that calls it, and tells whoever listens in the thread at hand, which is nobody
    elsewhere; the last block to end puts the table back.
    """
    table = _table()
    names = {_kernel_of(module) for module in modules} - _SHOWN if table is not None else set()
    for name in names:
        _enter(table, name, hearing)
    try:
        yield
    finally:
        for name in names:
            _leave(table, name)


def _table() -> Any:
    """transformers' table of attention kernels; None where transformers is not in use."""
    return getattr(sys.modules.get("transformers.modeling_utils"), "ALL_ATTENTION_FUNCTIONS", None)


def _kernel_of(module: nn.Module) -> Any:
    return getattr(getattr(module, "config", None), "_attn_implementation", None)


def _enter(table: Any, name: str, hearing: Callable[[], Hearing | None]) -> None:
    with _lock:
        count = _in_use.get(name, 0)
        _in_use[name] = count + 1
        if not count and name in table:
            table[name] = _telling(table[name], hearing)


def _leave(table: Any, name: str) -> None:
    with _lock:
        _in_use[name] -= 1
        told = table.get(name)
        if not _in_use[name] and hasattr(told, "attlas_tells_of"):
            kernel = told.attlas_tells_of
            del table[name]  # the table's own entry for this name, if that is what it hid
            if table.get(name) is not kernel:
                table[name] = kernel


def _telling(
    kernel: Callable[..., Any], hearing: Callable[[], Hearing | None]
) -> Callable[..., Any]:
    def telling(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any = None,
        *rest: Any,
        **named: Any,
    ) -> Any:
        here = hearing()
        if here is None:
            return kernel(module, query, key, value, attention_mask, *rest, **named)
        before, within, here.in_kernel = here.seen, here.in_kernel, True
        try:
            result = kernel(module, query, key, value, attention_mask, *rest, **named)
        finally:
            here.in_kernel = within
        if here.seen != before:
            return result  # it runs in functions that are watched
        return _tell(here, module, (query, key, value, attention_mask), named, result)

    telling.attlas_tells_of = kernel  # type: ignore[attr-defined]
    return telling


def _tell(
    here: Hearing,
    module: nn.Module,
    given: tuple[Tensor, Tensor, Tensor, Any],
    named: Mapping[str, Any],
    result: Any,
) -> Any:
    why = unreadable(*given)
    call = InterfaceCall.of(module, *given, named) if why is None else None
    if call is None:
        here.miss(why or _WORDLESS)
        return result
    concerned = here.concerned()
    if not concerned:
        return result
    query, key, value, _ = given
    made_of, content = (id(query), id(key), id(value)), here.contents.heard(key, -2)
    here.tell(concerned, call.reading(here.sights), made_of, content=content)
    change = here.change(concerned)
    return result if change is None else (call.changed(change), *result[1:])
