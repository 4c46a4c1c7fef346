"""How often a tensor was changed in its place, also where torch keeps no count."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor

from attlas.recording.foreign.unreadable import unreadable

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
    """Whether a function of torch changes its first argument, by its name."""
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
        self._opened: set[int] = set()  # memory that somebody has as `tensor.data`

    @property
    def counts(self) -> bool:
        """Whether what changes a tensor in its place is to be counted here."""
        return bool(self._opened) or torch.is_inference_mode_enabled()

    def __call__(self, tensor: Tensor) -> tuple[int, int]:
        counted = 0 if tensor.is_inference() else tensor._version
        return counted, self._changes[memory(tensor)] if self._changes else 0

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
            return function  # nobody else may change tensors of inference mode
        first = args[:1] if in_place(function) or kwargs.get("inplace") else ()
        out = kwargs.get("out")
        changed = [*first, *(out if isinstance(out, tuple | list) else (out,))]
        uncounted = [
            one
            for one in changed
            if isinstance(one, Tensor) and (one.is_inference() or memory(one) in self._opened)
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


def share_memory(one: Tensor, other: Tensor) -> bool:
    """Whether the numbers of both lie in one block of memory."""
    if not one.numel() or unreadable(one, other):
        return False
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def overlap(one: Tensor, other: Tensor) -> bool:
    """Whether some of their numbers lie in the same place, or between those of the other."""
    shared = share_memory(one, other)
    return shared and _begin(one) <= _end(other) and _begin(other) <= _end(one)


def _begin(tensor: Tensor) -> int:
    return int(tensor.storage_offset())


def _end(tensor: Tensor) -> int:
    last = ((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.storage_offset()) + sum(last)
