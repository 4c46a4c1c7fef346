"""The axis of heads in other people's tensors."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.recording.foreign.folds import STACKED, Factors, Fold, Folds, in_order
from attlas.recording.place import Place, attribute

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
    place: Place,
    folds: Folds,
    queries: int | None = None,
) -> Fold:
    """Which of the axes before places are heads, by the number of them that the module names.

    rows: the sizes of these axes. evidence: tensors with these axes, such as queries, keys and
    values; which of several axes of one size has the heads, they say by how they were made. Heads
    may be folded into an axis with texts where so many vectors of this width make a width that the
    module names, or that of a linear map or a convolution which it holds. They may also be two
    axes, of key heads and of those that share one. Without a number that fits, the last axis has
    them if there are two. A module that goes through its heads one by one does so for as many rows
    as it was given texts. queries: how many there are, where these are not they.
    """
    module, default = place.module, in_order(rows)
    numbers = dict.fromkeys(number for name in _HEADS if (number := _number(module, name)))
    if not numbers or not rows or not evidence:
        return default
    if len(rows) == _TEXTS_AND_HEADS and rows[1] in numbers and rows[0] % rows[1]:
        return default  # as nearly every model has them
    factors, width = _factors_of(rows, evidence, folds)
    tensor = evidence[0]
    places = tensor.shape[-2] if queries is None else queries
    shapes = [one.shape for one in evidence if one.ndim == len(rows) + 2]
    shared = any(shape[-3] == 1 < rows[-1] for shape in shapes)
    for heads in numbers:
        if heads == 1 and len(rows) > 1 and 1 not in rows:
            return Fold(default.sizes)  # all are texts
        fits = partial(_fits, module, heads, tensor.shape[-1])
        if len(rows) == 1:
            whole = rows[0] % heads == 0 and fits()
            if not whole or place.folds_no_heads(rows[0], places, heads):
                continue
        elif max(map(len, factors)) == 1 and _are_key_heads(rows, heads, places, module):
            return default
        found = _run_of(heads, factors, width, shared=shared) or (
            _cut(heads, factors) if fits() else None
        )
        if found is not None:
            return found
    return default


def _factors_of(
    rows: Sequence[int], evidence: Sequence[Tensor], folds: Folds
) -> tuple[tuple[Factors, ...], Factors]:
    """Of what each of these axes is folded, and the width: as the first of these tensors says that
    is known to have been laid out otherwise, or that lies in memory otherwise, else as the first.
    """
    alike = [one for one in evidence if _aligned(one, rows)] or evidence[:1]
    known = [(one, layout) for one in alike if (layout := folds.layout(one)) is not None]
    moved = [one for one in alike if not one.is_contiguous()]
    tensor, layout = known[0] if known else ((*moved, *alike)[0], None)
    if layout is None:
        layout = tuple(
            ((size, stride),) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        )
    if not _aligned(tensor, rows):
        return tuple(((size, 0),) for size in rows), layout[-1]
    missing = len(rows) - (tensor.ndim - 2)
    factors: list[Factors] = [((size, 0),) for size in rows[:missing]]
    for size, one in zip(rows[missing:], layout[:-2], strict=True):
        factors.append(one if prod(count for count, _ in one) == size else ((size, 0),))
    return tuple(factors), layout[-1]


def _aligned(tensor: Tensor, rows: Sequence[int]) -> bool:
    """Whether it has these axes, from the last on, or some of them."""
    own = tensor.shape[:-2]
    if len(own) > len(rows):
        return False
    return all(a in (1, b) for a, b in zip(own[::-1], rows[::-1], strict=False))


def _run_of(heads: int, layout: Sequence[Factors], width: Factors, *, shared: bool) -> Fold | None:
    """The factors that make so many heads; of several, those beside the width in memory.

    shared: whether those along the last axis share their keys.
    """
    flat = [(axis, *factor) for axis, factors in enumerate(layout) for factor in factors]
    found: list[tuple[int, bool, int, int, range]] = []
    for start in range(len(flat)):
        size = 1
        for stop in range(start + 1, len(flat) + 1):
            size *= flat[stop - 1][1]
            if size > heads:
                break
            ends = flat[start], flat[stop - 1]
            several = stop - start > 1
            # Of texts and heads alone, both are not heads.
            whole = several and ends[0][0] != ends[1][0] and len(layout) <= _TEXTS_AND_HEADS
            if size != heads or whole or (several and 1 in (ends[0][1], ends[1][1])):
                continue
            stride = ends[1][2]
            far = 0 if shared and several and stop == len(flat) else _far(heads, stride, width)
            found.append((far, several, max(stride, 0), -start, range(start, stop)))
    sizes = tuple(tuple(size for size, _ in factors) for factors in layout)
    return Fold(sizes, min(found, key=lambda one: one[:4])[-1]) if found else None


def _far(heads: int, stride: int, width: Factors) -> int:
    """0 where heads so far apart in memory lie around their width, 1 where they lie inside of it,
    2 where they lie elsewhere."""
    size, own = prod(size for size, _ in width), width[-1][1]
    if stride in (STACKED, size * own):
        return 0
    return 1 if own == heads * stride > 0 else 2


def _cut(heads: int, layout: Sequence[Factors]) -> Fold | None:
    """The first axis that is a multiple of so many heads, cut into texts and heads."""
    sizes = [tuple(size for size, _ in factors) for factors in layout]
    before = 0
    for axis, each in enumerate(sizes):
        whole = prod(each)
        if whole > heads and whole % heads == 0:
            sizes[axis] = whole // heads, heads
            return Fold(tuple(sizes), range(before + 1, before + 2))
        before += len(each)
    return None


def _fits(module: nn.Module, heads: int, width: int) -> bool:
    """Whether so many vectors of this width make a width that the module names, or that its maps
    have, which may make queries, keys and values at once."""
    if width in (_number(module, name) for name in _OWN_WIDTHS):
        return True
    whole = width * heads
    return any(one in (whole, 2 * whole, 3 * whole) for one in _widths(module))


def _widths(module: nn.Module) -> list[int]:
    widths = [number for name in _WIDTHS if (number := _number(module, name))]
    for child in module.children():
        if isinstance(child, nn.Linear):
            widths += child.in_features, child.out_features
        elif isinstance(child, _CONVOLUTIONS):
            widths += child.in_channels, child.out_channels
    return widths


def of_channels(values: Tensor, queries: int, heads: int, place: Place) -> str | None:
    """Why no map of tokens is made of weights that are multiplied with these values: they are of
    channels, the numbers of a vector, of which each looks at all; None where they are of tokens.

    What is one vector for a token is told by the widths that the module names or that its maps
    have. Where both axes of the values fit, a linear map has made vectors whose numbers lie side by
    side in memory, and a convolution others.
    """
    if values.ndim <= _MATRIX or values.shape[-2] != queries:
        return None
    slots, width = values.shape[-2:]
    if any(slots in text[:2] and width not in text[:2] for text in place.texts):
        return None
    module = place.module
    if slots * heads not in _widths(module):
        return None
    if _fits(module, heads, width):
        turned = values.stride(-1) > values.stride(-2)
        kinds = {
            isinstance(child, _CONVOLUTIONS)
            for child in module.children()
            if isinstance(child, (nn.Linear, *_CONVOLUTIONS))
        }
        if kinds != {not turned}:
            return None
    return (
        f"attention of channels: its {slots} rows and columns are numbers of a vector and no "
        "tokens, as in XCiT and DaViT"
    )


def heads_named(module: nn.Module) -> int | None:
    """How many heads a module says that it has, or its configuration; None where neither does."""
    for owner in (module, getattr(module, "config", None)):
        for name in _HEADS:
            if heads := _number(owner, name):
                return heads
    return None


def _are_key_heads(rows: Sequence[int], heads: int, places: int, module: nn.Module) -> bool:
    """Whether the last of these axes has the heads of keys, of which several heads share one: so
    many as the module says, or those of which each has as many heads as there are places."""
    if len(rows) != _TEXTS_AND_HEADS or rows[-1] == heads:
        return False
    named = next((n for name in _KEY_HEADS if (n := _number(module, name))), None)
    groups = _number(module, "num_key_value_groups")
    shared = named or (groups and heads // groups)
    return rows[-1] == shared or rows[-1] * places == heads


def shared_keys(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    mask: Shaped[Tensor, "#batch #heads #queries #slots"] | None,
    module: nn.Module,
    repeats: int = 1,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The same with the heads of the model, and with a key head once where it was repeated.

    Hugging Face's models repeat a key head for each query head that shares it; or, for a single
    query, they pass these query heads as so many queries of the key head. repeats: how often each
    key head is known to follow itself.
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
        batch, _, slots, width = keys.shape
        apart = keys.reshape(batch, heads // groups, groups, slots, width)
        if repeats == groups or torch.equal(apart, apart[:, :, :1].expand_as(apart)):
            return query, apart[:, :, 0], mask
    return query, keys, mask


def _key_heads(module: nn.Module, groups: int, width: int) -> int | None:
    """How many heads the keys of a layer have: as the map says that makes them, or its model, which
    says the same of all layers; None where neither does."""
    made = _number(getattr(module, "k_proj", None), "out_features")
    if made:
        return made // width
    config = getattr(module, "config", None)
    named = _number(config, "num_key_value_heads")
    whole = _number(config, "num_attention_heads")
    return named or (whole and whole // groups)


def _number(owner: Any, name: str) -> int | None:
    try:
        value = attribute(owner, name)
    except Exception:  # a configuration may refuse what is another number in each layer
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
