"""Watching PyTorch's own functions for attention, in one thread and for the length of a block."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from attlas.errors import UnsupportedError
from attlas.recording.hooks import CallSite, has_only_hooked_attention
from attlas.recording.torch_functions.call_site import one_function
from attlas.recording.torch_functions.calls import KERNELS
from attlas.recording.torch_functions.context import Handler, TrackingContext
from attlas.recording.torch_functions.kernels import OPERATOR, FusedCall, handle_flex_attention
from attlas.recording.torch_functions.masks import count_extra_keys
from attlas.recording.torch_functions.scores import (
    handle_add,
    handle_baddbmm,
    handle_clamp_min,
    handle_masked_fill,
    handle_scale,
    handle_setitem,
    handle_tanh,
    handle_where,
)
from attlas.recording.torch_functions.softmax import (
    handle_addmm_or,
    handle_einsum,
    handle_exp,
    handle_gumbel_softmax,
    handle_linear,
    handle_log_softmax,
    handle_log_weights_or,
    handle_matmul,
    handle_softmax,
    handle_softmin,
    handle_tensordot,
)
from attlas.recording.torch_functions.tensors import (
    OPERATORS,
    TAKING,
    in_place,
    python_name,
    unreadable,
)
from attlas.recording.torch_functions.transformers import observed_interfaces
from attlas.recording.torch_functions.weights import (
    CASTS,
    CONVOLUTIONS,
    MOVES,
    PARTS,
    REDUCTIONS,
    SHAPES,
    handle_cat,
    handle_convolution,
    handle_copy,
    handle_gate_or,
    handle_index,
    handle_index_select,
    handle_nan_to_num,
    handle_other,
    handle_permute,
    handle_reduction,
    handle_reshape,
    handle_step_or,
    handle_weight_step,
    handle_write_or,
)

# Functions that torch.compile has taken over run as they are written while a model is observed.


_lock = threading.Lock()
_blocks = 0


class _EagerStance:
    """How torch takes what is to be compiled: in a thread that is observed it runs as it
    is written, as `torch.compiler.set_stance("force_eager")` has it for all; elsewhere as before.

    A kernel of transformers runs compiled: it is recorded by its name.
    """

    def __init__(self, others: Any, is_forced: Callable[[], bool]) -> None:
        self.others, self._is_forced = others, is_forced

    @property
    def stance(self) -> Any:
        return "force_eager" if self._is_forced() else self.others.stance

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)


@contextmanager
def without_compile(is_forced: Callable[[], bool]) -> Iterator[None]:
    """For the length of a block, compile nothing, and run nothing compiled where a model is
    observed.

    torch keeps one stance for all threads. The last block to end puts it back.
    """
    _enter(is_forced)
    try:
        yield
    finally:
        _stop_tracking()


def _compiler() -> Any:
    """torch's own module that asks for the stance; None where nothing has been compiled yet."""
    return sys.modules.get("torch._dynamo.eval_frame")


def _enter(is_forced: Callable[[], bool]) -> None:
    global _blocks
    with _lock:
        _blocks += 1
        compiler = _compiler()
        stance = getattr(compiler, "_stance", None)
        if stance is not None and not isinstance(stance, _EagerStance):
            compiler._stance = _EagerStance(stance, is_forced)


def _stop_tracking() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        stance = getattr(_compiler(), "_stance", None)
        if not _blocks and isinstance(stance, _EagerStance):
            _compiler()._stance = stance.others


# `F.multi_head_attention_forward`, run so that what it calls can be seen.


_WHOLE = F.multi_head_attention_forward


def _nobody(*_: Any) -> bool:
    return False


def without_override(function: Any) -> Any:
    """The same code, which is not handed over to overrides of torch's functions.

    What its module names is asked for now: a kernel may have been put there since.

    A function of torch that finds an override gives itself to it as a whole, and an override that
    then calls it is out of the way while it runs. This one runs its own lines, under the override.
    """
    names = {**function.__globals__, "has_torch_function": _nobody}
    twin = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def multi_head_attention_forward(*args: Any, **kwargs: Any) -> Any:
    """`F.multi_head_attention_forward`, opened; torch's own, whatever has been put around it."""
    return without_override(_WHOLE)(*args, **kwargs)


Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class AttentionMode(TorchFunctionMode):
    """Sees every function of torch that this thread calls from Python, and stops at a few of them.

    Tensors pass through unchanged, and every function runs as it would without: what is read is
    copied on the side. Attention is a call of `F.scaled_dot_product_attention`, or a softmax over
    the last axis that comes to be multiplied with values.
    """

    def __init__(self, kept: Callable[[], bool]) -> None:
        super().__init__()
        self.tracking, self._kept = TrackingContext(), kept

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if kwargs is None:
            kwargs = {}
        if func in _OF_NO_TENSOR:  # a third of what a model calls: a lookup is all that it costs
            return func(*args, **kwargs)
        if torch.compiler.is_compiling():  # of flex_attention, say: nothing is computed yet
            return func(*args, **kwargs)
        tracking, name = self.tracking, func
        if type(func) in OPERATORS:
            name = python_name(func)
        provenance = tracking.provenance
        opens = func is F.multi_head_attention_forward  # which may have been replaced
        counts = provenance.versions.counts
        if provenance.knows or opens:
            handler: Handler | None = _HANDLERS.get(name, handle_other)
        else:  # most of what a model calls
            handler = _IDLE_HANDLERS.get(name)
            if counts and handler is None and _changes(func, kwargs):
                handler = handle_other
        if tracking.unconfirmed:
            tracking.mark_running()
        if handler is None:
            result = func(*args, **kwargs)
            tracking.origins.calls.record(name, args, kwargs, result)
            return result
        if not self._kept():  # no listener is active any more
            return func(*args, **kwargs)
        if opens:
            with self, tracking.with_extra_keys(count_extra_keys(args, kwargs)):
                # It calls functions that are watched.
                return multi_head_attention_forward(*args, **kwargs)
        if counts or name in _TAKING:
            func = provenance.versions.counting(func, args, kwargs)
        result = handler(tracking, func, args, kwargs)
        if handler in _PASSING:
            provenance.pass_on(args, result)
        tracking.origins.calls.record(name, args, kwargs, result)
        return result


def _changes(func: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Return True if a call may change a tensor in its place."""
    return in_place(func) or "out" in kwargs or "inplace" in kwargs


def _handle_sdpa(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    call = FusedCall(*args, **kwargs)
    reason = unreadable(call.query, call.key, call.attn_mask)
    if reason is not None:
        tracking.record_unreadable(reason)

    def refused(site: CallSite) -> str | None:
        return call.refused(site, tracking.folds)

    with one_function():
        interested = tracking.interested(refused) if reason is None else ()
        if interested:
            site = interested[0][1]
            made_of = id(call.query), id(call.key), id(call.value)
            content = tracking.contents.content_of(call.key, -2)
            repeats = 1 if content is None else content.repeats
            attention_map = call.attention_map(site, tracking.folds, tracking.mask_specs, repeats)
            tracking.deliver(interested, attention_map, made_of, content=content)
    if not interested:
        return func(*args, **kwargs)
    change = tracking.patch_function(interested)
    return func(*args, **kwargs) if change is None else call.changed(site, tracking.folds, change)


def _handle_raw_kernel(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    tracking.record_unreadable(
        f"a call of {func.__name__}, a kernel of torch, which models call when an exported program "
        "is decomposed; observe it as it was before, or let it call "
        "torch.nn.functional.scaled_dot_product_attention"
    )
    return func(*args, **kwargs)


def _handle_nested(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Nested tensors in `nn.MultiheadAttention`, which takes them on its fast path alone."""
    nested = func(*args, **kwargs)
    for _, site in tracking.call_sites() if nested else ():
        if type(site.module).forward is nn.MultiheadAttention.forward:
            raise UnsupportedError(
                f"padded tensors in layer {site.path!r}",
                "nested tensors, which nn.MultiheadAttention takes only when it is not observed",
                "pad them, and pass src_key_padding_mask or key_padding_mask",
            )
    return nested


T = torch.Tensor
_BASE = vars(torch._C.TensorBase)
_OF_NO_TENSOR = {
    *(_BASE[name].__get__ for name in ("shape", "dtype", "device", "ndim", "layout", "is_cuda")),
    *(_BASE[name].__get__ for name in ("requires_grad", "is_meta", "is_sparse", "grad_fn")),
    *(T.size, T.dim, T.numel, T.is_floating_point, T.stride, T.is_contiguous, T.data_ptr),
}
"""Functions that neither give nor change a tensor."""
_TAKING = frozenset(TAKING)
_DROPS = {F.dropout, torch.dropout}
_KERNEL_NAMES = (
    *("_scaled_dot_product_", "_flash_attention", "_efficient_attention"),
    *("_native_multi_head_attention", "_transformer_encoder_layer_fwd"),
)
_KERNELS = {
    found
    for name in dir(torch)
    if name.startswith(_KERNEL_NAMES)
    and not name.endswith("_backward")
    and callable(found := getattr(torch, name))
}
_HANDLERS: dict[Any, Handler] = {
    F.scaled_dot_product_attention: _handle_sdpa,
    OPERATOR: handle_flex_attention,
    **dict.fromkeys(_KERNELS, _handle_raw_kernel),
    **dict.fromkeys(
        (torch.baddbmm, T.baddbmm, T.baddbmm_), handle_addmm_or(handle_step_or(handle_baddbmm))
    ),
    **dict.fromkeys(
        (torch.addmm, T.addmm, T.addmm_, torch.addbmm, T.addbmm), handle_addmm_or(handle_other)
    ),
    **dict.fromkeys((T.addbmm_, torch.addmv, T.addmv, T.addmv_), handle_addmm_or(handle_other)),
    vars(torch._C.TensorBase)["is_nested"].__get__: _handle_nested,
    torch.einsum: handle_einsum,
    T.__setitem__: handle_write_or(handle_step_or(handle_setitem)),
    **dict.fromkeys((T.index_copy_, T.copy_), handle_write_or(handle_other)),
    **dict.fromkeys((T.index_select, torch.index_select), handle_index_select),
    **dict.fromkeys((T.repeat_interleave, torch.repeat_interleave), handle_index_select),
    T.__deepcopy__: handle_copy,
    F.gumbel_softmax: handle_gumbel_softmax,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate, torch.stack), handle_cat),
    **dict.fromkeys(
        (T.masked_fill, torch.masked_fill, T.masked_fill_),
        handle_log_weights_or(handle_gate_or(handle_masked_fill)),
    ),
    **dict.fromkeys((torch.where, T.where), handle_log_weights_or(handle_gate_or(handle_where))),
    **dict.fromkeys(
        (torch.max, T.max, torch.maximum, T.maximum, torch.clamp, T.clamp),
        handle_step_or(handle_clamp_min),
    ),
    **dict.fromkeys((torch.tanh, T.tanh, T.tanh_, F.tanh), handle_step_or(handle_tanh)),
    **dict.fromkeys((F.softmax, torch.softmax, T.softmax, torch.special.softmax), handle_softmax),
    **dict.fromkeys(
        (torch._softmax, torch._safe_softmax), handle_softmax
    ),  # of decomposed programs
    F.softmin: handle_softmin,
    **dict.fromkeys(
        (F.log_softmax, torch.log_softmax, T.log_softmax, torch.special.log_softmax),
        handle_log_softmax,
    ),
    torch._log_softmax: handle_log_softmax,
    **dict.fromkeys((torch.exp, T.exp, torch.exp_, T.exp_), handle_step_or(handle_exp)),
    **dict.fromkeys((torch.matmul, T.matmul, T.__matmul__, torch.bmm, T.bmm), handle_matmul),
    **dict.fromkeys((torch.mm, T.mm, torch.mv, T.mv, torch.linalg.matmul), handle_matmul),
    F.linear: handle_linear,
    **dict.fromkeys((torch.tensordot, torch.inner, T.inner), handle_tensordot),
    **dict.fromkeys(
        (T.mul, torch.mul, T.__mul__, T.__rmul__, T.mul_, T.__imul__),
        handle_gate_or(handle_scale(lambda x: x)),
    ),
    **dict.fromkeys(
        (T.div, torch.div, T.__truediv__, T.true_divide, T.div_, T.__itruediv__),
        handle_gate_or(handle_scale(lambda x: 1 / x)),
    ),
    **dict.fromkeys(
        (T.add, torch.add, T.__add__, T.__radd__, T.__iadd__, T.add_), handle_step_or(handle_add(1))
    ),
    **dict.fromkeys(
        (T.sub, torch.sub, T.__sub__, T.__isub__, T.sub_), handle_step_or(handle_add(-1))
    ),
    **dict.fromkeys(CASTS | SHAPES | _DROPS, handle_log_weights_or(handle_weight_step)),
    **dict.fromkeys((torch.nan_to_num, T.nan_to_num), handle_nan_to_num),
    **dict.fromkeys(MOVES, handle_permute),
    **dict.fromkeys(REDUCTIONS, handle_reduction),
    **dict.fromkeys(CONVOLUTIONS, handle_convolution),
    **dict.fromkeys(PARTS, handle_index),
}


KERNELS.add(OPERATOR)

# What matters while nothing is known of any tensor: what looks, what may become scores or weights,
# and what shows how heads are folded.
_IDLE_HANDLERS: dict[Any, Handler] = {
    name: handler
    for name, handler in _HANDLERS.items()
    if handler
    in (
        _handle_sdpa,
        handle_flex_attention,
        _handle_raw_kernel,
        _handle_nested,
        handle_einsum,
        handle_cat,
        handle_gumbel_softmax,
        handle_softmax,
        handle_softmin,
    )
    or handler in (handle_log_softmax, handle_matmul, handle_tensordot)
}
_IDLE_HANDLERS |= dict.fromkeys((torch.baddbmm, T.baddbmm), handle_baddbmm)
_IDLE_HANDLERS |= dict.fromkeys(TAKING, handle_other)
_IDLE_HANDLERS |= dict.fromkeys(SHAPES, handle_reshape) | dict.fromkeys(CASTS, handle_copy)
_IDLE_HANDLERS |= dict.fromkeys(MOVES, handle_permute) | dict.fromkeys(
    (T.__getitem__, T.expand), handle_index
)
_IDLE_HANDLERS |= dict.fromkeys((T.split, torch.split, T.chunk, torch.chunk), handle_index)
_IDLE_HANDLERS |= {
    name: _HANDLERS[name]
    for name in (T.__setitem__, T.index_copy_, T.copy_, T.index_select, torch.index_select)
}
_IDLE_HANDLERS |= dict.fromkeys((T.repeat_interleave, torch.repeat_interleave), handle_index_select)
_IDLE_HANDLERS[T.__deepcopy__] = handle_copy


def register_sdpa_equivalent(function: Kernel) -> Kernel:
    """Decorates a function that takes what `F.scaled_dot_product_attention` takes, in its place:
    whoever watches hears it as that."""
    _HANDLERS[function] = _IDLE_HANDLERS[function] = _handle_sdpa
    KERNELS.add(function)
    return function


# What leaves scores scores, in whatever order their axes are.
_PASSING = {
    _HANDLERS[function]
    for function in (T.mul, T.div, T.add, T.sub, T.masked_fill, T.where, T.clamp, T.tanh, T.to)
}


@dataclass
class _ModeState:
    """A thread's watch, and for how many blocks it is kept.

    Args:
        hooked_blocks: Those whose models record all of their attention themselves.
    """

    mode: AttentionMode | None = None
    blocks: int = 0
    hooked_blocks: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """One block more."""
        with self.lock:
            self.blocks += 1
        if self.mode is None:
            self.mode = AttentionMode(self.kept)
            self.mode.__enter__()  # type: ignore[no-untyped-call]
        self.mode.tracking.unconfirmed = True

    def end(self) -> None:
        """One block less; after the last of them, whichever that is, nothing is watched.

        torch keeps what watches a thread, and takes it from no other: where a block of a generator
        ends in another thread, the watch stays and sees nothing, until its own thread observes
        again.
        """
        with self.lock:
            self.blocks -= 1
            over = not self.blocks and self.mode is not None
        if over and self.mode is not None and _thread_state.state is self:
            self.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.mode = None
        elif over and self.mode is not None:
            self.mode.tracking = TrackingContext()  # and keeps nothing alive

    def kept(self) -> bool:
        """Return True if there is a block."""
        return self.blocks > 0


class _ThreadState(threading.local):
    """What this thread watches."""

    def __init__(self) -> None:
        self.state = _ModeState()


_thread_state = _ThreadState()
_NONE = {id(None)}


def _active_tracking() -> TrackingContext | None:
    state = _thread_state.state
    return state.mode.tracking if state.mode is not None and state.blocks else None


def _is_forced_eager() -> bool:
    """Return True if this thread runs as written what is to be compiled."""
    here = _active_tracking()
    return _thread_state.state.hooked_blocks > 0 if here is None else not here.in_kernel


@contextmanager
def tracking_attention(model: nn.Module) -> Iterator[None]:
    """Watch for the length of a block, once however many blocks there are in this thread.

    Nothing is watched for a model that records all of its attention by its hooks.
    """
    state = _thread_state.state  # of the thread in which the block begins, wherever it ends
    if has_only_hooked_attention(model):
        with state.lock:
            state.hooked_blocks += 1
        try:
            with without_compile(_is_forced_eager):
                yield
        finally:
            with state.lock:
                state.hooked_blocks -= 1
        return
    state.begin()
    try:
        modules = list(model.modules())
        tracking = _active_tracking()
        if tracking is not None:
            tables = (
                table for module in modules for table in (module._parameters, module._buffers)
            )
            parameter_ids = {id(tensor) for table in tables for tensor in table.values()}
            tracking.origins.learned |= parameter_ids - _NONE
        with without_compile(_is_forced_eager), observed_interfaces(modules, _active_tracking):
            yield
    finally:
        state.end()
