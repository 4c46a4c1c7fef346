"""Summaries, and statistics with other shapes than a number for each query."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.recording.maps.blocks import BlockSource, position_error
from attlas.recording.maps.reductions import (
    CancelCheck,
    CountAbove,
    MassReduction,
    PoolReduction,
    ReceivedReduction,
    Reduction,
    RowReduction,
    RowStatistic,
    TopKReduction,
    WeightAtOffset,
    argmax,
    distance,
    effective_keys,
    entropy,
    first_weight,
    gini,
    last_weight,
    max_logit,
    max_weight,
    normalized_entropy,
    num_visible,
    reduce_map,
)

_CELLS = 1024


def topk(
    attention_map: BlockSource, k: int
) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
    """See `AttentionMap.topk`."""
    if k < 1:
        raise AttlasError("at least one greatest weight", str(k), "ask e.g. for topk(5)")
    result: tuple[Tensor, Tensor] = reduce_map(
        attention_map, {"top": TopKReduction(attention_map, k)}
    )["top"]
    return result


def mass(
    attention_map: BlockSource, groups: Shaped[Tensor, "..."] | Sequence[int]
) -> Float[Tensor, "batch heads queries groups"]:
    """See `AttentionMap.mass`."""
    numbers = groups if isinstance(groups, Tensor) else torch.tensor(groups, device="cpu")
    numbers = numbers.unsqueeze(0) if numbers.ndim == 1 else numbers
    batch, _, _, num_keys = attention_map.shape
    is_integer = not (numbers.is_floating_point() or numbers.is_complex())
    if (
        not is_integer
        or numbers.ndim != 2
        or numbers.shape[1] != num_keys
        or numbers.shape[0] not in (1, batch)
    ):
        raise AttlasError(
            f"the number of a group for each of {num_keys:,} keys",
            f"{numbers.dtype} of shape {tuple(numbers.shape)}",
            "give one list for all batch rows, or a tensor (batch, keys)",
        )
    count = int(numbers.max()) + 1 if numbers.numel() else 0
    if count < 1:
        raise AttlasError("at least one group", "none", "number the groups from 0")
    result: Tensor = reduce_map(
        attention_map, {"mass": MassReduction(attention_map, numbers, count)}
    )["mass"]
    return result


def pool_map(
    attention_map: BlockSource,
    rows: tuple[int, int] | None,
    key_range: tuple[int, int] | None,
    shape: tuple[int, int] | None,
    how: str,
    stop: threading.Event | None = None,
    *,
    hidden: float = 0.0,
) -> Float[Tensor, "batch heads cell_rows cell_keys"]:
    """See `AttentionMap.pool`.

    Args:
        stop: Once it is set, `PassCancelledError` is raised soon.
        hidden: Of "max", the value of a cell in which no query may look at any key.
    """
    rows = (0, attention_map.shape[2]) if rows is None else rows
    key_range = (0, attention_map.shape[3]) if key_range is None else key_range
    if shape is None:
        shape = min(_CELLS, rows[1] - rows[0]), min(_CELLS, key_range[1] - key_range[0])
    reductions: dict[str, Reduction] = {
        "pooled": PoolReduction(attention_map, rows, key_range, shape, how, hidden=hidden)
    }
    if stop is not None:
        reductions["stop"] = CancelCheck(stop)
    pooled: Tensor = reduce_map(attention_map, reductions, rows=rows)["pooled"]
    return pooled


# The summary.


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of an attention map, each (batch, heads, queries), but for `received`. None = not
    requested, or not defined: without query positions, or without scores.

    Formulas and units are those of the methods of `AttentionMap` with these names.
    """

    entropy: Float[Tensor, "batch heads queries"] | None = None
    normalized_entropy: Float[Tensor, "batch heads queries"] | None = None
    effective_keys: Float[Tensor, "batch heads queries"] | None = None
    num_visible: Float[Tensor, "batch heads queries"] | None = None
    count_above: Float[Tensor, "batch heads queries"] | None = None
    max_weight: Float[Tensor, "batch heads queries"] | None = None
    max_logit: Float[Tensor, "batch heads queries"] | None = None
    argmax: Int[Tensor, "batch heads queries"] | None = None
    distance: Float[Tensor, "batch heads queries"] | None = None
    first_weight: Float[Tensor, "batch heads queries"] | None = None
    last_weight: Float[Tensor, "batch heads queries"] | None = None
    self_weight: Float[Tensor, "batch heads queries"] | None = None
    previous_weight: Float[Tensor, "batch heads queries"] | None = None
    next_weight: Float[Tensor, "batch heads queries"] | None = None
    gini: Float[Tensor, "batch heads queries"] | None = None
    received: Float[Tensor, "batch heads keys"] | None = None


# Several statistics of an attention map, from one pass over it.


_OF_ROWS: Mapping[str, RowStatistic] = {
    "entropy": entropy,
    "normalized_entropy": normalized_entropy,
    "effective_keys": effective_keys,
    "num_visible": num_visible,
    "max_weight": max_weight,
    "max_logit": max_logit,
    "argmax": argmax,
    "distance": distance,
    "first_weight": first_weight,
    "last_weight": last_weight,
    "self_weight": WeightAtOffset(0),
    "previous_weight": WeightAtOffset(-1),
    "next_weight": WeightAtOffset(1),
    "gini": gini,
}
PLACED = ("distance", "self_weight", "previous_weight", "next_weight")
"""What needs to know where the queries stand."""

SCORED = ("max_logit",)
"""What needs the scores, which a map of weights alone does not have."""

NAMES = (*(name for name in _OF_ROWS if name not in SCORED), "count_above", "received")
"""The statistics of weights."""

QUICK = tuple(name for name in NAMES if name != "gini")
"""All but what has to sort every row."""


def summarize(attention_map: BlockSource, names: tuple[str, ...], threshold: float) -> Summary:
    """These statistics, or all the quick ones where none is named.

    Where the queries stand at places that are unknown, all the quick ones that need none.

    Raises:
        AttlasError: For a name that there is not, for a threshold that is no weight, and for what
            needs to know where the queries stand, or the scores.
    """
    unknown = [name for name in names if name not in (*NAMES, *SCORED)]
    if unknown:
        raise AttlasError(
            f"statistics among {[*NAMES, *SCORED]}",
            str(unknown),
            "name some of these, or none for all but gini",
        )
    if not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise AttlasError("a threshold from 0 to 1", quoted(threshold), "weights are at most 1")
    without = PLACED if attention_map.position is None else ()
    refused = [name for name in names if name in without]
    if refused:
        raise position_error(" and ".join(refused), *attention_map.shape[2:])
    scored = SCORED if attention_map.of_softmax else ()
    if not scored and any(name in SCORED for name in names):
        raise AttlasError(
            f"a map that knows the scores of its softmax, for {' and '.join(SCORED)}",
            "one that holds the weights alone",
            "ask for statistics of weights, such as max_weight",
        )
    selected_names = names or [name for name in (*QUICK, *scored) if name not in without]
    return Summary(
        **reduce_map(
            attention_map, {n: reduction_of(attention_map, n, threshold) for n in selected_names}
        )
    )


def reduction_of(
    attention_map: BlockSource,
    name: str,
    threshold: float = 0.0,
    query_mask: Bool[Tensor, "batch queries"] | None = None,
) -> Reduction:
    """The reduction that has the statistic of this name as its result.

    Args:
        query_mask: The queries that count in `received`; None = all.
    """
    if name == "received":
        return ReceivedReduction(attention_map, query_mask)
    statistic: Callable[..., Tensor] = (
        CountAbove(threshold) if name == "count_above" else _OF_ROWS[name]
    )
    return RowReduction(
        attention_map, statistic, torch.int64 if name == "argmax" else torch.float32
    )
