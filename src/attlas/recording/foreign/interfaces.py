"""Kernels that a model of Hugging Face calls by name, and that PyTorch's functions do not show."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from attlas.recording.foreign.hearing import Hearing
from attlas.recording.foreign.interface_call import InterfaceCall
from attlas.recording.foreign.unreadable import unreadable

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
