"""Heads that are folded into the axis of texts, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from attlas.recording.foreign.alive import WhileAlive

_AXES = 3  # of vectors whose heads are folded: texts and heads, places, width


@dataclass(frozen=True, slots=True)
class Fold:
    """The first of three axes is texts × heads, or heads × texts where `heads_first`."""

    heads: int = 1
    heads_first: bool = False

    def open(
        self, tensor: Shaped[Tensor, "folded places last"]
    ) -> Shaped[Tensor, "batch heads places last"]:
        """The tensor with an axis of its own for the heads."""
        batch = tensor.shape[0] // self.heads
        if self.heads_first:
            return tensor.reshape(self.heads, batch, *tensor.shape[1:]).transpose(0, 1)
        return tensor.reshape(batch, self.heads, *tensor.shape[1:])

    def close(
        self, tensor: Shaped[Tensor, "batch heads places last"]
    ) -> Shaped[Tensor, "folded places last"]:
        """The tensor with texts and heads in one axis, as `open` has found them."""
        return (tensor.transpose(0, 1) if self.heads_first else tensor).flatten(0, 1)


ONE_HEAD = Fold()


class Folds:
    """Where heads came to be folded, and which of the two was outside.

    Known by what was done to make vectors of this shape the last time: they have been scaled and
    rotated since, and are other tensors. Which of two axes goes through the heads is told by how
    many there are; where there are as many texts, it is the one with the smaller stride in what was
    taken apart, or the one along which the heads were stacked.
    """

    def __init__(self) -> None:
        self._outside: dict[tuple[int, int], tuple[int, int, bool]] = {}  # of rows, and of a width
        self._strides: WhileAlive[tuple[int, ...]] = WhileAlive()  # before it was laid out anew

    def order(self, tensor: Shaped[Tensor, "folded places last"], heads: int) -> Fold:
        """How so many heads are folded into the first axis of this."""
        made = self._outside.get((tensor.shape[0], tensor.shape[-1]))
        if made is None:
            return Fold(heads)
        outer, inner, heads_first = made
        return Fold(heads, outer == heads and (inner != heads or heads_first))

    def joined(self, parts: Sequence[Any], result: Any, axis: Any) -> None:
        """`result` is these tensors, one after another along an axis."""
        if axis != 0 or not isinstance(result, Tensor) or len(parts) < 2:
            return
        if result.ndim == _AXES + 1:  # stacked
            self._strides.learn(result, (0, *result.stride()[1:]))
        elif result.ndim == _AXES and result.shape[0] == len(parts) * parts[0].shape[0]:
            key = result.shape[0], result.shape[-1]
            self._outside[key] = len(parts), parts[0].shape[0], True

    def laid_out(self, before: Any, result: Any) -> None:
        """`result` has the numbers of another tensor, perhaps in another order in memory."""
        if isinstance(result, Tensor) and result is not before and _has_strides(before):
            self._strides.learn(result, self._strides.of(before) or before.stride())

    def moved(self, before: Any, result: Any) -> None:
        """`result` is another tensor whose axes changed places: what is in front may be new."""
        if not isinstance(result, Tensor) or result.ndim != _AXES or not _is_strided(result):
            return
        if (result.shape[0], result.stride(0)) != (before.shape[0], before.stride(0)):
            self._outside.pop((result.shape[0], result.shape[-1]), None)

    def reshaped(self, before: Any, result: Any) -> None:
        """`result` is another tensor in another shape."""
        if not isinstance(result, Tensor) or result.ndim != _AXES:
            return
        key = result.shape[0], result.shape[-1]
        self._outside.pop(key, None)
        if _has_strides(before) and before.shape[-2:] == result.shape[-2:]:
            strides = self._strides.of(before) or before.stride()
            self._outside[key] = before.shape[0], before.shape[1], strides[0] < strides[1]


def _has_strides(tensor: Tensor) -> bool:
    """Whether heads, texts, places and width may be its axes."""
    return tensor.ndim == _AXES + 1 and _is_strided(tensor)


def _is_strided(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested
