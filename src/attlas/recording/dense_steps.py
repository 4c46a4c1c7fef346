"""The steps of a generation whose weights are all that is known of them, put together."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool
from torch import Tensor

from attlas.recording.beside import newest
from attlas.recording.dense_reading import DenseReading
from attlas.recording.reading import Reading


def followed(
    earlier: Reading,
    step: Reading,
    parents: Bool[Tensor, "batch before"] | None = None,
    *,
    across: bool | None = None,
) -> DenseReading | None:
    """The weights of a layer after one more step of the same cache; None where they do not go on.

    They go on where the step's queries are the newest of its slots, behind all earlier ones, or
    where the slots are as many as before, of another text; of one's own a cache may have dropped
    some, or made room for more. across: which of the two it is, None = nobody knows.

    No keys tell whether rows have changed places: parents, as other layers know them, say from
    which row each row may have gone on; of one row it is certain without.
    """
    if not isinstance(earlier, DenseReading) or not isinstance(step, DenseReading):
        return None
    if across is False:
        earlier, step = _filled(earlier), _filled(step)
    if across is not True and step.shape[3] > earlier.shape[3]:
        earlier, step = newest(earlier), newest(step)
    _, heads, queries, slots = step.shape
    had = earlier.shape[3]
    same = step.shape[0] == earlier.shape[0] and heads == earlier.shape[1]
    if not same or step.values.dtype != earlier.values.dtype or slots - had not in (0, queries):
        return None
    grows = slots > had
    if across is grows:
        return None
    begun = 0 if earlier.position is None else earlier.position
    if grows and (begun + earlier.shape[2] != had or step.position != had):
        return None
    if step.shape[0] > 1:
        if parents is None or bool((parents.sum(1) != 1).any()):
            return None
        earlier = earlier.select(parents.to(torch.uint8).argmax(1))
    values = torch.cat((F.pad(earlier.values, (0, slots - had)), step.values), 2)
    if not grows and earlier.allowed is None and step.allowed is None:
        return replace(step, values=values, first=earlier.position)
    shown = F.pad(earlier.seen(0, earlier.shape[2]), (0, slots - had)), step.seen(0, queries)
    batch, heads = (max(one.shape[axis] for one in shown) for axis in (0, 1))
    allowed = torch.cat([one.expand(batch, heads, -1, -1) for one in shown], 2)
    return replace(step, values=values, allowed=allowed, first=earlier.position)


def _filled(reading: DenseReading) -> DenseReading:
    """The reading without the room that a cache has made and not filled yet, behind its queries."""
    first = reading.position
    if first is None:
        return reading
    end = first + reading.shape[2]
    if end >= reading.shape[3] or bool(reading.values[..., end:].any()):
        return reading
    allowed = reading.allowed
    if allowed is not None and allowed.shape[3] > 1:
        allowed = allowed[..., :end]
    return replace(reading, values=reading.values[..., :end], allowed=allowed, first=first)
