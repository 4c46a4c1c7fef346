"""What a function of the reference is given: lists or arrays of numbers, made float64."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_args

import numpy as np
from jaxtyping import AbstractArray
from numpy.typing import NDArray

from attlas.errors import AttlasError

R = TypeVar("R")


def takes_arrays(function: Callable[..., R]) -> Callable[..., R]:
    """The same function, which reads its arguments by `np.asarray` as its annotations say.

    Numbers become float64. Masks are bools, or 0 and 1. Axes of the same name have to have the same
    size; a mask broadcasts.

    Raises:
        AttlasError: An argument is no such array, or has another shape.
    """
    signature = inspect.signature(function)
    hints = {name: parameter.annotation for name, parameter in signature.parameters.items()}

    @wraps(function)
    def read(*args: Any, **kwargs: Any) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # it fails, with Python's message
        bound.arguments.update(_read(bound.arguments, hints))
        return function(*bound.args, **bound.kwargs)

    return read


def _read(arguments: dict[str, Any], hints: dict[str, Any]) -> dict[str, Any]:
    """The arguments as arrays, and parameters with theirs; others as they are."""
    sizes: dict[str, int] = {}
    whole_shapes: dict[str, tuple[int, ...]] = {}
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = dict(zip(value._fields, value, strict=True))
            found[name] = type(value)(**_read(fields, type(value).__annotations__))
            continue
        hint = _array_hint(hints.get(name))
        found[name] = value
        if hint is not None and value is not None:
            found[name] = _as_array(name, value, hint)
            _check_shape(name, found[name], hint, sizes, whole_shapes)
    return found


def _array_hint(hint: Any) -> Any:
    """The annotation of an array, which may be left out; None: it is of something else."""
    choices = [choice for choice in get_args(hint) or (hint,) if choice is not type(None)]
    is_array = inspect.isclass(choices[0]) and issubclass(choices[0], AbstractArray)
    return choices[0] if len(choices) == 1 and is_array else None


def _as_array(name: str, value: Any, hint: Any) -> NDArray[Any]:
    is_float = "float64" in hint.dtypes
    is_mask = "bool" in hint.dtypes
    kinds = "fiub" if is_float else "biu" if is_mask else "iu"
    content = "numbers" if is_float else "bools, or of 0 and 1" if is_mask else "whole numbers"
    cure = "True is where looking is allowed" if is_mask else "pass a list or an array of them"
    expected = f"{name} of {content}"
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise AttlasError(expected, f"a {type(value).__name__} ({error})", cure) from None
    is_truth = not is_mask or array.dtype.kind == "b" or bool(np.isin(array, (0, 1)).all())
    if array.size and (array.dtype.kind not in kinds or not is_truth):
        raise AttlasError(expected, f"{array.dtype} of shape {array.shape}", cure)
    dtype = np.float64 if is_float else np.bool_ if is_mask else array.dtype
    return array.astype(dtype, copy=False)


def _broadcasts(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def _check_shape(
    name: str,
    array: NDArray[Any],
    hint: Any,
    sizes: dict[str, int],
    whole_shapes: dict[str, tuple[int, ...]],
) -> None:
    """`AttlasError` where the axes are not those of the annotation, or not as long as others."""
    axes = hint.dim_str.replace("#", "").split()
    if not axes or axes == ["..."]:
        return
    if any(axis.startswith("*") for axis in axes):
        whole = whole_shapes.setdefault(" ".join(axes), array.shape)
        if not _broadcasts(array.shape, whole):
            raise AttlasError(
                f"{name} of a shape that broadcasts to {whole}",
                f"shape {array.shape}",
                "give it the axes of the other argument",
            )
        return
    is_mask = "bool" in hint.dtypes
    shape = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
    if array.ndim > len(axes) or (array.ndim < len(axes) and not is_mask):
        raise AttlasError(
            f"{name} of shape {shape}",
            f"shape {array.shape}",
            f"one text at a time: pass {name}[0] of a batch"
            if array.ndim > len(axes)
            else "give it the axes that are missing",
        )
    for axis, size in zip(axes[len(axes) - array.ndim :], array.shape, strict=True):
        if axis == "_" or (is_mask and size == 1):
            continue
        if sizes.setdefault(axis, size) != size:
            raise AttlasError(
                f"{name} of shape {shape} with {axis} = {sizes[axis]}, as in the arguments before",
                f"shape {array.shape}",
                f"make {axis} the same everywhere",
            )
