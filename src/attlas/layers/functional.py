"""The functional door: attention over arrays that a user brings."""

import math
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers._arrays import Arrays
from attlas.ops.attention import (
    dense_attention,
    masked_attention,
    masked_softmax,
    scaled_scores,
    weighted_values,
)
from attlas.ops.banded import band_pays, banded_attention
from attlas.ops.linear import overseen
from attlas.patterns import Pattern, everywhere

Array = TypeVar("Array", NDArray[Any], Tensor)
_FARTHEST = 2**62  # position: beyond 2⁶³ whole numbers of torch end


def attend(
    query: Array,
    key: Array,
    value: Array,
    *,
    pattern: Pattern = everywhere,
    first: int | None = None,
    mask: Array | None = None,
    real: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Array:
    """softmax(scale · q kᵀ + bias) v over the seen slots    Vaswani et al., 2017, eq. 1.

    NumPy arrays give a NumPy array; torch tensors give a tensor of their dtype and device, with
    gradients. A slot is seen where pattern, mask, real and bias all allow it; a query that sees
    nothing reads zeros; one that is not finite reads NaN.

    - query: (queries, width), (batch, queries, width) or (batch, heads, queries, width).
    - key, value: the same, with slots in place of queries; the value may have a width of its own.
      With four axes they may have fewer heads, each shared by as many neighbours of the query's.
    - pattern: which slots may be seen by position. first: the position of the first query; None =
      the queries are the newest positions, so that causal stays right with a key/value cache.
    - mask: bool, of any shape that broadcasts to the weights', (batch, heads, queries, slots): one
      of (slots,) holds for every query; one of three axes beside four has heads first.
    - real: bool (batch, slots), or (slots,) where there is no batch. False = padding, whose content
      (NaN, inf) changes nothing.
    - bias: added to the scores, shaped like a mask (ALiBi, relative positions); −∞ hides the slot.
    - scale: None = 1 / √width.
    - softcap: scores become c · tanh(score / c) before the bias (Gemma 2); None = they stay.

    A fused kernel runs, or a banded one where the pattern is narrow and there is no mask; with bias
    or softcap the weights are written out: O(heads · queries · slots) memory. So are those of many
    texts of up to 64 positions on a CPU, because that is faster.

    Errors: `AttlasError` where kinds, dtypes, devices or shapes do not fit together, and for NaN or
    +∞ in the bias.
    """
    arrays = Arrays.of(query, key, value, mask=mask, real=real, bias=bias)
    start, scale = _checked(arrays, pattern, first, scale, softcap)
    arrays = arrays.under(pattern, start)
    memory, queries = arrays.memory, arrays.query.shape[2]
    if bias is not None or softcap is not None:
        weights = _weights(arrays, pattern, start, scale, softcap)
        context = weighted_values(weights, memory.values)
    elif mask is not None:
        seen = _seen(arrays, pattern, start)
        context = masked_attention(arrays.query, memory.keys, memory.values, seen, scale, 0.0)
    else:
        pays = band_pays(queries, memory.slots, pattern, start)
        kernel = banded_attention if pays else dense_attention
        context = kernel(arrays.query, memory, pattern, start, scale, 0.0)
    result: Array = arrays.as_came(_of_no_number(arrays, context))
    return result


def attend_with_weights(
    query: Array,
    key: Array,
    value: Array,
    *,
    pattern: Pattern = everywhere,
    first: int | None = None,
    mask: Array | None = None,
    real: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """What `attend` gives, and the weights with which it was read.

    The weights have the axes of the query, with slots in place of width. They are ≥ 0 and sum to 1
    over the seen slots. O(heads · queries · slots) memory.
    """
    arrays = Arrays.of(query, key, value, mask=mask, real=real, bias=bias)
    start, scale = _checked(arrays, pattern, first, scale, softcap)
    arrays = arrays.under(pattern, start)
    weights = _weights(arrays, pattern, start, scale, softcap)
    read = weighted_values(weights, arrays.memory.values)
    context: Array = arrays.as_came(_of_no_number(arrays, read))
    of_slots: Array = arrays.as_came(_of_no_number(arrays, weights))
    return context, of_slots


def _of_no_number(
    arrays: Arrays, result: Float[Tensor, "batch heads queries last"]
) -> Float[Tensor, "batch heads queries last"]:
    """The same with NaN for every query that holds NaN or ∞.

    torch's kernels on a CPU make zeros of it, as if it saw nothing; a softcap makes a number of it.
    """
    query = arrays.query.detach()
    if _can_be_asked(query) and bool(query.sum().isfinite()):
        return result
    nothing = (query * 0).sum(-1, keepdim=True)  # NaN of what is no number
    return result.masked_fill(nothing.isnan(), math.nan)


def _can_be_asked(tensor: Tensor) -> bool:
    """Whether a look at its numbers costs little, and is seen by nobody who would be misled."""
    return (
        not torch.compiler.is_compiling()  # first: what follows is not for those who trace
        and tensor.device.type == "cpu"
        and type(tensor) is Tensor
        and not overseen()
    )


def _checked(
    arrays: Arrays,
    pattern: object,
    first: object,
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
    if first is not None and (isinstance(first, bool) or not isinstance(first, Integral)):
        raise AttlasError("a whole number as first", repr(first), "count positions from 0")
    if first is not None and abs(int(first)) > _FARTHEST:
        raise AttlasError("a first position within ±2⁶²", str(first), "count positions from 0")
    for name, number in (("scale", scale), ("softcap", softcap)):
        if number is None:
            continue
        if not isinstance(number, Real) or not 0.0 < float(number) < math.inf:
            raise AttlasError(f"a {name} above 0", repr(number), "leave it out for the default")
    *_, queries, width = arrays.query.shape
    start = arrays.memory.slots - queries if first is None else int(first)
    return start, width**-0.5 if scale is None else float(scale)


def _weights(
    arrays: Arrays, pattern: Pattern, start: int, scale: float, softcap: float | None
) -> Float[Tensor, "batch heads queries slots"]:
    scores = scaled_scores(arrays.query, arrays.memory.keys, scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if arrays.bias is not None:
        scores = scores + arrays.bias
    return masked_softmax(scores, _seen(arrays, pattern, start)).to(arrays.query.dtype)


def _seen(
    arrays: Arrays, pattern: Pattern, start: int
) -> Bool[Tensor, "#batch #heads queries slots"]:
    memory = arrays.memory
    seen = pattern.mask(arrays.query.shape[2], memory.slots, start, memory.keys.device)[None, None]
    seen = seen if arrays.mask is None else seen & arrays.mask
    return seen if memory.real is None else seen & memory.real[:, None, None, :]
