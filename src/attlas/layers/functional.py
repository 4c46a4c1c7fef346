"""The functional door: attention over arrays that a user brings."""

import math
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers._arrays import AttentionInputs
from attlas.ops.attention import (
    dense_attention,
    masked_attention,
    masked_softmax,
    scaled_scores,
    weighted_values,
)
from attlas.ops.banded import band_is_faster, banded_attention
from attlas.ops.linear import is_traced_or_transformed
from attlas.patterns import Pattern, everywhere

Array = TypeVar("Array", NDArray[Any], Tensor)
_FARTHEST = 2**62  # position: beyond 2⁶³ whole numbers of torch end


def attend(
    query: Array,
    key: Array,
    value: Array,
    *,
    pattern: Pattern = everywhere,
    query_offset: int | None = None,
    mask: Array | None = None,
    token_mask: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Array:
    """softmax(scale · q kᵀ + bias) v over the allowed positions    Vaswani et al., 2017, eq. 1.

    NumPy arrays give a NumPy array; torch tensors give a tensor of their dtype and device, with
    gradients. A position is seen where pattern, mask, token_mask and bias all allow it; a query
    that sees nothing reads zeros; one that is not finite reads NaN.

    - query: (queries, dim), (batch, queries, dim) or (batch, heads, queries, dim).
    - key, value: the same, with positions in place of queries; the value may have a width of its
      own. With four axes they may have fewer heads, each shared by as many neighbours of the
      query's.
    - pattern: which positions may be seen by position. query_offset: the position of the first
      query; None = the queries are the newest positions, so that causal stays right with a
      key/value cache.
    - mask: bool, of any shape that broadcasts to the weights', (batch, heads, queries, keys): one
      of (keys,) holds for every query; one of three axes beside four has heads first.
    - token_mask: bool (batch, keys), or (keys,) where there is no batch. False = padding, whose
      content
      (NaN, inf) changes nothing.
    - bias: added to the scores, shaped like a mask (ALiBi, relative positions); −∞ hides the
      position.
    - scale: None = 1 / √width.
    - softcap: scores become c · tanh(score / c) before the bias (Gemma 2); None = they stay.

    A fused kernel runs, or a banded one where the pattern is narrow and there is no mask; with bias
    or softcap the weights are written out: O(heads · queries · keys) memory. So are those of many
    texts of up to 64 positions on a CPU, because that is faster.

    Errors: `AttlasError` where kinds, dtypes, devices or shapes do not fit together, and for NaN or
    +∞ in the bias.
    """
    arrays = AttentionInputs.from_arrays(
        query, key, value, mask=mask, token_mask=token_mask, bias=bias
    )
    start, scale = _check_arguments(arrays, pattern, query_offset, scale, softcap)
    arrays = arrays.zero_hidden_keys(pattern, start)
    cache, queries = arrays.cache, arrays.query.shape[2]
    if bias is not None or softcap is not None:
        weights = _weights(arrays, pattern, start, scale, softcap)
        context = weighted_values(weights, cache.values)
    elif mask is not None:
        allowed = _allowed(arrays, pattern, start)
        context = masked_attention(arrays.query, cache.keys, cache.values, allowed, scale, 0.0)
    else:
        pays = band_is_faster(queries, cache.num_keys, pattern, start)
        kernel = banded_attention if pays else dense_attention
        context = kernel(arrays.query, cache, pattern, start, scale, 0.0)
    result: Array = arrays.restore(_propagate_nan(arrays, context))
    return result


def attend_with_weights(
    query: Array,
    key: Array,
    value: Array,
    *,
    pattern: Pattern = everywhere,
    query_offset: int | None = None,
    mask: Array | None = None,
    token_mask: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """What `attend` gives, and the weights with which it was read.

    The weights have the axes of the query, with positions in place of width. They are ≥ 0 and sum
    to 1 over the allowed positions. O(heads · queries · keys) memory.
    """
    arrays = AttentionInputs.from_arrays(
        query, key, value, mask=mask, token_mask=token_mask, bias=bias
    )
    start, scale = _check_arguments(arrays, pattern, query_offset, scale, softcap)
    arrays = arrays.zero_hidden_keys(pattern, start)
    weights = _weights(arrays, pattern, start, scale, softcap)
    read = weighted_values(weights, arrays.cache.values)
    context: Array = arrays.restore(_propagate_nan(arrays, read))
    weights_as_given: Array = arrays.restore(_propagate_nan(arrays, weights))
    return context, weights_as_given


def _propagate_nan(
    arrays: AttentionInputs, result: Float[Tensor, "batch heads queries last"]
) -> Float[Tensor, "batch heads queries last"]:
    """The same with NaN for every query that holds NaN or ∞.

    torch's kernels on a CPU make zeros of it, as if it saw nothing; a softcap makes a number of it.
    """
    query = arrays.query.detach()
    if _is_cheap_to_check(query) and bool(query.sum().isfinite()):
        return result
    nothing = (query * 0).sum(-1, keepdim=True)  # NaN of what is no number
    return result.masked_fill(nothing.isnan(), math.nan)


def _is_cheap_to_check(tensor: Tensor) -> bool:
    """Whether a look at its numbers costs little, and is seen by nobody who would be misled."""
    return (
        not torch.compiler.is_compiling()  # first: what follows is not for those who trace
        and tensor.device.type == "cpu"
        and type(tensor) is Tensor
        and not is_traced_or_transformed()
    )


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
    for name, number in (("scale", scale), ("softcap", softcap)):
        if number is None:
            continue
        if not isinstance(number, Real) or not 0.0 < float(number) < math.inf:
            raise AttlasError(f"a {name} above 0", repr(number), "leave it out for the default")
    *_, queries, head_dim = arrays.query.shape
    start = arrays.cache.num_keys - queries if query_offset is None else int(query_offset)
    return start, head_dim**-0.5 if scale is None else float(scale)


def _weights(
    arrays: AttentionInputs, pattern: Pattern, start: int, scale: float, softcap: float | None
) -> Float[Tensor, "batch heads queries keys"]:
    scores = scaled_scores(arrays.query, arrays.cache.keys, scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if arrays.bias is not None:
        scores = scores + arrays.bias
    return masked_softmax(scores, _allowed(arrays, pattern, start)).to(arrays.query.dtype)


def _allowed(
    arrays: AttentionInputs, pattern: Pattern, start: int
) -> Bool[Tensor, "#batch #heads queries keys"]:
    cache = arrays.cache
    allowed = pattern.mask(arrays.query.shape[2], cache.num_keys, start, cache.keys.device)[
        None, None
    ]
    allowed = allowed if arrays.mask is None else allowed & arrays.mask
    return allowed if cache.token_mask is None else allowed & cache.token_mask[:, None, None, :]
