"""The steps of a generation, put together to one map."""

from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.patterns import (
    Both,
    Causal,
    Everywhere,
    Pattern,
    Window,
    both,
    causal,
    everywhere,
    window,
)
from attlas.recording.beside import newest
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.reading import Reading


class Longer(NamedTuple):
    """A reading after one more step, and from which rows of before each of its rows may have gone
    on: those whose keys are just what the step brought."""

    reading: FactoredReading
    parents: Bool[Tensor, "batch before"]


def grown(earlier: Reading, step: Reading) -> Longer | None:
    """The reading of self-attention after one more step; None where it does not go on from there.

    It goes on where its keys are the earlier ones, number for number, and those of its own queries
    behind them. A cache of a window may have dropped the oldest. Batch rows may have changed
    places, as in a beam: then the earlier queries go with the keys from which a row went on.
    """
    if not isinstance(earlier, FactoredReading) or not isinstance(step, FactoredReading):
        return None
    return _grown(earlier, step) if _alike(earlier, step) else None


def asked_again(
    earlier: Reading, step: Reading, parents: Bool[Tensor, "batch before"] | None = None
) -> FactoredReading | None:
    """The reading of a decoder that looks at its source, after one more step; None as in `grown`.

    It goes on where its keys are just the earlier ones. Whether that is one generation, or a model
    called twice on the same source, is for the caller to know. parents: from which rows each row
    may have gone on, as self-attention knows it; without it, rows of the same source are not told
    apart, and such a step does not go on.
    """
    if not isinstance(earlier, FactoredReading) or not isinstance(step, FactoredReading):
        return None
    return _asked_again(earlier, step, parents) if _alike(earlier, step) else None


def _alike(earlier: FactoredReading, step: FactoredReading) -> bool:
    return (
        earlier.scale == step.scale
        and earlier.softcap == step.softcap
        and earlier.query.dtype == step.query.dtype
        and earlier.query.shape[:2] == step.query.shape[:2]
        and earlier.query.shape[3] == step.query.shape[3]
        and earlier.keys.shape[:2] == step.keys.shape[:2]
        and earlier.keys.shape[3] == step.keys.shape[3]
    )


def _grown(earlier: FactoredReading, step: FactoredReading) -> Longer | None:
    """Self-attention: the newest queries see what came before, and themselves.

    Where neither says where its queries stand, keys that grow by as many slots do.
    """
    earlier, step = newest(earlier), newest(step)
    earlier = _filled(earlier)
    step = _filled_up_to(step, earlier.shape[3] + step.shape[2])
    queries, slots = step.shape[2:]
    had, brought = earlier.shape[3], slots - queries
    if not 0 < brought <= had or earlier.counted_from + earlier.shape[2] != had:
        return None
    alike = _alike_rows(earlier.keys[:, :, had - brought :], step.keys[:, :, :brought])
    parents = _parents(alike)
    if parents is None:
        return None
    before = _after(earlier, parents)
    if before.bias is not None or step.bias is not None:
        return Longer(_spelled_out(before, step), alike) if brought == had else None
    before, step = _through_a_window(before, step)
    pattern = _pattern(before, step, had + queries)
    if pattern is None:
        return None
    keys = step.keys
    if brought < had:
        keys = torch.cat((before.keys[:, :, : had - brought], keys), 2)
    real = _real(before, step, had - brought)
    if real is None:
        return None
    query = torch.cat((before.query, step.query), 2)
    padding = None if bool(real.all()) else real
    longer = replace(before, query=query, keys=keys, pattern=pattern, real=padding)
    return Longer(longer, alike)


def _spelled_out(before: FactoredReading, step: FactoredReading) -> FactoredReading:
    """Self-attention of which a pattern does not say what was seen: as a mask of all pairs."""
    later = step.shape[3] - before.shape[3]
    masks = [F.pad(_mask(before), (0, later), value=-torch.inf), _mask(step)]
    batch, heads = (max(mask.shape[axis] for mask in masks) for axis in (0, 1))
    bias = torch.cat([mask.expand(batch, heads, -1, -1) for mask in masks], 2)
    query = torch.cat((before.query, step.query), 2)
    return replace(before, query=query, keys=step.keys, pattern=everywhere, real=None, bias=bias)


def _mask(reading: FactoredReading) -> Float[Tensor, "#batch #heads queries slots"]:
    """What is added to the scores of each pair; −∞ where a query does not see a slot."""
    _, _, queries, slots = reading.shape
    allowed = replace(reading, bias=None).seen(0, queries)
    nothing = torch.zeros((), dtype=torch.float32, device=allowed.device)
    bias = reading.bias
    if bias is not None and bias.dtype == torch.bool:
        allowed, bias = allowed & bias, None
    bias = nothing if bias is None else bias
    return torch.where(allowed, bias, -torch.inf).expand(-1, -1, queries, slots)


def _asked_again(
    earlier: FactoredReading, step: FactoredReading, known: Bool[Tensor, "batch before"] | None
) -> FactoredReading | None:
    """Cross-attention: more queries of the same slots."""
    same = (
        earlier.bias is None
        and step.bias is None
        and earlier.keys.shape == step.keys.shape
        and isinstance(earlier.pattern, Everywhere)
        and isinstance(step.pattern, Everywhere)
    )
    if not same:
        return None
    alike = _alike_rows(earlier.keys, step.keys)
    if known is None and bool((alike.sum(1) > 1).any()):
        return None  # hypotheses of one text, of which nobody knows which went on
    parents = _parents(alike if known is None else alike & known)
    if parents is None:
        return None
    before = _after(earlier, parents)
    one, other = before.real, step.real
    if (one is None) != (other is None) or (
        one is not None and other is not None and not torch.equal(one, other)
    ):
        return None
    return replace(before, query=torch.cat((before.query, step.query), 2))


def _filled(reading: FactoredReading) -> FactoredReading:
    """The reading without the room that a cache has made and not filled yet, behind its queries."""
    end = reading.counted_from + reading.shape[2]
    if reading.first is None or end >= reading.shape[3]:
        return reading
    if reading.bias is None:
        return _cut(reading, end) if reading.pattern.bound.ahead == 0 else reading
    behind = reading.shown(0, reading.shape[2])[..., end:]
    return reading if bool(behind.any()) else _cut(reading, end)


def without_room(step: Reading) -> Reading:
    """A single query of self-attention, of all there is: the newest of its slots is its own.

    What lies behind that is room which a cache has made and not filled yet.
    """
    if not isinstance(step, FactoredReading) or step.shape[2] != 1 or step.real is None:
        return step
    if step.pattern != everywhere or not bool(step.real.any()):
        return step
    slots = 1 + int(step.real.any(0).nonzero().max())
    return _filled_up_to(step, slots) if slots < step.shape[3] else step


def _filled_up_to(step: FactoredReading, slots: int) -> FactoredReading:
    """The same of one query that sees all there is, of which there should be so many slots."""
    slots = min(slots, step.shape[3])  # a cache of a window has dropped the oldest
    if step.shape[2] != 1 or step.real is None or bool(step.real[:, slots:].any()):
        return _filled(step)
    return replace(_cut(step, slots), first=slots - 1)


def _cut(reading: FactoredReading, slots: int) -> FactoredReading:
    real = None if reading.real is None else reading.real[:, :slots]
    bias = reading.bias
    bias = bias[..., :slots] if bias is not None and bias.shape[-1] > 1 else bias
    return replace(reading, keys=reading.keys[:, :, :slots], real=real, bias=bias)


def _after(earlier: FactoredReading, parents: Int[Tensor, " batch"]) -> FactoredReading:
    same = torch.equal(parents, torch.arange(len(parents), device=parents.device))
    return earlier if same else earlier.select(parents)


def _pattern(earlier: FactoredReading, step: FactoredReading, slots: int) -> Pattern | None:
    """What pattern the earlier queries and those of the step have together, of so many slots."""
    held, queries = step.shape[3], step.shape[2]
    if held == slots and _looks_back(step) and _looks_back(earlier):
        return causal
    windowed = step.pattern
    if held < slots:  # a cache that drops the oldest
        windowed = both(causal, window(held - queries))
        if not (_looks_back(step) if queries == 1 else step.pattern == windowed):
            return None
    reach = _reach(windowed)
    within = reach is not None and _looks_back(earlier) and earlier.shape[3] <= reach + 1
    return windowed if within or (reach is not None and earlier.pattern == windowed) else None


def _through_a_window(
    before: FactoredReading, step: FactoredReading
) -> tuple[FactoredReading, FactoredReading]:
    """Both as of a causal window where the step's one query no longer sees the oldest slots, of
    which a cache keeps more than a window shows; unchanged where that is not what all rows saw."""
    apart = before, step
    slots = step.shape[3]
    if step.shape[2] != 1 or step.real is None or step.pattern != everywhere:
        return apart
    theirs = before.real
    if theirs is None:
        theirs = step.real.new_ones(len(step.real), slots - 1)
    real = F.pad(theirs, (0, slots - theirs.shape[1]), value=True)
    if torch.equal(step.real, real) or not bool(step.real[:, -1].all()):
        return apart
    oldest = int(step.real.any(0).nonzero().min())
    radius = slots - 1 - oldest
    within = torch.arange(slots, device=real.device) >= oldest
    if not torch.equal(step.real, real & within):
        return apart
    windowed = both(causal, window(radius))
    if _looks_back(before) and slots - 1 - int(theirs.any(0).nonzero().min()) <= radius + 1:
        before = replace(before, pattern=windowed)
    elif before.pattern != windowed:
        return apart
    padding = None if bool(real.all()) else real
    return before, replace(step, pattern=windowed, real=padding)


def _looks_back(reading: FactoredReading) -> bool:
    """Whether each query sees all slots up to its own: one newest query does if it sees all."""
    queries, slots = reading.shape[2:]
    if reading.counted_from + queries != slots:
        return False
    return isinstance(reading.pattern, Causal) or (
        queries == 1 and isinstance(reading.pattern, Everywhere)
    )


def _reach(pattern: Pattern) -> int | None:
    """How far back a causal window looks; None for another pattern."""
    if not isinstance(pattern, Both) or not isinstance(pattern.left, Causal):
        return None
    return pattern.right.radius if isinstance(pattern.right, Window) else None


def _alike_rows(
    held: Float[Tensor, "batch key_heads slots width"],
    brought: Float[Tensor, "batch key_heads slots width"],
) -> Bool[Tensor, "batch before"]:
    """[i, j]: whether row i of a step brought, number for number, the keys of row j of before."""
    # Rows that share their last key may still differ before it: a word that two sentences end with.
    last = held[:, :, -1]
    alike = torch.stack([(last == row[:, -1]).flatten(1).all(1) for row in brought])
    for row, old in alike.nonzero().tolist():
        alike[row, old] = torch.equal(held[old], brought[row])
    return alike


def _parents(alike: Bool[Tensor, "batch before"]) -> Int[Tensor, " batch"] | None:
    """From which row each row of a step goes on: from itself where it may, else from the first."""
    if not bool(alike.any(1).all()):
        return None
    first = alike.to(torch.uint8).argmax(1)
    own = torch.arange(len(alike), device=alike.device)
    return torch.where(alike.diagonal(), own, first)


def _real(
    before: FactoredReading, step: FactoredReading, dropped: int
) -> Bool[Tensor, "batch slots"] | None:
    """Which slots of both are no padding; None where they contradict each other."""
    batch, _, _, slots = step.shape
    everything = torch.ones((), dtype=torch.bool, device=step.keys.device)
    mine = everything.expand(batch, slots) if step.real is None else step.real
    theirs = before.real
    if theirs is None:
        theirs = everything.expand(batch, before.shape[3])
    if not torch.equal(mine[:, : before.shape[3] - dropped], theirs[:, dropped:]):
        return None
    return torch.cat((theirs[:, :dropped], mine), 1)
