"""Several statistics of a reading, from one pass over it."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.streaming.block import unplaced
from attlas.recording.streaming.blocks import BlockSource
from attlas.recording.streaming.gathering import Gathering, Received, Rows, gather
from attlas.recording.streaming.rows import (
    OfRow,
    above,
    argmax,
    concentration,
    distance,
    effective,
    entropy,
    evenness,
    on_first,
    on_last,
    on_offset,
    peak,
    visible,
)
from attlas.recording.streaming.summary import Summary

_OF_ROWS: Mapping[str, OfRow] = {
    "entropy": entropy,
    "evenness": evenness,
    "effective": effective,
    "visible": visible,
    "peak": peak,
    "argmax": argmax,
    "distance": distance,
    "on_first": on_first,
    "on_last": on_last,
    "on_itself": on_offset(0),
    "on_previous": on_offset(-1),
    "on_next": on_offset(1),
    "concentration": concentration,
}
PLACED = ("distance", "on_itself", "on_previous", "on_next")
"""What needs to know where the queries stand."""

NAMES = (*_OF_ROWS, "above", "received")
QUICK = tuple(name for name in NAMES if name != "concentration")
"""All but what has to sort every row."""


def summarise(reading: BlockSource, names: tuple[str, ...], threshold: float) -> Summary:
    """These statistics, or all the quick ones where none is named.

    Where the queries stand at places that nobody knows, all the quick ones that need none.
    Errors: `AttlasError` for a name that there is not, for a threshold that is no weight, and for
    what needs to know where the queries stand.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise AttlasError(
            f"statistics among {list(NAMES)}",
            str(unknown),
            "name some of these, or none for all but concentration",
        )
    if not 0 <= threshold <= 1:
        raise AttlasError("a threshold from 0 to 1", str(threshold), "weights are at most 1")
    without = PLACED if reading.position is None else ()
    refused = [name for name in names if name in without]
    if refused:
        raise unplaced(" and ".join(refused), *reading.shape[2:])
    chosen = names or [name for name in QUICK if name not in without]
    return Summary(**gather(reading, {n: _gathering(reading, n, threshold) for n in chosen}))


def _gathering(reading: BlockSource, name: str, threshold: float) -> Gathering:
    if name == "received":
        return Received(reading)
    of_row: Callable[..., Tensor] = above(threshold) if name == "above" else _OF_ROWS[name]
    return Rows(reading, of_row, torch.int64 if name == "argmax" else torch.float32)
