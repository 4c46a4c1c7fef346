"""The totals of all processes that train one model together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from attlas.errors import AttlasError
from attlas.monitoring.statistics import QUANTILES, Array, LayerTotals, merged

_BITS = 4
"""Bits of the entropies that one reduction over the processes finds."""


def of_all_processes(
    totals: Callable[[], dict[str, LayerTotals]], group: Any
) -> dict[str, LayerTotals]:
    """The totals of all processes, merged in the order of their ranks, without the entropies.

    The processes exchange sums, and the quantiles of entropies by counts of them. So what they
    hold does not grow with the queries of the others, and the quantiles are those of all queries.

    Args:
        totals: Makes those of this process.
        group: The processes; None = all of torch.distributed.

    Raises:
        AttlasError: On every process, if the totals of one cannot be made. The others would wait
            for it otherwise.
    """
    own: dict[str, LayerTotals] = {}
    failure: Exception | None = None
    try:
        own = totals()
    except Exception as error:
        failure = error
    parts: list[Any] = [None] * dist.get_world_size(group)
    given = (
        {layer: part.without_entropies() for layer, part in own.items()},
        None if failure is None else f"{type(failure).__name__}: {failure}",
    )
    dist.all_gather_object(parts, given, group=group)
    if failure is not None:
        raise failure
    for rank, (_, text) in enumerate(parts):
        if text is not None:
            raise AttlasError(
                "a reading of every process", f"an error of rank {rank}: {text}",
                "see what that process prints",
            )  # fmt: skip
    whole = merged(part for part, _ in parts)
    if not whole:
        return whole
    entropies = [
        own[layer].entropies[head] if layer in own else np.zeros(0, np.float32)
        for layer, totals in whole.items()
        for head in range(totals.num_heads)
    ]
    device = _device(group)

    def added(counts: Array) -> Array:
        tensor = torch.from_numpy(counts).to(device)
        dist.all_reduce(tensor, group=group)
        return tensor.cpu().numpy()

    quantiles = iter(quantiles_of_parts(entropies, added))
    return {
        layer: replace(totals, quantiles=[next(quantiles) for _ in range(totals.num_heads)])
        for layer, totals in whole.items()
    }


def _device(group: Any) -> str:
    """Where tensors lie that the processes exchange: on the CPU, if their backends allow it."""
    # Such as "cpu:gloo,cuda:nccl".
    devices = [pair.split(":")[0] for pair in dist.get_backend_config(group).split(",")]
    return "cpu" if "cpu" in devices else devices[0]


def quantiles_of_parts(
    parts: Sequence[Array], added: Callable[[Array], Array]
) -> list[tuple[float, ...]]:
    """`QUANTILES` of each head, as `numpy.quantile` has them, of values that lie in several places.

    Each quantile is of two values: those with the ranks ⌊q (n − 1)⌋ and the next. The first bits
    of a value are found by how many values are smaller than each number with such bits.

    Args:
        parts: The values of this place, float32, one array for each head.
        added: Sums counts over all places.
    """
    ordered = [np.sort(_integers(values)) for values in parts]
    counts = added(np.array([(len(v), np.isnan(v).sum()) for v in parts], np.int64).reshape(-1, 2))
    position = np.maximum(counts[:, :1] - 1, 0) * np.array(QUANTILES)
    low = np.floor(position).astype(np.int64)
    ranks = np.concatenate([low, np.minimum(low + 1, np.maximum(counts[:, :1] - 1, 0))], 1)
    found = np.zeros(ranks.shape, np.uint32)
    for shift in range(32 - _BITS, -1, -_BITS):
        steps = np.arange(1, 2**_BITS, dtype=np.uint32) << np.uint32(shift)
        bounds = found[:, :, None] + steps
        own = [np.searchsorted(v, b) for v, b in zip(ordered, bounds, strict=True)]
        smaller = added(np.array(own, np.int64).reshape(bounds.shape))
        digits = (smaller <= ranks[:, :, None]).sum(2).astype(np.uint32)
        found += digits << np.uint32(shift)
    values = _floats(found).astype(np.float64)
    weight = position - low
    first, second = np.split(values, 2, axis=1)
    step = second - first
    # As numpy has it, to the bit.
    between = np.where(weight >= 0.5, second - step * (1 - weight), first + step * weight)
    between[counts[:, 1] > 0] = np.nan
    return [tuple(row) for row in between.tolist()]


_SIGN = np.uint32(1 << 31)


def _integers(values: Array) -> Array:
    """Integers of 32 bits with the order of the numbers."""
    bits = values.astype(np.float32).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _floats(integers: Array) -> Array:
    return np.where(integers & _SIGN, integers ^ _SIGN, ~integers).view(np.float32)
