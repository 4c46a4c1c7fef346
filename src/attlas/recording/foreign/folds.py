"""Which of the axes before places are heads, also where they are folded into one with others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from attlas.recording.foreign.alive import WhileAlive

_PLACES_AND_WIDTH = 2
_AXES = 3  # of vectors whose heads may be folded: texts and heads, places, width

STACKED = -1
"""For the stride of an axis along which tensors were stacked, of which each was a head."""

Factors = tuple[tuple[int, int], ...]
"""Of what an axis is folded, the outermost first: how many, and how far apart in memory."""

Layout = tuple[Factors, ...]
"""The factors of every axis of a tensor."""

_Key = tuple[tuple[int, ...], int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Texts and heads in the axes before places: of which factors these are folded, and which of
    all these factors are heads. The others, texts and windows of texts, are the batch.

    sizes: of the factors of each axis, the outermost first. heads: factors that follow each other;
    none = there is one head.
    """

    sizes: tuple[tuple[int, ...], ...] = ()
    heads: range = range(0)

    @property
    def count(self) -> int:
        """How many heads there are."""
        return prod(self._factors[one] for one in self.heads)

    def open(
        self, tensor: Shaped[Tensor, "..."], *, shared: bool = False
    ) -> Shaped[Tensor, "#batch #heads places last"]:
        """The tensor with axes (batch, heads, places, last); one of size 1 where it says the same
        for all. shared: keys, of which a head may stay one for several neighbouring queries' heads.
        """
        while tensor.ndim < len(self.sizes) + _PLACES_AND_WIDTH:
            tensor = tensor.unsqueeze(0)
        if len(self.sizes) == _PLACES_AND_WIDTH and self._in_order:
            return tensor  # it has these axes
        apart = tensor.reshape(*self._found(tensor.shape), *tensor.shape[-2:])
        texts, factors = self._texts, self._factors
        apart = apart.permute(*texts, *self.heads, -2, -1)
        found = apart.shape[: len(texts)], apart.shape[len(texts) : -2]
        wanted = [factors[one] for one in texts], [factors[one] for one in self.heads]
        kept = _kept(found[0], wanted[0], shared=False), _kept(found[1], wanted[1], shared=shared)
        apart = apart.expand(*kept[0], *kept[1], -1, -1)
        return apart.reshape(prod(kept[0]), prod(kept[1]), *tensor.shape[-2:])

    def close(self, tensor: Shaped[Tensor, "#batch #heads places last"]) -> Shaped[Tensor, "..."]:
        """The tensor with all axes as `open` has found them; what was the same for all has 1s."""
        if len(self.sizes) == _PLACES_AND_WIDTH and self._in_order:
            return tensor
        factors = self._factors
        texts = [1 if tensor.shape[0] == 1 else factors[one] for one in self._texts]
        heads = [1 if tensor.shape[1] == 1 else factors[one] for one in self.heads]
        order = [*self._texts, *self.heads]
        apart = tensor.reshape(*texts, *heads, *tensor.shape[-2:])
        apart = apart.permute(*(order.index(one) for one in range(len(order))), -2, -1)
        ends = [0]
        for each in self.sizes:
            ends.append(ends[-1] + len(each))
        sizes = [prod(apart.shape[start:stop]) for start, stop in pairwise(ends)]
        return apart.reshape(*sizes, *tensor.shape[-2:])

    @property
    def _factors(self) -> list[int]:
        return [size for each in self.sizes for size in each]

    @property
    def _texts(self) -> list[int]:
        return [one for one in range(len(self._factors)) if one not in self.heads]

    @property
    def _in_order(self) -> bool:
        return self.heads == range(1, 2) and all(len(each) == 1 for each in self.sizes)

    def _found(self, shape: Sequence[int]) -> list[int]:
        """The sizes of the factors in a tensor of this shape."""
        pairs = zip(self.sizes, shape[:-2], strict=True)
        return [one if size == prod(each) else 1 for each, size in pairs for one in each]


def _kept(found: Sequence[int], wanted: Sequence[int], *, shared: bool) -> list[int]:
    """The sizes of factors that are folded into one axis: 1s where all are, else all of them."""
    if all(size == 1 for size in found):
        return list(found)
    same = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b), None)
    if shared and same is not None and all(size == 1 for size in found[same:]):
        return list(found)
    return list(wanted)


def in_order(rows: Sequence[int]) -> Fold:
    """Texts, heads: the last axis before places has the heads, if there are two of them."""
    sizes = tuple((size,) for size in rows)
    return Fold(sizes, range(len(rows) - 1, len(rows)) if len(rows) > 1 else range(0))


class Folds:
    """How tensors were laid out before they were folded, moved and copied.

    Which factor goes through the heads is told by how many there are; where there are as many texts
    or windows, it is the one beside the width in what was taken apart, or the one along which the
    heads were stacked. Known of a tensor, or by what was done to make vectors of this shape the
    last time: they have been scaled and rotated since, and are other tensors.
    """

    def __init__(self) -> None:
        self._layouts: WhileAlive[Layout] = WhileAlive()
        self._latest: dict[_Key, Layout] = {}

    def layout(self, tensor: Tensor) -> Layout | None:
        """The layout of a tensor whose own strides do not say it; None where they are all."""
        found = self._layouts.of(tensor)
        if found is None and self._latest and tensor.ndim >= _AXES and _is_strided(tensor):
            latest = self._latest.get(_key(tensor))
            rows = zip(latest or (), tensor.shape[:-2], strict=False)
            found = latest if all(_size(one) == size for one, size in rows) else None
        return found

    def joined(self, parts: Sequence[Any], result: Any, axis: Any) -> None:
        """`result` is these tensors, one after another along an axis."""
        if not isinstance(axis, int) or not isinstance(result, Tensor) or len(parts) < 2:
            return
        if result.ndim > _AXES and result.ndim == parts[0].ndim + 1 and _is_strided(result):
            plain = list(_plain(result))
            plain[axis] = ((len(parts), STACKED),)
            self._learn(result, tuple(plain))
        elif axis == 0 and result.ndim == _AXES and _is_strided(result):
            size = parts[0].shape[0]
            if result.shape[0] == len(parts) * size:
                folded = (len(parts), STACKED), (size, result.stride(0))
                self._learn(result, (folded, *_plain(result)[1:]))

    def laid_out(self, before: Any, result: Any) -> None:
        """`result` has the numbers of another tensor, perhaps in another order in memory."""
        if not isinstance(result, Tensor) or result is before or result.ndim < _AXES:
            return
        if not _is_strided(before) or not _is_strided(result):
            return
        known = self._layouts.of(before)
        if known is not None or result.stride() != before.stride():
            self._learn(result, known or _plain(before))

    def moved(self, before: Any, result: Any, order: Callable[[], Sequence[int]]) -> None:
        """`result` is another tensor whose axes changed places, into this order."""
        if not isinstance(result, Tensor) or result.ndim < _AXES or not _is_strided(result):
            return
        known = self.layout(before)
        if known is not None and len(known) == result.ndim:
            self._learn(result, tuple(known[axis] for axis in order()))
        elif self._latest:
            self._latest.pop(_key(result), None)

    def parted(self, before: Tensor, pieces: Sequence[Any]) -> None:
        """`pieces` are parts of a tensor, along one of its axes."""
        known = self._layouts.of(before)
        if known is None:
            return
        for piece in pieces:
            if isinstance(piece, Tensor) and piece.ndim == before.ndim:
                self._learn(piece, known)  # also how wide it was before

    def reshaped(self, before: Any, result: Any) -> None:
        """`result` is another tensor in another shape."""
        if not isinstance(result, Tensor) or result.ndim < _AXES or not _is_strided(result):
            return
        if self._latest:
            self._latest.pop(_key(result), None)
        known = self._layouts.of(before)
        mine, new = before.shape, result.shape
        if known is None and (mine[:-1] == new[:-2] or mine[:-2] == new[:-1]):
            return  # a width that was taken apart, or put together
        if before.ndim < _AXES or not _is_strided(before):
            return
        if known is not None and tuple(map(_size, known)) != mine:
            known = None  # of more than this part
        layout = _regrouped(known or _plain(before), new)
        if layout is not None and layout != _plain(result):
            self._learn(result, layout)

    def _learn(self, tensor: Tensor, layout: Layout) -> None:
        self._layouts.learn(tensor, layout)
        self._latest[_key(tensor)] = layout


def _key(tensor: Tensor) -> _Key:
    """By its axes but that of places, and in which order they lie in memory."""
    shape = tensor.shape
    return shape[:-2], shape[-1], _by_stride(tensor.stride())


@lru_cache(4096)
def _by_stride(strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(strides)), key=strides.__getitem__))


def _size(factors: Factors) -> int:
    return prod(size for size, _ in factors)


def _plain(tensor: Tensor) -> Layout:
    """As its own strides say."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(((size, stride),) for size, stride in pairs)


@lru_cache(4096)  # a model takes the same axes apart in each of its layers
def _regrouped(layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """The layout of the same numbers in another shape; None where a factor is cut in an odd way."""
    left = [factor for factors in layout for factor in factors if factor[0] != 1]
    found: list[Factors] = []
    for wanted in shape:
        taken: list[tuple[int, int]] = []
        while _size(tuple(taken)) < wanted and left:
            (size, stride), (rest, odd) = left.pop(0), divmod(wanted, _size(tuple(taken)))
            if odd:
                return None
            if size > rest:  # the outer part of it belongs here, the rest to the next axis
                if size % rest:
                    return None
                inner = size // rest
                left.insert(0, (inner, stride))
                size, stride = rest, stride * inner if stride > 0 else stride
            taken.append((size, stride))
        if _size(tuple(taken)) != wanted:
            return None
        found.append(tuple(taken) or ((1, 1),))
    return tuple(found)


def _is_strided(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_nested
