"""Find the axis of heads in a model's tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.recording.hooks import CallSite, attribute
from attlas.recording.torch_functions.tensors import WhileAlive

# Which of the axes before places are heads, also where they are folded into one with others.


_PLACES_AND_WIDTH = 2
_AXES = 3  # of vectors whose heads may be folded: texts and heads, places, width

STACKED = -1
"""For the stride of an axis along which tensors were stacked, of which each was a head."""

Factors = tuple[tuple[int, int], ...]
"""Of what an axis is folded, the outermost query_offset: how many, and how far apart in memory."""

Layout = tuple[Factors, ...]
"""The factors of every axis of a tensor."""

_Key = tuple[tuple[int, ...], int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Texts and heads in the axes before places: of which factors these are folded, and which of
    all these factors are heads. The others, texts and windows of texts, are the batch.

    Args:
        sizes: Of the factors of each axis, the outermost first.
        heads: Factors that follow each other; none = there is one head.
    """

    sizes: tuple[tuple[int, ...], ...] = ()
    heads: range = range(0)

    @property
    def count(self) -> int:
        """How many heads there are."""
        return prod(self._factors[index] for index in self.heads)

    def open(
        self, tensor: Shaped[Tensor, "..."], *, shared: bool = False
    ) -> Shaped[Tensor, "#batch #heads places last"]:
        """The tensor with axes (batch, heads, places, last); one of size 1 where it says the same
        for all.

        Args:
            shared: Keys, of which a head may stay one for several neighbouring queries' heads.
        """
        while tensor.ndim < len(self.sizes) + _PLACES_AND_WIDTH:
            tensor = tensor.unsqueeze(0)
        if len(self.sizes) == _PLACES_AND_WIDTH and self._in_order:
            return tensor  # it has these axes
        unfolded = tensor.reshape(*self._found(tensor.shape), *tensor.shape[-2:])
        texts, factors = self._texts, self._factors
        unfolded = unfolded.permute(*texts, *self.heads, -2, -1)
        leading_sizes = unfolded.shape[: len(texts)], unfolded.shape[len(texts) : -2]
        axes = [factors[index] for index in texts], [factors[index] for index in self.heads]
        rows = (
            _folded_sizes(leading_sizes[0], axes[0], shared=False),
            _folded_sizes(leading_sizes[1], axes[1], shared=shared),
        )
        unfolded = unfolded.expand(*rows[0], *rows[1], -1, -1)
        return unfolded.reshape(prod(rows[0]), prod(rows[1]), *tensor.shape[-2:])

    def close(self, tensor: Shaped[Tensor, "#batch #heads places last"]) -> Shaped[Tensor, "..."]:
        """The tensor with all axes as `open` has found them; what was the same for all has 1s."""
        if len(self.sizes) == _PLACES_AND_WIDTH and self._in_order:
            return tensor
        factors = self._factors
        texts = [1 if tensor.shape[0] == 1 else factors[index] for index in self._texts]
        heads = [1 if tensor.shape[1] == 1 else factors[index] for index in self.heads]
        order = [*self._texts, *self.heads]
        unfolded = tensor.reshape(*texts, *heads, *tensor.shape[-2:])
        unfolded = unfolded.permute(*(order.index(index) for index in range(len(order))), -2, -1)
        ends = [0]
        for axis_sizes in self.sizes:
            ends.append(ends[-1] + len(axis_sizes))
        sizes = [prod(unfolded.shape[start:stop]) for start, stop in pairwise(ends)]
        return unfolded.reshape(*sizes, *tensor.shape[-2:])

    @property
    def _factors(self) -> list[int]:
        return [size for axis_sizes in self.sizes for size in axis_sizes]

    @property
    def _texts(self) -> list[int]:
        return [index for index in range(len(self._factors)) if index not in self.heads]

    @property
    def _in_order(self) -> bool:
        return self.heads == range(1, 2) and all(len(axis_sizes) == 1 for axis_sizes in self.sizes)

    def _found(self, shape: Sequence[int]) -> list[int]:
        """The sizes of the factors in a tensor of this shape."""
        pairs = zip(self.sizes, shape[:-2], strict=True)
        return [
            factor if size == prod(axis_factors) else 1
            for axis_factors, size in pairs
            for factor in axis_factors
        ]


def _folded_sizes(sizes: Sequence[int], expected: Sequence[int], *, shared: bool) -> list[int]:
    """The sizes of factors that are folded into one axis: 1s where all are, else all of them."""
    if all(size == 1 for size in sizes):
        return list(sizes)
    first_difference = next(
        (n for n, (a, b) in enumerate(zip(sizes, expected, strict=True)) if a != b), None
    )
    if (
        shared
        and first_difference is not None
        and all(size == 1 for size in sizes[first_difference:])
    ):
        return list(sizes)
    return list(expected)


def in_order(rows: Sequence[int]) -> Fold:
    """Texts, heads: the last axis before places has the heads, if there are two of them."""
    sizes = tuple((size,) for size in rows)
    return Fold(sizes, range(len(rows) - 1, len(rows)) if len(rows) > 1 else range(0))


class Folds:
    """How tensors were laid out before they were folded, moved and copied.

    The number of factors decides which of them goes through the heads. Where there are as many
    texts or windows, it is the one beside the width in what was taken apart, or the one along which
    the heads were stacked. Known of a tensor, or by what was done to make vectors of this shape
    the last time: they have been scaled and rotated since, and are other tensors.
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
            found = latest if all(_size(factors) == size for factors, size in rows) else None
        return found

    def joined(self, parts: Sequence[Any], result: Any, axis: Any) -> None:
        """`result` is these tensors, one after another along an axis."""
        if not isinstance(axis, int) or not isinstance(result, Tensor) or len(parts) < 2:
            return
        if result.ndim > _AXES and result.ndim == parts[0].ndim + 1 and _is_strided(result):
            plain_tensors = list(_plain(result))
            plain_tensors[axis] = ((len(parts), STACKED),)
            self._learn(result, tuple(plain_tensors))
        elif axis == 0 and result.ndim == _AXES and _is_strided(result):
            size = parts[0].shape[0]
            if result.shape[0] == len(parts) * size:
                folded = (len(parts), STACKED), (size, result.stride(0))
                self._learn(result, (folded, *_plain(result)[1:]))

    def laid_out(self, original: Any, result: Any) -> None:
        """`result` has the numbers of another tensor, perhaps in another order in memory."""
        if not isinstance(result, Tensor) or result is original or result.ndim < _AXES:
            return
        if not _is_strided(original) or not _is_strided(result):
            return
        layout = self._layouts.of(original)
        if layout is not None or result.stride() != original.stride():
            self._learn(result, layout or _plain(original))

    def moved(self, original: Any, result: Any, order: Callable[[], Sequence[int]]) -> None:
        """`result` is another tensor whose axes changed places, into this order."""
        if not isinstance(result, Tensor) or result.ndim < _AXES or not _is_strided(result):
            return
        layout = self.layout(original)
        if layout is not None and len(layout) == result.ndim:
            self._learn(result, tuple(layout[axis] for axis in order()))
        elif self._latest:
            self._latest.pop(_key(result), None)

    def parted(self, original: Tensor, pieces: Sequence[Any]) -> None:
        """`pieces` are parts of a tensor, along one of its axes."""
        layout = self._layouts.of(original)
        if layout is None:
            return
        for piece in pieces:
            if isinstance(piece, Tensor) and piece.ndim == original.ndim:
                self._learn(piece, layout)  # also how wide it was before

    def reshaped(self, original: Any, result: Any) -> None:
        """`result` is another tensor in another shape."""
        if not isinstance(result, Tensor) or result.ndim < _AXES or not _is_strided(result):
            return
        if self._latest:
            self._latest.pop(_key(result), None)
        old_layout = self._layouts.of(original)
        old, new = original.shape, result.shape
        if old_layout is None and (old[:-1] == new[:-2] or old[:-2] == new[:-1]):
            return  # a width that was taken apart, or put together
        if original.ndim < _AXES or not _is_strided(original):
            return
        if old_layout is not None and tuple(map(_size, old_layout)) != old:
            old_layout = None  # of more than this part
        layout = _reshaped_layout(old_layout or _plain(original), new)
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
def _reshaped_layout(layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """The layout of the same numbers in another shape; None where a factor is cut in an odd way."""
    factors_left = [factor for factors in layout for factor in factors if factor[0] != 1]
    axes: list[Factors] = []
    for new_size in shape:
        axis: list[tuple[int, int]] = []
        while _size(tuple(axis)) < new_size and factors_left:
            (size, stride), (axis_factor, remainder) = (
                factors_left.pop(0),
                divmod(new_size, _size(tuple(axis))),
            )
            if remainder:
                return None
            if size > axis_factor:  # the outer part of it belongs here, the rest to the next axis
                if size % axis_factor:
                    return None
                inner = size // axis_factor
                factors_left.insert(0, (inner, stride))
                size, stride = axis_factor, stride * inner if stride > 0 else stride
            axis.append((size, stride))
        if _size(tuple(axis)) != new_size:
            return None
        axes.append(tuple(axis) or ((1, 1),))
    return tuple(axes)


def _is_strided(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_nested


_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")
_WIDTHS = ("embed_dim", "hidden_size", "all_head_size", "d_model", "width", "dim", "inner_dim")
_OWN_WIDTHS = ("head_dim", "dim_head", "d_head", "head_size", "attention_head_size", "d_k")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "kv_heads", "n_kv_head")
_TEXTS_AND_HEADS = 2
_MATRIX = 2  # axes
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def heads_of(
    rows: Sequence[int],
    evidence: Sequence[Tensor],
    site: CallSite,
    folds: Folds,
    queries: int | None = None,
) -> Fold:
    """Which of the axes before places are heads, by the number of them that the module names.

    Args:
        rows: The sizes of these axes.
        evidence: Tensors with these axes, such as queries, keys and values; which of several axes
            of one size has the heads, they say by how they were made. Heads may be folded into an
            axis with texts where so many vectors of this width make a width that the module names,
            or that of a linear map or a convolution which it holds. They may also be two axes, of
            key heads and of those that share one. Without a number that fits, the last axis has
            them if there are two. A module that goes through its heads one by one does so for as
            many rows as it was given texts.
        queries: How many there are, where these are not they.
    """
    module, default = site.module, in_order(rows)
    numbers = dict.fromkeys(number for name in _HEADS if (number := _number(module, name)))
    if not numbers or not rows or not evidence:
        return default
    if len(rows) == _TEXTS_AND_HEADS and rows[1] in numbers and rows[0] % rows[1]:
        return default  # as nearly every model has them
    factors, width = _factors_of(rows, evidence, folds)
    tensor = evidence[0]
    num_positions = tensor.shape[-2] if queries is None else queries
    shapes = [tensor.shape for tensor in evidence if tensor.ndim == len(rows) + 2]
    shared = any(shape[-3] == 1 < rows[-1] for shape in shapes)
    for heads in numbers:
        if heads == 1 and len(rows) > 1 and 1 not in rows:
            return Fold(default.sizes)  # all are texts
        fits = partial(_fits, module, heads, tensor.shape[-1])
        if len(rows) == 1:
            divides = rows[0] % heads == 0 and fits()
            if not divides or site.has_unfolded_heads(rows[0], num_positions, heads):
                continue
        elif max(map(len, factors)) == 1 and _are_key_heads(rows, heads, num_positions, module):
            return default
        fold = _run_of(heads, factors, width, shared=shared) or (
            _split_axis(heads, factors) if fits() else None
        )
        if fold is not None:
            return fold
    return default


def _factors_of(
    rows: Sequence[int], evidence: Sequence[Tensor], folds: Folds
) -> tuple[tuple[Factors, ...], Factors]:
    """Of what each of these axes is folded, and the width: as the first of these tensors says that
    is known to have been laid out otherwise, or that lies in memory otherwise, else as the first.
    """
    aligned = [candidate for candidate in evidence if _axes_match(candidate, rows)] or evidence[:1]
    with_layout = [
        (candidate, layout)
        for candidate in aligned
        if (layout := folds.layout(candidate)) is not None
    ]
    permuted = [candidate for candidate in aligned if not candidate.is_contiguous()]
    tensor, layout = with_layout[0] if with_layout else ((*permuted, *aligned)[0], None)
    if layout is None:
        layout = tuple(
            ((size, stride),) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        )
    if not _axes_match(tensor, rows):
        return tuple(((size, 0),) for size in rows), layout[-1]
    missing = len(rows) - (tensor.ndim - 2)
    factors: list[Factors] = [((size, 0),) for size in rows[:missing]]
    for size, axis_factors in zip(rows[missing:], layout[:-2], strict=True):
        factors.append(
            axis_factors if prod(count for count, _ in axis_factors) == size else ((size, 0),)
        )
    return tuple(factors), layout[-1]


def _axes_match(tensor: Tensor, rows: Sequence[int]) -> bool:
    """Return True if it has these axes, from the last on, or some of them."""
    axes = tensor.shape[:-2]
    if len(axes) > len(rows):
        return False
    return all(a in (1, b) for a, b in zip(axes[::-1], rows[::-1], strict=False))


def _run_of(heads: int, layout: Sequence[Factors], width: Factors, *, shared: bool) -> Fold | None:
    """The factors that make so many heads; of several, those beside the width in memory.

    Args:
        shared: Whether those along the last axis share their keys.
    """
    flat = [(axis, *factor) for axis, factors in enumerate(layout) for factor in factors]
    runs: list[tuple[int, bool, int, int, range]] = []
    for start in range(len(flat)):
        size = 1
        for stop in range(start + 1, len(flat) + 1):
            size *= flat[stop - 1][1]
            if size > heads:
                break
            ends = flat[start], flat[stop - 1]
            is_multiple = stop - start > 1
            # Of texts and heads alone, both are not heads.
            covers_both = (
                is_multiple and ends[0][0] != ends[1][0] and len(layout) <= _TEXTS_AND_HEADS
            )
            if size != heads or covers_both or (is_multiple and 1 in (ends[0][1], ends[1][1])):
                continue
            stride = ends[1][2]
            key_stride = (
                0
                if shared and is_multiple and stop == len(flat)
                else _stride_order(heads, stride, width)
            )
            runs.append((key_stride, is_multiple, max(stride, 0), -start, range(start, stop)))
    sizes = tuple(tuple(size for size, _ in factors) for factors in layout)
    return Fold(sizes, min(runs, key=lambda candidate: candidate[:4])[-1]) if runs else None


def _stride_order(heads: int, stride: int, width: Factors) -> int:
    """0 where heads so far apart in memory lie around their width, 1 where they lie inside of it,
    2 where they lie elsewhere."""
    size, inner_stride = prod(size for size, _ in width), width[-1][1]
    if stride in (STACKED, size * inner_stride):
        return 0
    return 1 if inner_stride == heads * stride > 0 else 2


def _split_axis(heads: int, layout: Sequence[Factors]) -> Fold | None:
    """The first axis that is a multiple of so many heads, cut into texts and heads."""
    sizes = [tuple(size for size, _ in factors) for factors in layout]
    stride = 0
    for axis, axis_size in enumerate(sizes):
        size = prod(axis_size)
        if size > heads and size % heads == 0:
            sizes[axis] = size // heads, heads
            return Fold(tuple(sizes), range(stride + 1, stride + 2))
        stride += len(axis_size)
    return None


def _fits(module: nn.Module, heads: int, width: int) -> bool:
    """Return True if so many vectors of this width make a width that the module names, or that its
    maps have, which may make queries, keys and values at once.
    """
    if width in (_number(module, name) for name in _OWN_WIDTHS):
        return True
    total = width * heads
    return any(number in (total, 2 * total, 3 * total) for number in _widths(module))


def _widths(module: nn.Module) -> list[int]:
    widths = [number for name in _WIDTHS if (number := _number(module, name))]
    for child in module.children():
        if isinstance(child, nn.Linear):
            widths += child.in_features, child.out_features
        elif isinstance(child, _CONVOLUTIONS):
            widths += child.in_channels, child.out_channels
    return widths


def of_channels(values: Tensor, queries: int, heads: int, site: CallSite) -> str | None:
    """Why no map of tokens is made of weights that are multiplied with these values: they are of
    channels, the numbers of a vector, of which each looks at all; None where they are of tokens.

    The widths that the module names decide what is one vector for a token or that its maps
    have. Where both axes of the values fit, a linear map has made vectors whose numbers lie side by
    side in memory, and a convolution others.
    """
    if values.ndim <= _MATRIX or values.shape[-2] != queries:
        return None
    num_keys, width = values.shape[-2:]
    if any(num_keys in text[:2] and width not in text[:2] for text in site.texts):
        return None
    module = site.module
    if num_keys * heads not in _widths(module):
        return None
    if _fits(module, heads, width):
        is_transposed = values.stride(-1) > values.stride(-2)
        kinds = {
            isinstance(child, _CONVOLUTIONS)
            for child in module.children()
            if isinstance(child, (nn.Linear, *_CONVOLUTIONS))
        }
        if kinds != {not is_transposed}:
            return None
    return (
        f"attention of channels: its {num_keys} rows and columns are numbers of a vector and no "
        "tokens, as in XCiT and DaViT"
    )


def heads_named(module: nn.Module) -> int | None:
    """How many heads a module says that it has, or its configuration; None where neither does."""
    for owner in (module, getattr(module, "config", None)):
        for name in _HEADS:
            if heads := _number(owner, name):
                return heads
    return None


def _are_key_heads(rows: Sequence[int], heads: int, num_positions: int, module: nn.Module) -> bool:
    """Return True if the last of these axes has the heads of keys, of which several heads share
    one: so many as the module says, or those of which each has as many heads as there are
    places.
    """
    if len(rows) != _TEXTS_AND_HEADS or rows[-1] == heads:
        return False
    num_key_heads = next((n for name in _KEY_HEADS if (n := _number(module, name))), None)
    groups = _number(module, "num_key_value_groups")
    shared = num_key_heads or (groups and heads // groups)
    return rows[-1] == shared or rows[-1] * num_positions == heads


def shared_keys(
    query: Float[Tensor, "batch heads queries head_dim"],
    keys: Float[Tensor, "batch kv_heads keys head_dim"],
    mask: Shaped[Tensor, "#batch #heads #queries #keys"] | None,
    module: nn.Module,
    repeats: int = 1,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The same with the heads of the model, and with a key head once where it was repeated.

    Hugging Face's models repeat a key head for each query head that shares it; or, for a single
    query, they pass these query heads as so many queries of the key head.

    Args:
        repeats: How often each key head is known to follow itself.
    """
    groups = _number(module, "num_key_value_groups") or 1
    if groups < 2:
        return query, keys, mask
    heads = query.shape[1]
    if query.shape[2] == groups and heads == _key_heads(module, groups, keys.shape[-1]):
        query = query.flatten(1, 2).unsqueeze(2)
        if mask is not None and mask.shape[2] == groups:
            mask = mask.expand(-1, heads, -1, -1).flatten(1, 2).unsqueeze(2)
    elif heads == keys.shape[1] and heads % groups == 0:
        batch, _, num_keys, width = keys.shape
        grouped = keys.reshape(batch, heads // groups, groups, num_keys, width)
        if repeats == groups or torch.equal(grouped, grouped[:, :, :1].expand_as(grouped)):
            return query, grouped[:, :, 0], mask
    return query, keys, mask


def _key_heads(module: nn.Module, groups: int, width: int) -> int | None:
    """How many heads the keys of a layer have: as the map says that makes them, or its model, which
    says the same of all layers; None where neither does."""
    width_of_keys = _number(getattr(module, "k_proj", None), "out_features")
    if width_of_keys:
        return width_of_keys // width
    config = getattr(module, "config", None)
    num_key_heads = _number(config, "num_key_value_heads")
    heads = _number(config, "num_attention_heads")
    return num_key_heads or (heads and heads // groups)


def _number(owner: Any, name: str) -> int | None:
    try:
        value = attribute(owner, name)
    except Exception:  # a configuration may refuse what is another number in each layer
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
