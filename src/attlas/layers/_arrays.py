"""The arrays of a user: NumPy or torch, with or without a batch and heads."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.base import integers_as_bools, split_bias, warn_of_truth
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Causal, Everywhere, Pattern

_NUMPY_DTYPES = ("bool", "float16", "float32", "float64")
_TORCH_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_PAIRS_AT_ONCE = 2**24  # bools: 16 MiB
_ARRAYS = ("query", "key", "value")
_SHAPES = {
    2: ("(queries, dim)", "(keys, dim)", "(keys, value_dim)"),
    3: ("(batch, queries, dim)", "(batch, keys, dim)", "(batch, keys, value_dim)"),
    4: (
        "(batch, heads, queries, dim)",
        "(batch, kv_heads, keys, dim)",
        "(batch, kv_heads, keys, value_dim)",
    ),
}


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """Checked inputs with all four axes; `restore` converts results back.

    Positions that no query may see are padding, and are set to zero. `zero_hidden_keys` does the
    same for those that a pattern hides.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    cache: KeyValueCache
    mask: Bool[Tensor, "#batch #heads queries keys"] | None
    bias: Float[Tensor, "#batch #heads queries keys"] | None
    axes: int
    numpy: bool
    lead: tuple[int, ...]  # the axes of batches that were more than one

    @classmethod
    def from_arrays(
        cls,
        query: Any,
        key: Any,
        value: Any,
        *,
        attn_mask: Any = None,
        token_mask: Any = None,
        enable_gqa: bool = False,
    ) -> "AttentionInputs":
        """Build from arrays. Raises `AttlasError` if kinds, dtypes, devices, shapes or masks do not
        fit.
        """
        arrays = {"query": query, "key": key, "value": value}
        masks = {"attn_mask": attn_mask, "token_mask": token_mask}
        arrays |= {name: array for name, array in masks.items() if array is not None}
        tensors = _tensors(arrays)
        tensors |= {
            name: integers_as_bools(name, tensors[name]) for name in masks if name in tensors
        }
        _check_axes(*(tensors[name] for name in _ARRAYS))
        tensors |= _same_axes({name: tensors[name] for name in _ARRAYS})
        leading_axes = tuple(tensors["query"].shape[:-3]) if tensors["query"].ndim > 4 else ()
        if leading_axes:
            tensors = _merge_batches(tensors, leading_axes)
        if attn_mask is not None:
            kind = "mask.astype(bool)" if isinstance(attn_mask, np.ndarray) else "mask.bool()"
            warn_of_truth("attn_mask", tensors["attn_mask"], kind)
        query, key, value = tensors["query"], tensors["key"], tensors["value"]
        if enable_gqa:
            key, value = _repeat_heads(query, key, value)
        query, key, value = _broadcast(query, key, value)
        _check_shapes(query, key, value, enable_gqa)
        weights = (*query.shape[:-1], key.shape[-2])
        pairs = _expand_pairs("attn_mask", tensors.get("attn_mask"), weights)
        mask, bias = (pairs, None) if pairs is None or pairs.dtype == torch.bool else (None, pairs)
        token_mask = _check_mask(tensors.get("token_mask"), key)
        if bias is not None:
            mask, bias = split_bias("attn_mask", bias)
        keys, values = _four_axes(key), _four_axes(value)
        if mask is not None:
            looked_at = mask.any(2).any(1).expand(len(keys), -1)
            token_mask = looked_at if token_mask is None else token_mask & looked_at
        if token_mask is not None:
            padding = ~token_mask[:, None, :, None]
            keys, values = keys.masked_fill(padding, 0.0), values.masked_fill(padding, 0.0)
        numpy = isinstance(arrays["query"], np.ndarray)
        return cls(
            _four_axes(query),
            KeyValueCache(keys, values, token_mask),
            mask,
            bias,
            len(weights),
            numpy,
            leading_axes,
        )

    def zero_hidden_keys(self, pattern: Pattern, query_offset: int) -> "AttentionInputs":
        """The same, without NaN or inf in positions that pattern and mask hide from every query.

        Only positions with such content matter: anything finite, times a weight of 0, is 0.
        """
        queries, cache = self.query.shape[2], self.cache
        # A causal query at or after the last position sees them all.
        sees_all = isinstance(pattern, Causal) and query_offset + queries >= cache.num_keys
        if isinstance(pattern, Everywhere) or (sees_all and self.mask is None):
            return self
        # A sum is finite only where its terms are; one that overflows is one question too many.
        sums = cache.keys.detach().sum((0, 1, 3)) + cache.values.detach().sum((0, 1, 3))
        junk = (~sums.isfinite()).nonzero().squeeze(1)
        if len(junk) == 0:
            return self
        allowed = torch.zeros(1, len(junk), dtype=torch.bool, device=junk.device)
        rows = torch.arange(queries, device=junk.device)
        for part in torch.split(rows, max(1, _PAIRS_AT_ONCE // len(junk))):
            pairs = pattern((query_offset + part).unsqueeze(1), junk)[None, None]
            if self.mask is not None:
                pairs = pairs & self.mask[:, :, part][..., junk]
            allowed = allowed | pairs.any(2).any(1)
        hidden = torch.zeros(len(allowed), cache.num_keys, dtype=torch.bool, device=junk.device)
        hidden = hidden.index_copy(1, junk, ~allowed)[:, None, :, None]
        keys, values = cache.keys.masked_fill(hidden, 0.0), cache.values.masked_fill(hidden, 0.0)
        return replace(self, cache=replace(cache, keys=keys, values=values))

    def restore(self, result: Float[Tensor, "batch heads queries last"]) -> Any:
        """Convert back to the caller's axes, dtype and kind of array."""
        result = result.to(self.query.dtype)  # autocast may have taken another
        if self.lead:
            result = result.reshape(*self.lead, *result.shape[1:])
        if self.axes < 4:
            result = result.squeeze(1)
        if self.axes < 3:
            result = result.squeeze(0)
        return result.numpy() if self.numpy else result


def _tensors(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    """The arrays as tensors, of one kind, one float dtype and one device."""
    kinds = {name: _kind(array) for name, array in arrays.items()}
    if set(kinds.values()) not in ({"NumPy"}, {"torch"}):
        raise AttlasError(
            "NumPy arrays alone or torch tensors alone",
            _listed(kinds),
            "convert them with numpy.asarray or torch.as_tensor",
        )
    for name, array in arrays.items():
        _check_dtype(name, array)
    floats = {
        name: str(array.dtype).removeprefix("torch.")
        for name, array in arrays.items()
        if name not in _MASKS or _is_float(array)
    }
    if floats.get("attn_mask") == "float32":  # torch takes it beside every dtype
        del floats["attn_mask"]
    if len(set(floats.values())) > 1:
        raise AttlasError(
            "one dtype", _listed(floats), "convert them to the one in which to compute"
        )
    tensors = {
        name: array if isinstance(array, Tensor) else _from_numpy(array)
        for name, array in arrays.items()
    }
    devices = {name: str(tensor.device) for name, tensor in tensors.items()}
    if len(set(devices.values())) > 1:
        raise AttlasError("one device", _listed(devices), "move them to one with .to(device)")
    return tensors


_MASKS = ("attn_mask", "token_mask")


def _is_float(array: Any) -> bool:
    if isinstance(array, Tensor):
        return array.dtype in _TORCH_FLOATS
    return array.dtype != np.bool_ and array.dtype.name in _NUMPY_DTYPES


def _is_truth(array: Any) -> bool:
    """Return True if it holds bools, or integers, which may be 0 and 1."""
    if isinstance(array, Tensor):
        return not (array.is_floating_point() or array.is_complex())
    return array.dtype.kind in "biu"


def _check_dtype(name: str, array: Any) -> None:
    if name == "token_mask" and not _is_truth(array):
        raise AttlasError(
            "token_mask of bool, True = a token",
            f"token_mask of {array.dtype}",
            "compare it to something; numbers that are added to the scores are an attn_mask",
        )
    if not (_is_float(array) or (name in _MASKS and _is_truth(array))):
        bools = "bool, " if name in _MASKS else ""
        raise AttlasError(
            f"{name} of {bools}float16, bfloat16 (torch), float32 or float64",
            f"{name} of {array.dtype}",
            "convert it to floating point first",
        )


def _check_axes(
    query: Shaped[Tensor, "..."], key: Shaped[Tensor, "..."], value: Shaped[Tensor, "..."]
) -> None:
    got = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    axes = max(query.ndim, key.ndim, value.ndim)
    if min(query.ndim, key.ndim, value.ndim) < min(_SHAPES):
        expected = " or ".join(query_shape for query_shape, _, _ in _SHAPES.values())
        raise AttlasError(f"a query of shape {expected}", got, "add or remove axes")
    if not query.ndim == key.ndim == value.ndim:
        try:
            torch.broadcast_shapes(  # type: ignore[no-untyped-call]
                *(tensor.shape[:-2] for tensor in (query, key, value))
            )
        except RuntimeError:
            expected = "query {}, key {} and value {}".format(*_SHAPES[min(axes, max(_SHAPES))])
            raise AttlasError(expected, got, "give all three the same axes") from None


def _same_axes(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The arrays with as many axes each, and with the same batches in front of the last three.

    Missing axes are the first ones, as where torch broadcasts.
    """
    axes = max(tensor.ndim for tensor in arrays.values())
    padded = {
        name: tensor.reshape((1,) * (axes - tensor.ndim) + tuple(tensor.shape))
        for name, tensor in arrays.items()
    }
    if axes <= max(_SHAPES):
        return padded
    try:
        leading_axes = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
            *(tensor.shape[:-3] for tensor in padded.values())
        )
    except RuntimeError:
        return padded  # `_merge_batches` reports it
    return {
        name: tensor.expand(*leading_axes, *tensor.shape[-3:]) for name, tensor in padded.items()
    }


def _merge_batches(tensors: Mapping[str, Tensor], lead: tuple[int, ...]) -> dict[str, Tensor]:
    """The same arrays with one axis of batches in place of these."""
    count, axes = math.prod(lead), len(lead) + 3
    arrays = {name: tensors[name] for name in _ARRAYS}
    if any(array.ndim != axes or tuple(array.shape[:-3]) != lead for array in arrays.values()):
        raise AttlasError(
            f"query, key and value with the same batches, {lead}",
            ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items()),
            "expand them to the same axes",
        )
    merged = {name: array.reshape(count, *array.shape[-3:]) for name, array in arrays.items()}
    if (mask := tensors.get("attn_mask")) is not None:
        sizes = (1,) * (axes - mask.ndim) + tuple(mask.shape)
        if any(size not in (1, full_size) for size, full_size in zip(sizes, lead, strict=False)):
            raise AttlasError(
                f"attn_mask of a shape that broadcasts to {lead} and the axes of the weights",
                f"shape {tuple(mask.shape)}",
                "order the axes as in the query",
            )
        expanded = mask.reshape(sizes).expand(*lead, *sizes[-3:])
        merged["attn_mask"] = mask if mask.ndim < 4 else expanded.reshape(count, *sizes[-3:])
    if (tokens := tensors.get("token_mask")) is not None:
        has_all_axes = tuple(tokens.shape[:-1]) == lead
        merged["token_mask"] = tokens.reshape(count, tokens.shape[-1]) if has_all_axes else tokens
    return merged


def _broadcast(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three with an axis of 1 repeated where another has more, as torch does."""
    expanded = [query, key, value]
    for axis in range(query.ndim - 2):
        sizes = {tensor.shape[axis] for tensor in expanded}
        if len(sizes - {1}) != 1:
            continue  # all are 1, or they differ: by shared heads, or by mistake
        size = (sizes - {1}).pop()
        # One head of keys that many of the query share stays one: nothing is copied.
        repeated = [axis != 1 or tensor is query for tensor in (query, key, value)]
        if expanded[1].shape[axis] != expanded[2].shape[axis]:
            repeated = [True, True, True]
        expanded = [
            tensor.expand(*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
            if tensor.shape[axis] == 1 and repeats
            else tensor
            for tensor, repeats in zip(expanded, repeated, strict=True)
        ]
    query, key, value = expanded
    return query, key, value


def _repeat_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values with the heads of the query where the two differ in heads, as torch does.

    Of three axes torch takes the first for the heads; here it is also that of the batch. Where keys
    and values have as many heads, nothing is copied: the kernels share them.
    """
    if query.ndim not in (3, 4):
        return key, value
    heads, key_heads, value_heads = (tensor.shape[-3] for tensor in (query, key, value))
    differ = key_heads != value_heads or (query.ndim == 3 and heads != key_heads)
    if not differ or not key_heads or not value_heads or heads % key_heads or heads % value_heads:
        return key, value  # `_check_shapes` reports what does not fit
    return (
        key.repeat_interleave(heads // key_heads, -3),
        value.repeat_interleave(heads // value_heads, -3),
    )


def _check_shapes(
    query: Shaped[Tensor, "..."],
    key: Shaped[Tensor, "..."],
    value: Shaped[Tensor, "..."],
    enable_gqa: bool,
) -> None:
    got = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    expected = "query {}, key {} and value {}".format(*_SHAPES[query.ndim])
    differing = [
        (query.ndim > 2 and len({query.shape[0], key.shape[0], value.shape[0]}) > 1, "batch"),
        (query.ndim > 3 and key.shape[1] != value.shape[1], "kv_heads"),
        (key.shape[-2] != value.shape[-2], "keys"),
        (query.shape[-1] != key.shape[-1], "dim"),
    ]
    for differs, axis in differing:
        if differs:
            raise AttlasError(expected, got, f"make {axis} the same everywhere")
    if query.ndim > 3 and not enable_gqa and key.shape[1] not in (1, query.shape[1]):
        raise AttlasError(
            f"as many heads in {expected}", got, "pass enable_gqa=True where heads share keys"
        )
    if query.ndim > 3 and (key.shape[1] == 0 or query.shape[1] % key.shape[1]):
        raise AttlasError(
            f"heads that share num_kv_heads evenly in {expected}",
            got,
            f"choose num_kv_heads that divide the {query.shape[1]} heads",
        )
    if query.shape[-1] == 0:
        raise AttlasError("a width of at least 1", got, "give every position a vector")


def _expand_pairs(
    name: str, array: Shaped[Tensor, "..."] | None, weights: tuple[int, ...]
) -> Shaped[Tensor, "#batch #heads queries keys"] | None:
    """A mask with all axes of the weights, as `torch.broadcast_to` gives them to it:
    counted from the last, with 1 for each that is missing."""
    if array is None:
        return None
    fits = array.ndim <= len(weights) and all(
        size in (1, expected)
        for size, expected in zip(array.shape[::-1], weights[::-1], strict=False)
    )
    if not fits:
        raise AttlasError(
            f"{name} of a shape that broadcasts to that of the weights, {weights}",
            f"shape {tuple(array.shape)}",
            "order the axes as in the weights, (batch, heads, queries, keys); each may be 1, and "
            "the first ones may be missing",
        )
    array = array.reshape((1,) * (len(weights) - array.ndim) + tuple(array.shape))
    array = _four_axes(array)
    return array.expand(-1, -1, *weights[-2:])


def _check_mask(
    token_mask: Bool[Tensor, "..."] | None, key: Shaped[Tensor, "*axes keys dim"]
) -> Bool[Tensor, "batch keys"] | None:
    if token_mask is None:
        return None
    expected = (key.shape[0], key.shape[-2]) if key.ndim > 2 else (key.shape[0],)
    if tuple(token_mask.shape) != expected:
        raise AttlasError(
            f"token_mask of shape {expected}, ({'batch, ' if key.ndim > 2 else ''}keys)",
            f"shape {tuple(token_mask.shape)}",
            "give one bool per position of the key",
        )
    return token_mask if key.ndim > 2 else token_mask.unsqueeze(0)


def _four_axes(array: Shaped[Tensor, "..."]) -> Shaped[Tensor, "batch heads positions head_dim"]:
    if array.ndim == 2:
        return array[None, None]
    return array.unsqueeze(1) if array.ndim == 3 else array


def _from_numpy(array: Any) -> Tensor:
    # torch takes over NumPy's memory, and wants it writeable, in order and of this machine.
    native = array.dtype.newbyteorder("=")
    return torch.from_numpy(np.require(array, native, ["C_CONTIGUOUS", "WRITEABLE"]))


def _kind(array: Any) -> str:
    # A masked array says elsewhere what may be seen: it is refused, rather than read without that.
    is_numpy = isinstance(array, np.ndarray | np.generic)  # a comparison of 0 axes gives the latter
    if is_numpy and not isinstance(array, np.ma.MaskedArray):
        return "NumPy"
    return "torch" if isinstance(array, Tensor) else type(array).__name__


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {fact}" for name, fact in facts.items())
