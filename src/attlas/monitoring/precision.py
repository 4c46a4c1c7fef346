"""How far what a layer has read is from exact attention to the same queries, keys and values."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.recording.maps.factored import FactoredAttentionMap

_AT_ONCE = 2**22  # weights of a block

_PRODUCTS = {"tf32": torch.float16, "bf16": torch.bfloat16}
"""What products of float32 are as exact as, by `fp32_precision`: TF32 has as many bits as float16.
The older `torch.get_float32_matmul_precision` sets the same, and raises where this was set."""


def unit_roundoff(tensor: Tensor) -> float:
    """u, the largest relative error of one rounding in the type in which this is multiplied."""
    dtype, kind = _dtype_of_products(tensor), tensor.device.type
    backends = {"cpu": torch.backends.mkldnn, "cuda": torch.backends.cuda}
    if dtype == torch.float32 and kind in backends:
        dtype = _PRODUCTS.get(backends[kind].matmul.fp32_precision, dtype)
    return float(torch.finfo(dtype).eps) / 2


def _dtype_of_products(tensor: Tensor) -> torch.dtype:
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else tensor.dtype


def context_errors(
    attention_map: FactoredAttentionMap,
    context: Float[Tensor, "batch heads queries value_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    query_mask: Bool[Tensor, "batch queries"],
) -> NDArray[np.float64]:
    """max |c − c*| / ((u · max |v| + η) · (1 + scale · max ‖q‖ · max ‖k‖)) of each head.

    It is in roundings. c: what the layer has read; c*: the mean of the values by weights in
    float32 or better; η: half of the smallest subnormal number, the error of one rounding of
    smaller values. A score q · k is off by some u ‖q‖ ‖k‖ in its own type, so its weight is by so
    much of itself, and a weighted mean by as much of the largest value. A kernel that computes in
    the type of its inputs comes to a few roundings at most; one that computes those of float32 in
    float16 to thousands, as 2²⁴ / 2¹¹ are 2¹³. Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, chapter 3.

    Args:
        query_mask: The queries that count.

    Returns:
        (heads,), the largest of all texts; NaN = unknown, where queries, keys or values are not
        finite.
    """
    unit = unit_roundoff(attention_map.query)  # before autocast is left
    smallest = _smallest_subnormal(_dtype_of_products(attention_map.query))
    with torch.autocast(values.device.type, enabled=False):
        return _errors_in(unit, smallest / 2, attention_map, context, values, query_mask)


def _smallest_subnormal(dtype: torch.dtype) -> float:
    numbers = torch.finfo(dtype)
    return float(numbers.smallest_normal) * float(numbers.eps)


def _errors_in(
    unit: float,
    spacing: float,
    attention_map: FactoredAttentionMap,
    context: Float[Tensor, "batch heads queries value_dim"],
    values: Float[Tensor, "batch kv_heads keys value_dim"],
    query_mask: Bool[Tensor, "batch queries"],
) -> NDArray[np.float64]:
    """The same, of u and η."""
    batch, heads, _, keys = attention_map.shape
    exact = torch.promote_types(values.dtype, torch.float32)
    groups = heads // values.shape[1]
    shared = values.to(exact).unsqueeze(2)
    largest = shared.abs().amax((3, 4)).expand(-1, -1, groups).reshape(batch, heads)
    of_queries = _longest(attention_map.query.to(exact), query_mask)
    of_keys = _longest(attention_map.keys.to(exact), attention_map.token_mask)
    of_keys = of_keys.repeat_interleave(heads // of_keys.shape[1], 1)
    one_rounding = (unit * largest + spacing) * (
        1 + abs(attention_map.scale) * of_queries * of_keys
    )
    found = torch.zeros_like(one_rounding)
    size, start = max(1, _AT_ONCE // max(1, batch * heads * keys)), 0
    for weights in attention_map.blocks(size):
        rows = slice(start, start + weights.shape[2])
        of_groups = weights.to(exact).view(batch, values.shape[1], groups, -1, keys)
        expected = (of_groups @ shared).reshape(batch, heads, -1, values.shape[-1])
        apart = (context[:, :, rows].to(exact) - expected).abs().amax(-1)
        apart = apart.masked_fill(~query_mask[:, None, rows], 0.0)
        found = torch.maximum(found, apart.amax(-1))
        start = rows.stop
    errors = torch.where(found > 0, found / one_rounding, found)
    limit = torch.finfo(torch.float32).max  # JSON has no infinity
    errors = errors.nan_to_num(limit, limit).masked_fill(~one_rounding.isfinite(), torch.nan)
    largest_errors: NDArray[np.float64] = np.fmax.reduce(errors.cpu().numpy().astype(np.float64))
    return largest_errors


def _longest(
    vectors: Float[Tensor, "batch heads places head_dim"],
    mask: Bool[Tensor, "batch places"] | None,
) -> Float[Tensor, "batch heads"]:
    """The greatest length of the vectors of tokens."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    if mask is not None:
        lengths = lengths.masked_fill(~mask[:, None], 0.0)
    return lengths.amax(2)
