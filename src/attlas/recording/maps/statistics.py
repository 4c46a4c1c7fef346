"""Questions that have an answer of another shape than a number for each query."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.maps.blocks import BlockSource, unplaced
from attlas.recording.maps.reductions import (
    Abandoning,
    Gathering,
    Mass,
    OfRow,
    Pooled,
    Received,
    Rows,
    Top,
    above,
    argmax,
    concentration,
    distance,
    effective,
    entropy,
    evenness,
    gather,
    on_first,
    on_last,
    on_offset,
    peak,
    visible,
)

_CELLS = 1024


def top(
    reading: BlockSource, k: int
) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
    """See `Reading.top`."""
    if k < 1:
        raise AttlasError("at least one greatest weight", str(k), "ask e.g. for top(5)")
    found: tuple[Tensor, Tensor] = gather(reading, {"top": Top(reading, k)})["top"]
    return found


def mass(
    reading: BlockSource, groups: Shaped[Tensor, "..."] | Sequence[int]
) -> Float[Tensor, "batch heads queries groups"]:
    """See `Reading.mass`."""
    numbers = groups if isinstance(groups, Tensor) else torch.tensor(groups, device="cpu")
    numbers = numbers.unsqueeze(0) if numbers.ndim == 1 else numbers
    batch, _, _, slots = reading.shape
    whole = not (numbers.is_floating_point() or numbers.is_complex())
    if (
        not whole
        or numbers.ndim != 2
        or numbers.shape[1] != slots
        or numbers.shape[0] not in (1, batch)
    ):
        raise AttlasError(
            f"the number of a group for each of {slots:,} slots",
            f"{numbers.dtype} of shape {tuple(numbers.shape)}",
            "give one list for all batch rows, or a tensor (batch, slots)",
        )
    count = int(numbers.max()) + 1 if numbers.numel() else 0
    if count < 1:
        raise AttlasError("at least one group", "none", "number the groups from 0")
    found: Tensor = gather(reading, {"mass": Mass(reading, numbers, count)})["mass"]
    return found


def pooled(
    reading: BlockSource,
    rows: tuple[int, int] | None,
    slots: tuple[int, int] | None,
    shape: tuple[int, int] | None,
    how: str,
    stop: threading.Event | None = None,
) -> Float[Tensor, "batch heads cell_rows cell_slots"]:
    """See `Reading.pooled`. stop: once it is set, `AbandonedError` is raised soon."""
    rows = (0, reading.shape[2]) if rows is None else rows
    slots = (0, reading.shape[3]) if slots is None else slots
    if shape is None:
        shape = min(_CELLS, rows[1] - rows[0]), min(_CELLS, slots[1] - slots[0])
    gatherings: dict[str, Gathering] = {"pooled": Pooled(reading, rows, slots, shape, how)}
    if stop is not None:
        gatherings["stop"] = Abandoning(stop)
    found: Tensor = gather(reading, gatherings, within=rows)["pooled"]
    return found


# What a reading says, in numbers.


@dataclass(frozen=True, slots=True)
class Summary:
    """What a reading says, (batch, heads, queries) each but for `received`; None = not asked for,
    or of queries of which nobody knows where they stand.

    Formulas and units are those of the methods of `Reading` with these names.
    """

    entropy: Float[Tensor, "batch heads queries"] | None = None
    evenness: Float[Tensor, "batch heads queries"] | None = None
    effective: Float[Tensor, "batch heads queries"] | None = None
    visible: Float[Tensor, "batch heads queries"] | None = None
    above: Float[Tensor, "batch heads queries"] | None = None
    peak: Float[Tensor, "batch heads queries"] | None = None
    argmax: Int[Tensor, "batch heads queries"] | None = None
    distance: Float[Tensor, "batch heads queries"] | None = None
    on_first: Float[Tensor, "batch heads queries"] | None = None
    on_last: Float[Tensor, "batch heads queries"] | None = None
    on_itself: Float[Tensor, "batch heads queries"] | None = None
    on_previous: Float[Tensor, "batch heads queries"] | None = None
    on_next: Float[Tensor, "batch heads queries"] | None = None
    concentration: Float[Tensor, "batch heads queries"] | None = None
    received: Float[Tensor, "batch heads slots"] | None = None


# Several statistics of a reading, from one pass over it.


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
