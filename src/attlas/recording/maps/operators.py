"""What an attention map has of an array beside its indices: operators, and hints for methods."""

from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError


class MapAttributeError(AttlasError, AttributeError):
    """A method of arrays that an attention map does not have."""

    __str__ = AttlasError.__str__


def _operator(name: str) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        if isinstance(other, ArrayOperators):
            other = other.weights().detach()
        # NumPy's own operators read a map as an array.
        is_numpy = isinstance(other, np.ndarray | np.generic)
        if is_numpy or not isinstance(other, Tensor | Real):
            return NotImplemented
        return getattr(self.weights().detach(), name)(other)

    apply.__name__ = name
    apply.__doc__ = f"`weights().{name}(other)`: a tensor."
    return apply


class ArrayOperators:
    """Comparisons and arithmetic of all weights, as a tensor: `attention_map > 0.1`.

    More than 2²⁸ weights are refused, as in `weights`. Two maps are equal only if they are the same
    object, so `==` gives no tensor.
    """

    __lt__ = _operator("__lt__")
    __le__ = _operator("__le__")
    __gt__ = _operator("__gt__")
    __ge__ = _operator("__ge__")
    __add__ = _operator("__add__")
    __radd__ = _operator("__radd__")
    __sub__ = _operator("__sub__")
    __rsub__ = _operator("__rsub__")
    __mul__ = _operator("__mul__")
    __rmul__ = _operator("__rmul__")
    __truediv__ = _operator("__truediv__")
    __rtruediv__ = _operator("__rtruediv__")
    __pow__ = _operator("__pow__")
    __matmul__ = _operator("__matmul__")
    __rmatmul__ = _operator("__rmatmul__")

    def weights(self) -> Float[Tensor, "batch heads queries keys"]:
        """All weights at once."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """Name the array where a method of arrays is asked for.

        It is an AttributeError, so that `hasattr` says what it said.
        """
        ways = [way.format(name) for way, names in _doors() if name in names]
        if ways:
            raise MapAttributeError(
                "an attribute of an attention map, such as entropy() or summary()",
                f"`{name}`, which only arrays have",
                f"write {' or '.join(ways)}",
            )
        return object.__getattribute__(self, name)  # it fails, with Python's message


@cache
def _doors() -> tuple[tuple[str, frozenset[str]], ...]:
    """How to get an array, and the public names that it has."""
    kinds = {
        "np.asarray(attention_map).{}": np.ndarray,
        "attention_map.weights().{}": Tensor,
    }
    return tuple(
        (way, frozenset(name for name in dir(kind) if not name.startswith("_")))
        for way, kind in kinds.items()
    )
