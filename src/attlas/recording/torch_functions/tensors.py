"""How often a tensor was changed in its place, also where torch keeps no count."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from typing import Any, TypeVar
from weakref import ref

import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket

# Functions of torch under the names of their operators, as exported programs call them.


_SPACE = "aten"
OPERATORS = (OpOverload, OpOverloadPacket)
_OWN_NAMES = {"numpy_T": "T", "matrix_H": "H"}


def python_name(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function that an operator such as `torch.ops.aten.bmm.default` is, by which it is known;
    itself for all others, and for one that writes to a tensor which it is given.

    Only a name: what they are given differs, so that it is the operator that has to be called.
    """
    if isinstance(func, OpOverload | OpOverloadPacket):
        return _python_name(func)
    return func


@cache
def _python_name(operator: OpOverload | OpOverloadPacket) -> Callable[..., Any]:
    if isinstance(operator, OpOverload):
        space, name, writes = operator.namespace, operator._opname, "out" in operator._overloadname
    else:
        space, _, name = operator._qualified_op_name.partition("::")
        writes = False
    if space != _SPACE or writes:
        return operator
    name = _OWN_NAMES.get(name, name)
    for owner in (torch.nn.functional, torch, Tensor):
        function: Callable[..., Any] | None = getattr(owner, name, None)
        if callable(function):
            return function
    attribute = vars(torch._C.TensorBase).get(name)
    return operator if attribute is None else attribute.__get__


# Tensors without numbers of their own, of which no attention map can be made.


IN_VMAP = "a call inside torch.func.vmap, which shows one text for many; call it without vmap"
NESTED = "a call with nested tensors; pad them, with a mask"
HOLLOW = (
    "a call with tensors that have no numbers, of the device 'meta' or fake; give it real ones, "
    "such as by model.to_empty(device=...) and its weights"
)

_PLAIN = {Tensor, nn.Parameter}


def default_scale(query: Tensor) -> float:
    """1/√width, by which torch divides scores of its own accord; vectors of no width have none."""
    return float(max(query.shape[-1], 1) ** -0.5)


def unreadable(*tensors: Any) -> str | None:
    """Why no attention map can be made of these, of which some may be no tensors; None where one
    can."""
    if not any(map(_is_odd, tensors)):
        return None
    checked = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    if any(tensor.is_nested for tensor in checked):
        return NESTED
    if any(tensor.is_meta or hasattr(tensor, "fake_mode") for tensor in checked):
        return HOLLOW
    return IN_VMAP if any(map(_in_vmap, checked)) else None


def _is_odd(tensor: Any) -> bool:
    """Return True if it is a tensor of another kind than nearly all are."""
    is_plain = type(tensor) in _PLAIN
    if not is_plain:
        return isinstance(tensor, Tensor)
    functorch = torch._C._functorch
    is_special = tensor.is_nested or tensor.is_meta or functorch.is_functorch_wrapped_tensor(tensor)
    return bool(is_special)


def _in_vmap(tensor: Tensor) -> bool:
    """Return True if it stands for one of many: below it there may be others, of gradients."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


_NOT_IN_PLACE = ("__invert__", "__index__", "__int__")  # which begin as `__iadd__` does

_TAKES_DATA, _PUTS_DATA = (
    getattr(vars(torch._C.TensorBase)["data"], way) for way in ("__get__", "__set__")
)
_ARRAYS: set[Callable[..., Any]] = {Tensor.numpy, Tensor.__array__}


TAKING = (_TAKES_DATA, _PUTS_DATA, *_ARRAYS)
"""Functions after which a tensor may be changed where torch does not count it."""

_TAKING = frozenset(TAKING)


@cache
def in_place(function: Callable[..., Any]) -> bool:
    """Return True if a function of torch changes its first argument, by its name."""
    name: str = getattr(function, "__name__", "").partition(".")[0]  # of an operator's overload
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in _NOT_IN_PLACE)
    return name[-1:] == "_" != name[-2:-1]


class Versions:
    """The version of a tensor: it changes whenever the tensor does, or what shares its memory.

    Tensors of inference mode have none of torch's. Theirs is how often a function that was seen
    here has changed their memory. Nor does torch count what is done through `tensor.data`, or to an
    array of NumPy: the first is counted here, of the second who has it counts as having changed it.
    """

    def __init__(self) -> None:
        self._changes: Counter[int] = Counter()
        self._opened: set[int] = set()  # memory that is held as `tensor.data`

    @property
    def counts(self) -> bool:
        """Return True if what changes a tensor in its place is to be counted here."""
        return bool(self._opened) or torch.is_inference_mode_enabled()

    def __call__(self, tensor: Tensor) -> tuple[int, int]:
        version = 0 if tensor.is_inference() else tensor._version
        return version, self._changes[memory(tensor)] if self._changes else 0

    def counting(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """The function, which counts what it changes with these arguments where torch does not."""
        if function in _TAKING:
            if function == _TAKES_DATA:
                self._opened.add(memory(args[0]))
            elif function == _PUTS_DATA:
                return self._replacing
            elif function in _ARRAYS:
                self._changes[memory(args[0])] += 1
        if not self.counts:
            return function  # tensors of inference mode may not be changed elsewhere
        first = args[:1] if in_place(function) or kwargs.get("inplace") else ()
        out = kwargs.get("out")
        written_tensors = [*first, *(out if isinstance(out, tuple | list) else (out,))]
        uncounted = [
            changed_fact
            for changed_fact in written_tensors
            if isinstance(changed_fact, Tensor)
            and (changed_fact.is_inference() or memory(changed_fact) in self._opened)
        ]
        if not uncounted:
            return function

        @wraps(function)
        def changing(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self._changes.update(map(memory, uncounted))
            return result

        return changing

    def _replacing(self, tensor: Tensor, data: Tensor) -> None:
        """`tensor.data = data`, after which the numbers of the tensor are others."""
        tensor.data = data
        self._changes[memory(tensor)] += 1


def memory(tensor: Tensor) -> int:
    """Where its numbers lie; 0 for all that do not say, or have none."""
    if unreadable(tensor):
        return 0
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse ones, and those of functorch
        return 0


def share_memory(first: Tensor, second: Tensor) -> bool:
    """Return True if the numbers of both lie in one block of memory."""
    if not first.numel() or unreadable(first, second):
        return False
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def overlap(first: Tensor, second: Tensor) -> bool:
    """Return True if some of their numbers lie in the same place, or between those of the other."""
    shared = share_memory(first, second)
    return shared and _begin(first) <= _end(second) and _begin(second) <= _end(first)


def _begin(tensor: Tensor) -> int:
    return int(tensor.storage_offset())


def _end(tensor: Tensor) -> int:
    last = ((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.storage_offset()) + sum(last)


# What is known of tensors, for as long as they live.


Fact = TypeVar("Fact")


class WhileAlive(dict[int, tuple[ref[Tensor], Fact]]):
    """A table by identity, which keeps no tensor alive: a fact goes when its tensor does.

    Every function of torch that a model calls may ask for each of its arguments, so that it is a
    plain dictionary.
    """

    __slots__ = ()

    def of(self, tensor: object) -> Fact | None:
        """What is known of this tensor; None of anything else."""
        entry = self.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def learn(self, tensor: Tensor, fact: Fact) -> None:
        """From now on this is known of it."""
        number = id(tensor)
        self[number] = ref(tensor, partial(self.pop, number)), fact

    def forget(self, tensor: Tensor) -> None:
        """From now on nothing is known of it."""
        self.pop(id(tensor), None)
