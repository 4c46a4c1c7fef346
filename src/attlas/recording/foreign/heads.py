"""The axis of heads in other people's tensors."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.recording.foreign.folds import ONE_HEAD, Fold, Folds
from attlas.recording.place import Place

_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")
_WIDTHS = ("embed_dim", "hidden_size", "all_head_size", "d_model", "width", "dim")


def heads_of(
    tensor: Float[Tensor, "... places width"],
    place: Place,
    folds: Folds,
    queries: int | None = None,
) -> Fold:
    """The heads that are folded into the first of three axes; one where there are not three.

    The first axis is batch × heads where the module names a number of heads, and a width that so
    many vectors of this width make: its own, or that of a linear map which it holds. A module that
    goes through its heads one by one does so for as many rows as it was given texts. queries: how
    many there are, where these are not they.
    """
    if tensor.ndim != 3:
        return ONE_HEAD
    module, places = place.module, tensor.shape[1] if queries is None else queries
    widths = [number for name in _WIDTHS if (number := _number(module, name))]
    for child in module.children():
        if isinstance(child, nn.Linear):
            widths += child.in_features, child.out_features
    for name in _HEADS:
        heads = _number(module, name)
        if heads and tensor.shape[0] % heads == 0 and tensor.shape[-1] * heads in widths:
            one_each = place.folds_no_heads(tensor.shape[0], places, heads)
            return ONE_HEAD if one_each else folds.order(tensor, heads)
    return ONE_HEAD


def heads_named(module: nn.Module) -> int | None:
    """How many heads a module says that it has, or its configuration; None where neither does."""
    for owner in (module, getattr(module, "config", None)):
        for name in _HEADS:
            if heads := _number(owner, name):
                return heads
    return None


def with_heads(
    tensor: Shaped[Tensor, "..."], fold: Fold = ONE_HEAD
) -> Shaped[Tensor, "batch heads places last"]:
    """The tensor with axes (batch, heads, places, last): the first of three is so folded."""
    if tensor.ndim == 3 and tensor.shape[0] % fold.heads == 0:
        return fold.open(tensor)
    while tensor.ndim < 4:
        tensor = tensor.unsqueeze(0)
    return tensor.flatten(0, tensor.ndim - 4)


def mask_with_heads(
    mask: Shaped[Tensor, "..."], like: Shaped[Tensor, "... queries width"], fold: Fold = ONE_HEAD
) -> Shaped[Tensor, "#batch #heads #queries #slots"]:
    """A mask beside `like`, whose axes it is broadcast to from the last one on, as torch does."""
    if like.ndim < 4:
        return with_heads(mask, fold)
    while mask.ndim < like.ndim:
        mask = mask.unsqueeze(0)
    folded = like.ndim - 3
    if folded > 1:
        mask = mask.expand(*like.shape[:folded], *mask.shape[folded:])
    return mask.flatten(0, folded - 1)


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
        value = getattr(owner, name, None)
    except Exception:  # a configuration may refuse what is another number in each layer
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
