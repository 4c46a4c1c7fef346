"""Questions that have an answer of another shape than a number for each query."""

import threading
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.streaming.abandoning import Abandoning
from attlas.recording.streaming.blocks import BlockSource
from attlas.recording.streaming.gathering import Gathering, Mass, Top, gather
from attlas.recording.streaming.pooled import Pooled

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
