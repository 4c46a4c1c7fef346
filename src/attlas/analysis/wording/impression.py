"""What a single map looks like, in a few numbers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.analysis.habits.tallying import Slope
from attlas.errors import AttlasError
from attlas.recording import Reading
from attlas.recording.streaming.gathering import Gathering, Mass, Rows, gather
from attlas.recording.streaming.rows import on_offset


@dataclass(frozen=True, slots=True)
class Impression:
    """Means over the queries that have a choice, those of real tokens that see several slots.

    queries: how many have, out of `asked` real ones; slots: how many there are; visible: how many
    of them a query sees; effective: exp(entropy); evenness: entropy / log(visible); peak: the
    greatest weight. slot: where most queries have their greatest weight, `on_slot` of them, and
    its weight. offset: the same, counted from the query's own place, if that is known. forward,
    still, backward: of the steps from one query to the next, how many move the greatest weight to a
    later slot, leave it, or move it to an earlier one. slope: the correlation of query and slot.
    """

    asked: int
    queries: int
    slots: int
    visible: float = 0.0
    effective: float = 0.0
    evenness: float = 0.0
    peak: float = 0.0
    slot: int = -1
    on_slot: float = 0.0
    slot_weight: float = 0.0
    offset: int = 0
    on_offset: float = 0.0
    offset_weight: float = 0.0
    steps: int = 0
    forward: float = 0.0
    still: float = 0.0
    backward: float = 0.0
    slope: float = 0.0


def impression_of(
    reading: Reading, real: Bool[Tensor, "one slots"], asking: Bool[Tensor, "one queries"]
) -> Impression:
    """The numbers of a reading with one text and one head, in two passes over its blocks.

    real: which slots are tokens; asking: which queries are.
    Errors: `AttlasError` for a reading of several maps.
    """
    batch, heads, *axes = reading.shape
    if (batch, heads) != (1, 1):
        raise AttlasError(
            "one map", f"{batch} × {heads} of them", "choose a batch row and a head of the reading"
        )
    if not all(axes):
        return Impression(int(asking.sum()), 0, int(real.sum()))
    said = reading.summary("argmax", "effective", "evenness", "visible", "peak")
    assert said.argmax is not None  # as it was asked for
    best, device = said.argmax[0, 0], said.argmax.device
    numbers = [said.visible, said.effective, said.evenness, said.peak]
    rows = torch.stack([part[0, 0] for part in numbers if part is not None])
    asking = asking.to(device)
    choice = asking[0] & (rows[0] > 1) & (best >= 0)
    asked, queries, slots = int(asking.sum()), int(choice.sum()), int(real.sum())
    if not queries:
        return Impression(asked, queries, slots)
    visible, effective, evenness, peak = rows[:, choice].to(torch.float64).mean(-1).tolist()
    slot, on_slot = _commonest(best[choice])
    offset, on_offset_ = 0, 0
    first = reading.position
    if first is not None:
        place = first + torch.arange(len(best), device=device)
        offset, on_offset_ = _commonest((best - place)[choice])
    marks = torch.full((1, reading.shape[3]), -1, device=device)
    marks[0, slot] = 0
    gatherings: dict[str, Gathering] = {
        "slot": Mass(reading, marks, 1),
        "slope": Slope(reading, asking),
    }
    if first is not None:
        gatherings["offset"] = Rows(reading, on_offset(offset))
    found = gather(reading, gatherings)
    there = float(found["offset"][0, 0, choice].double().mean()) if "offset" in found else 0.0
    moves = best[choice].diff()
    steps = len(moves)
    forward, backward = int((moves > 0).sum()), int((moves < 0).sum())
    most = max(1, steps)
    return Impression(
        asked, queries, slots, visible, effective, evenness, peak,
        slot, on_slot / queries, float(found["slot"][0, 0, choice.cpu(), 0].double().mean()),
        offset, on_offset_ / queries, there,
        steps, forward / most, (steps - forward - backward) / most, backward / most,
        float(found["slope"][0][0, 0]),
    )  # fmt: skip


def _commonest(values: Int[Tensor, " some"]) -> tuple[int, int]:
    """The value that occurs most often, the least of equals, and how often."""
    different, counts = torch.unique(values, return_counts=True)
    most = int(counts.argmax())
    return int(different[most]), int(counts[most])
