"""Scaled dot-product attention as a function, for tensors and NumPy arrays."""

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers._arrays import AttentionInputs
from attlas.layers.base import is_cheap_to_check
from attlas.ops.attention import (
    attention_weights_of,
    dense_attention,
    masked_attention,
    weighted_values,
)
from attlas.ops.banded import band_is_faster, banded_attention
from attlas.ops.dropout import Dropout
from attlas.patterns import Pattern, causal, everywhere

Array = TypeVar("Array", NDArray[Any], Tensor)
_FARTHEST = 2**62  # position: beyond 2⁶³ whole numbers of torch end


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | Tensor | NDArray[Any] | None = None,
    enable_gqa: bool = False,
    *,
    pattern: Pattern | None = None,
    query_offset: int | None = None,
    token_mask: Array | None = None,
    softcap: float | None = None,
) -> Array:
    """softmax(scale · q kᵀ + attn_mask) v over the allowed positions (Vaswani et al., 2017, eq. 1).

        context = attlas.scaled_dot_product_attention(query, key, value, is_causal=True)

    It takes the place of torch's function of this name: the same arguments and results. NumPy
    arrays give a NumPy array; torch tensors give a tensor of their dtype and device, with
    gradients. A query that sees nothing reads zeros; one that is not finite reads NaN. What torch
    takes and makes NaN of is refused: vectors of width 0, a scale that is not finite, NaN or +∞ in
    the mask.

    Args:
        query: (queries, dim), (batch, queries, dim), (batch, heads, queries, dim), or more axes of
            batches.
        key, value: the same, with positions in place of queries. The value may have a width of its
            own.
        attn_mask: of a shape that broadcasts to (batch, heads, queries, keys). Bools, or integers 0
            and 1: True = may look. Numbers are added to the scores; −∞ hides the position.
        dropout_p: the share of the weights that are left out, whatever mode a model is in.
        is_causal: hides the keys after the query, both counted from 0 (upper left, as in torch),
            besides those that `attn_mask` hides. torch joins both in its kernel for a CPU only.
        scale: any finite number, or an array of one without axes; None = 1 / √dim.
        enable_gqa: whether keys and values may have fewer heads, each shared by neighbours. Keys
            and values may differ in how many. With three axes, the first is that of the heads.
        pattern: which positions may be seen by position; None = all.
        query_offset: the position of the first query, for `pattern`; None = the queries are the
            newest positions (lower right), so that causal stays right with a cache.
        token_mask: (batch, keys), or (keys,) without a batch; True or 1 = a token. What padding
            holds (NaN, inf) changes nothing.
        softcap: scores become c · tanh(score / c) before the mask is added (Gemma 2).

    A fused kernel runs, or a banded one where the pattern is narrow and there is no mask. With a
    mask of numbers or a softcap the weights are written out: O(heads · queries · keys) memory. So
    are those of many texts of up to 64 positions on a CPU, because that is faster.

    Raises:
        AttlasError: kinds, dtypes, devices or shapes do not fit together; NaN or +∞ in the mask.
    """
    pattern, query_offset = _pattern_of(pattern, query_offset, is_causal)
    dropout = Dropout(dropout_p)
    inputs = AttentionInputs.from_arrays(
        query, key, value, attn_mask=attn_mask, token_mask=token_mask, enable_gqa=enable_gqa
    )
    start, scale = _check_arguments(inputs, pattern, query_offset, scale, softcap)
    inputs = inputs.zero_hidden_keys(pattern, start)
    inputs, scale = _with_positive_scale(inputs, scale)
    cache, queries = inputs.cache, inputs.query.shape[2]
    if inputs.bias is not None or softcap is not None:
        weights = _weights(inputs, pattern, start, scale, softcap)
        context = weighted_values(dropout(weights), cache.values)
    elif inputs.mask is not None:
        allowed = _allowed(inputs, pattern, start)
        context = masked_attention(
            inputs.query, cache.keys, cache.values, allowed, scale, dropout.p
        )
    else:
        pays = band_is_faster(queries, cache.num_keys, pattern, start)
        kernel = banded_attention if pays else dense_attention
        context = kernel(inputs.query, cache, pattern, start, scale, dropout.p)
    result: Array = inputs.restore(_propagate_nan(inputs, context))
    return result


def scaled_dot_product_attention_with_weights(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | Tensor | NDArray[Any] | None = None,
    enable_gqa: bool = False,
    *,
    pattern: Pattern | None = None,
    query_offset: int | None = None,
    token_mask: Array | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """What `scaled_dot_product_attention` returns, and the weights before dropout.

        context, weights = attlas.scaled_dot_product_attention_with_weights(query, key, value)

    The weights have the axes of the query, with keys in place of width. They are ≥ 0 and sum to 1
    over the allowed positions. O(heads · queries · keys) memory. The arguments and errors are those
    of `scaled_dot_product_attention`.

    Example:
        >>> import torch, attlas
        >>> query, key = torch.zeros(3, 4), torch.zeros(2, 4)
        >>> output, weights = attlas.scaled_dot_product_attention_with_weights(query, key, key)
        >>> weights.tolist()
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """
    pattern, query_offset = _pattern_of(pattern, query_offset, is_causal)
    dropout = Dropout(dropout_p)
    inputs = AttentionInputs.from_arrays(
        query, key, value, attn_mask=attn_mask, token_mask=token_mask, enable_gqa=enable_gqa
    )
    start, scale = _check_arguments(inputs, pattern, query_offset, scale, softcap)
    inputs = inputs.zero_hidden_keys(pattern, start)
    inputs, scale = _with_positive_scale(inputs, scale)
    of_all = _weights(inputs, pattern, start, scale, softcap)
    context = weighted_values(dropout(of_all), inputs.cache.values)
    return inputs.restore(_propagate_nan(inputs, context)), inputs.restore(
        _propagate_nan(inputs, of_all)
    )


def _pattern_of(pattern: Any, query_offset: Any, is_causal: bool) -> tuple[Any, Any]:
    """The pattern and the position of the first query that `is_causal` stands for."""
    if not is_causal:
        return everywhere if pattern is None else pattern, query_offset
    if pattern is not None or query_offset is not None:
        raise AttlasError(
            "is_causal, or a pattern with its query_offset",
            "both",
            "pass pattern=both(causal, …) and query_offset=0",
        )
    return causal, 0


def _propagate_nan(
    arrays: AttentionInputs, result: Float[Tensor, "batch heads queries last"]
) -> Float[Tensor, "batch heads queries last"]:
    """The same with NaN for every query that holds NaN or ∞.

    torch's kernels on a CPU make zeros of it, as if it saw nothing; a softcap makes a number of it.
    """
    query = arrays.query.detach()
    if is_cheap_to_check(query) and bool(query.sum().isfinite()):
        return result
    zeros = (query * 0).sum(-1, keepdim=True)  # NaN of what is no number
    return result.masked_fill(zeros.isnan(), math.nan)


def _check_arguments(
    arrays: AttentionInputs,
    pattern: object,
    query_offset: object,
    scale: Any,
    softcap: Any,
) -> tuple[int, float]:
    """The position of the first query, and the scale."""
    if not isinstance(pattern, Pattern):
        raise AttlasError(
            "a pattern, such as causal or window(3)",
            repr(pattern),
            "take one from attlas.patterns; an array of bools is a mask",
        )
    if query_offset is not None and (
        isinstance(query_offset, bool) or not isinstance(query_offset, Integral)
    ):
        raise AttlasError(
            "a whole number as query_offset", repr(query_offset), "count positions from 0"
        )
    if query_offset is not None and abs(int(query_offset)) > _FARTHEST:
        raise AttlasError("a query_offset within ±2⁶²", str(query_offset), "count positions from 0")
    is_number = isinstance(softcap, Real) and 0.0 < float(softcap) < math.inf
    if softcap is not None and not is_number:
        raise AttlasError("a softcap above 0", repr(softcap), "leave it out for the default")
    *_, queries, head_dim = arrays.query.shape
    start = arrays.cache.num_keys - queries if query_offset is None else int(query_offset)
    return start, head_dim**-0.5 if scale is None else _number_of(scale)


def _number_of(scale: Any) -> float:
    """The scale as a float; as in torch it may be an array without axes."""
    if isinstance(scale, Tensor) and scale.requires_grad:
        raise AttlasError(
            "a scale without a gradient",
            "a tensor that requires one",
            "multiply the query by it and pass scale=1.0, so that it learns",
        )
    has_no_axes = isinstance(scale, Tensor | np.ndarray) and scale.ndim == 0
    number = scale.item() if has_no_axes else scale
    if not isinstance(number, Real) or not math.isfinite(number):
        raise AttlasError("a finite number as scale", repr(scale), "leave it out for 1 / √dim")
    return float(number)


def _with_positive_scale(inputs: AttentionInputs, scale: float) -> tuple[AttentionInputs, float]:
    """The same scores with a scale above 0: the causal kernel of torch makes NaN of the others."""
    if scale > 0.0:
        return inputs, scale
    return replace(inputs, query=inputs.query * (-1.0 if scale else 0.0)), abs(scale) or 1.0


def _weights(
    arrays: AttentionInputs, pattern: Pattern, start: int, scale: float, softcap: float | None
) -> Float[Tensor, "batch heads queries keys"]:
    allowed = _allowed(arrays, pattern, start)
    return attention_weights_of(
        arrays.query, arrays.cache.keys, allowed, scale, arrays.bias, softcap
    )


def _allowed(
    arrays: AttentionInputs, pattern: Pattern, start: int
) -> Bool[Tensor, "#batch #heads queries keys"]:
    cache = arrays.cache
    allowed = pattern.mask(arrays.query.shape[2], cache.num_keys, start, cache.keys.device)[
        None, None
    ]
    allowed = allowed if arrays.mask is None else allowed & arrays.mask
    return allowed if cache.token_mask is None else allowed & cache.token_mask[:, None, None, :]
