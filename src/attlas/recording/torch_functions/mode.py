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

from attlas.errors import AttlasError
from attlas.recording.hooks import Place
from attlas.recording.torch_functions.call_site import one_function
from attlas.recording.torch_functions.calls import KERNELS
from attlas.recording.torch_functions.context import Handler, Hearing
from attlas.recording.torch_functions.kernels import OPERATOR, FusedCall, flexible
from attlas.recording.torch_functions.masks import unslotted
from attlas.recording.torch_functions.scores import (
    adding,
    assigning,
    capping,
    choosing,
    filling,
    flooring,
    product_onto,
    scaling,
)
from attlas.recording.torch_functions.softmax import (
    dotted,
    drawn,
    einsum,
    exponential,
    linear,
    log_softmax,
    logarithms_or,
    onto_or,
    product,
    softmax,
    softmin,
)
from attlas.recording.torch_functions.tensors import (
    OPERATORS,
    TAKING,
    in_place,
    python_name,
    unreadable,
)
from attlas.recording.torch_functions.transformers import heard_interfaces
from attlas.recording.torch_functions.weights import (
    CASTS,
    CONVOLUTIONS,
    MOVES,
    PARTS,
    REDUCTIONS,
    SHAPES,
    anything,
    choosing_rows,
    gate_or,
    joining,
    keeping,
    laying_out,
    moving,
    numbering,
    part,
    reducing,
    shaping,
    step,
    step_or,
    writing,
)

# Functions that torch.compile has taken over run as they are written while somebody looks.


_lock = threading.Lock()
_blocks = 0


class _Stance:
    """How torch takes what is to be compiled: in a thread in which somebody listens it runs as it
    is written, as `torch.compiler.set_stance("force_eager")` has it for all; elsewhere as before.

    A kernel of transformers runs compiled: it is told of by its name.
    """

    def __init__(self, others: Any, hearing: Callable[[], Hearing | None]) -> None:
        self.others, self._hearing = others, hearing

    @property
    def stance(self) -> Any:
        here = self._hearing()
        return self.others.stance if here is None or here.in_kernel else "force_eager"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)


@contextmanager
def as_written(hearing: Callable[[], Hearing | None]) -> Iterator[None]:
    """For the length of a block, compile nothing and run nothing compiled where somebody listens.

    torch keeps one stance for all threads. The last block to end puts it back.
    """
    _enter(hearing)
    try:
        yield
    finally:
        _leave()


def _compiler() -> Any:
    """torch's own module that asks for the stance; None where nothing has been compiled yet."""
    return sys.modules.get("torch._dynamo.eval_frame")


def _enter(hearing: Callable[[], Hearing | None]) -> None:
    global _blocks
    with _lock:
        _blocks += 1
        compiler = _compiler()
        stance = getattr(compiler, "_stance", None)
        if stance is not None and not isinstance(stance, _Stance):
            compiler._stance = _Stance(stance, hearing)


def _leave() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        stance = getattr(_compiler(), "_stance", None)
        if not _blocks and isinstance(stance, _Stance):
            _compiler()._stance = stance.others


# `F.multi_head_attention_forward`, run so that what it calls can be seen.


_WHOLE = F.multi_head_attention_forward


def _nobody(*_: Any) -> bool:
    return False


def opened(function: Any) -> Any:
    """The same code, which does not hand itself over to whoever overrides torch's functions.

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
    return opened(_WHOLE)(*args, **kwargs)


Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class Watch(TorchFunctionMode):
    """Sees every function of torch that this thread calls from Python, and stops at a few of them.

    Tensors pass through unchanged, and every function runs as it would without: what is read is
    copied on the side. Attention is a call of `F.scaled_dot_product_attention`, or a softmax over
    the last axis that comes to be multiplied with values.
    """

    def __init__(self, kept: Callable[[], bool]) -> None:
        super().__init__()
        self.hearing, self._kept = Hearing(), kept

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
        hearing, name = self.hearing, func
        if type(func) in OPERATORS:
            name = python_name(func)
        lineage = hearing.lineage
        opens = func is F.multi_head_attention_forward  # which somebody may have put another into
        counts = lineage.versions.counts
        if lineage.knows or opens:
            handler: Handler | None = _HANDLERS.get(name, anything)
        else:  # most of what a model calls
            handler = _AT_REST.get(name)
            if counts and handler is None and _changes(func, kwargs):
                handler = anything
        if hearing.unnoticed:
            hearing.notice()
        if handler is None:
            result = func(*args, **kwargs)
            hearing.origins.calls.note(name, args, kwargs, result)
            return result
        if not self._kept():  # nobody listens any more
            return func(*args, **kwargs)
        if opens:
            with self, hearing.beside_slots(unslotted(args, kwargs)):
                return multi_head_attention_forward(*args, **kwargs)  # which calls what we hear
        if counts or name in _TAKING:
            func = lineage.versions.counting(func, args, kwargs)
        result = handler(hearing, func, args, kwargs)
        if handler in _PASSING:
            lineage.pass_on(args, result)
        hearing.origins.calls.note(name, args, kwargs, result)
        return result


def _changes(func: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call may change a tensor in its place."""
    return in_place(func) or "out" in kwargs or "inplace" in kwargs


def _fused(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    call = FusedCall(*args, **kwargs)
    why = unreadable(call.query, call.key, call.attn_mask)
    if why is not None:
        hearing.miss(why)

    def refused(place: Place) -> str | None:
        return call.refused(place, hearing.folds)

    with one_function():
        concerned = hearing.concerned(refused) if why is None else ()
        if concerned:
            place = concerned[0][1]
            made_of = id(call.query), id(call.key), id(call.value)
            content = hearing.contents.heard(call.key, -2)
            repeats = 1 if content is None else content.repeats
            reading = call.reading(place, hearing.folds, hearing.sights, repeats)
            hearing.tell(concerned, reading, made_of, content=content)
    if not concerned:
        return func(*args, **kwargs)
    change = hearing.change(concerned)
    return func(*args, **kwargs) if change is None else call.changed(place, hearing.folds, change)


def _kernel(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    hearing.miss(
        f"a call of {func.__name__}, a kernel of torch, which models call when an exported program "
        "is decomposed; observe it as it was before, or let it call "
        "torch.nn.functional.scaled_dot_product_attention"
    )
    return func(*args, **kwargs)


def _nested(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Nested tensors in `nn.MultiheadAttention`, which takes them on its fast path alone."""
    nested = func(*args, **kwargs)
    for _, place in hearing.places() if nested else ():
        if type(place.module).forward is nn.MultiheadAttention.forward:
            raise AttlasError(
                f"padded tensors in layer {place.path!r}",
                "nested tensors, which nn.MultiheadAttention takes only while nobody looks",
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
    F.scaled_dot_product_attention: _fused,
    OPERATOR: flexible,
    **dict.fromkeys(_KERNELS, _kernel),
    **dict.fromkeys((torch.baddbmm, T.baddbmm, T.baddbmm_), onto_or(step_or(product_onto))),
    **dict.fromkeys((torch.addmm, T.addmm, T.addmm_, torch.addbmm, T.addbmm), onto_or(anything)),
    **dict.fromkeys((T.addbmm_, torch.addmv, T.addmv, T.addmv_), onto_or(anything)),
    vars(torch._C.TensorBase)["is_nested"].__get__: _nested,
    torch.einsum: einsum,
    T.__setitem__: writing(step_or(assigning)),
    **dict.fromkeys((T.index_copy_, T.copy_), writing(anything)),
    **dict.fromkeys((T.index_select, torch.index_select), choosing_rows),
    **dict.fromkeys((T.repeat_interleave, torch.repeat_interleave), choosing_rows),
    T.__deepcopy__: laying_out,
    F.gumbel_softmax: drawn,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate, torch.stack), joining),
    **dict.fromkeys(
        (T.masked_fill, torch.masked_fill, T.masked_fill_), logarithms_or(gate_or(filling))
    ),
    **dict.fromkeys((torch.where, T.where), logarithms_or(gate_or(choosing))),
    **dict.fromkeys(
        (torch.max, T.max, torch.maximum, T.maximum, torch.clamp, T.clamp), step_or(flooring)
    ),
    **dict.fromkeys((torch.tanh, T.tanh, T.tanh_, F.tanh), step_or(capping)),
    **dict.fromkeys((F.softmax, torch.softmax, T.softmax, torch.special.softmax), softmax),
    **dict.fromkeys((torch._softmax, torch._safe_softmax), softmax),  # of decomposed programs
    F.softmin: softmin,
    **dict.fromkeys(
        (F.log_softmax, torch.log_softmax, T.log_softmax, torch.special.log_softmax), log_softmax
    ),
    torch._log_softmax: log_softmax,
    **dict.fromkeys((torch.exp, T.exp, torch.exp_, T.exp_), step_or(exponential)),
    **dict.fromkeys((torch.matmul, T.matmul, T.__matmul__, torch.bmm, T.bmm), product),
    **dict.fromkeys((torch.mm, T.mm, torch.mv, T.mv, torch.linalg.matmul), product),
    F.linear: linear,
    **dict.fromkeys((torch.tensordot, torch.inner, T.inner), dotted),
    **dict.fromkeys(
        (T.mul, torch.mul, T.__mul__, T.__rmul__, T.mul_, T.__imul__), gate_or(scaling(lambda x: x))
    ),
    **dict.fromkeys(
        (T.div, torch.div, T.__truediv__, T.true_divide, T.div_, T.__itruediv__),
        gate_or(scaling(lambda x: 1 / x)),
    ),
    **dict.fromkeys(
        (T.add, torch.add, T.__add__, T.__radd__, T.__iadd__, T.add_), step_or(adding(1))
    ),
    **dict.fromkeys((T.sub, torch.sub, T.__sub__, T.__isub__, T.sub_), step_or(adding(-1))),
    **dict.fromkeys(CASTS | SHAPES | _DROPS, logarithms_or(step)),
    **dict.fromkeys((torch.nan_to_num, T.nan_to_num), numbering),
    **dict.fromkeys(MOVES, moving),
    **dict.fromkeys(REDUCTIONS, reducing),
    **dict.fromkeys(CONVOLUTIONS, keeping),
    **dict.fromkeys(PARTS, part),
}


KERNELS.add(OPERATOR)

# What matters while nothing is known of any tensor: what looks, what may become scores or weights,
# and what tells how heads are folded.
_AT_REST: dict[Any, Handler] = {
    name: handler
    for name, handler in _HANDLERS.items()
    if handler in (_fused, flexible, _kernel, _nested, einsum, joining, drawn, softmax, softmin)
    or handler in (log_softmax, product, dotted)
}
_AT_REST |= dict.fromkeys((torch.baddbmm, T.baddbmm), product_onto)
_AT_REST |= dict.fromkeys(TAKING, anything)
_AT_REST |= dict.fromkeys(SHAPES, shaping) | dict.fromkeys(CASTS, laying_out)
_AT_REST |= dict.fromkeys(MOVES, moving) | dict.fromkeys((T.__getitem__, T.expand), part)
_AT_REST |= dict.fromkeys((T.split, torch.split, T.chunk, torch.chunk), part)
_AT_REST |= {
    name: _HANDLERS[name]
    for name in (T.__setitem__, T.index_copy_, T.copy_, T.index_select, torch.index_select)
}
_AT_REST |= dict.fromkeys((T.repeat_interleave, torch.repeat_interleave), choosing_rows)
_AT_REST[T.__deepcopy__] = laying_out


def heard_as_kernel(function: Kernel) -> Kernel:
    """Decorates a function that takes what `F.scaled_dot_product_attention` takes, in its place:
    whoever watches hears it as that."""
    _HANDLERS[function] = _AT_REST[function] = _fused
    KERNELS.add(function)
    return function


# What leaves scores scores, in whatever order their axes are.
_PASSING = {
    _HANDLERS[one]
    for one in (T.mul, T.div, T.add, T.sub, T.masked_fill, T.where, T.clamp, T.tanh, T.to)
}


@dataclass
class _Vigil:
    """A thread's watch, and for how many blocks it is kept."""

    watch: Watch | None = None
    blocks: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """One block more."""
        with self.lock:
            self.blocks += 1
        if self.watch is None:
            self.watch = Watch(self.kept)
            self.watch.__enter__()  # type: ignore[no-untyped-call]
        self.watch.hearing.unnoticed = True

    def end(self) -> None:
        """One block less; after the last of them, whichever that is, nobody watches.

        torch keeps what watches a thread, and takes it from no other: where a block of a generator
        ends in another thread, the watch stays and sees nothing, until its own thread observes
        again.
        """
        with self.lock:
            self.blocks -= 1
            over = not self.blocks and self.watch is not None
        if over and self.watch is not None and _here.vigil is self:
            self.watch.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.watch = None
        elif over and self.watch is not None:
            self.watch.hearing = Hearing()  # and keeps nothing alive

    def kept(self) -> bool:
        """Whether there is a block."""
        return self.blocks > 0


class _Here(threading.local):
    """What this thread watches."""

    def __init__(self) -> None:
        self.vigil = _Vigil()


_here = _Here()
_NONE = {id(None)}


def _listening() -> Hearing | None:
    vigil = _here.vigil
    return vigil.watch.hearing if vigil.watch is not None and vigil.blocks else None


@contextmanager
def watching(model: nn.Module) -> Iterator[None]:
    """Watch for the length of a block, once however many blocks there are in this thread."""
    vigil = _here.vigil  # of the thread in which the block begins, wherever it ends
    vigil.begin()
    try:
        modules = list(model.modules())
        hearing = _listening()
        if hearing is not None:
            held = (one for each in modules for one in (each._parameters, each._buffers))
            hearing.origins.learned |= {id(one) for each in held for one in each.values()} - _NONE
        with as_written(_listening), heard_interfaces(modules, _listening):
            yield
    finally:
        vigil.end()
