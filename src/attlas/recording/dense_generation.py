"""The steps of a generation whose weights are all that is known of them, put together."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.recording.generation import Growth, Rows, newest, parents_of
from attlas.recording.maps.base import Reading
from attlas.recording.maps.dense import DenseReading


class _Step(NamedTuple):
    """One call, and from which row of the step before each of its rows goes on; None = itself."""

    call: DenseReading
    parents: Int[Tensor, " batch"] | None


class StitchedWeights:
    """A map that grows by the weights of each step, put together when somebody asks."""

    def __init__(self, reading: DenseReading, heads: int | None = None) -> None:
        self._steps = [_Step(reading, None)]
        self._whole: DenseReading | None = reading
        self._heads = reading.shape[1] if heads is None else heads  # of the layer, kept or not
        self.queries, self.slots = reading.shape[2:]

    def reading(self) -> DenseReading:
        """What there is now, as one reading; it stays as it is when the map grows on."""
        if self._whole is None:
            self._whole = _put_together(self._steps, self.queries, self.slots)
            self._steps = [_Step(self._whole, None)]
        return self._whole

    def followed(
        self, step: DenseReading, growth: Growth | None, *, across: bool | None
    ) -> Rows | None:
        """From which rows those of a further call of the same cache go on; None where it does not.

        It goes on where its queries are the newest of its slots, behind all earlier ones, or where
        the slots are as many as before, of another text. across: which of the two it is, None =
        nobody knows. growth: what the same step has made of self-attention in other layers; no keys
        tell whether rows have changed places, or slots were cropped. Of one row the former is
        certain without.
        """
        _, heads, queries, slots = step.shape
        last = self._steps[-1].call
        if heads != self._heads or step.values.dtype != last.values.dtype:
            return None
        had = self.slots
        if growth is not None and growth.before == self.queries and across is not True:
            had -= growth.before - growth.kept
        grows = slots > had
        if grows and across is not True:
            step = newest(step)
        if slots - had not in (0, queries) or across is grows:
            return None
        if grows and (self._position + self.queries != self.slots or step.position != had):
            return None
        batch = step.shape[0]
        if growth is not None and growth.alike is None:
            return Rows(growth.parents)
        if batch != last.shape[0]:
            return None
        if batch == 1:
            return Rows(None)
        if growth is None or growth.alike is None or bool((growth.alike.sum(1) != 1).any()):
            return None
        return Rows.of(parents_of(growth.alike))

    def grow(self, step: DenseReading, rows: Rows, before: int) -> None:
        """One more call, which goes on from the first `before` queries of this."""
        if before < self.queries:  # cropped
            whole = self.reading()
            cropped = self.slots if step.shape[3] == self.slots else step.shape[3] - step.shape[2]
            self._steps = [_Step(_cut(whole, before, cropped), None)]
        if step.shape[3] > self._steps[0].call.shape[3] and len(self._steps) == 1:
            self._steps = [_Step(newest(self._steps[0].call), None)]
        self._steps.append(_Step(step, rows.parents))
        self.queries, self.slots = before + step.shape[2], step.shape[3]
        self._whole = None

    def filled(self) -> None:
        """Drop the room that a cache has made and not filled yet, behind the only call so far."""
        if len(self._steps) == 1:
            self._whole = filled(self.reading())
            self._steps, self.slots = [_Step(self._whole, None)], self._whole.shape[3]

    @property
    def _position(self) -> int:
        return newest(self._steps[0].call).position or 0


def followed(
    earlier: Reading,
    step: Reading,
    parents: Bool[Tensor, "batch before"] | None = None,
    *,
    across: bool | None = None,
) -> DenseReading | None:
    """The weights of a layer after one more step of the same cache; None where they do not go on.

    parents: from which row each row may have gone on, as other layers know; see `StitchedWeights`.
    """
    if not isinstance(earlier, DenseReading) or not isinstance(step, DenseReading):
        return None
    together = StitchedWeights(earlier)
    if across is False:
        together.filled()
        step = filled(step)
    queries = together.queries
    growth = parents if parents is None else Growth(queries, queries, queries, None, parents)
    rows = together.followed(step, growth, across=across)
    if rows is None:
        return None
    together.grow(step, rows, queries)
    return together.reading()


def _put_together(steps: list[_Step], queries: int, slots: int) -> DenseReading:
    """One reading of all steps, in the order of the rows of the last of them."""
    rows: Tensor | None = None
    ordered = [steps[-1].call]
    for place in range(len(steps) - 1, 0, -1):
        parents = steps[place].parents
        if parents is not None:
            rows = parents if rows is None else parents[rows]
        call = steps[place - 1].call
        ordered.append(call if rows is None else call.select(rows))
    ordered.reverse()
    first = ordered[0]
    batch, heads = ordered[-1].shape[:2]
    values = first.values.new_zeros(batch, heads, queries, slots)
    said = any(one.allowed is not None for one in ordered) or first.shape[3] != slots
    shown = [one.seen(0, one.shape[2]) for one in ordered] if said else []
    sizes = [max((one.shape[axis] for one in shown), default=1) for axis in (0, 1)]
    allowed = torch.zeros(*sizes, queries, slots, dtype=torch.bool, device=values.device)
    at = 0
    for place, one in enumerate(ordered):
        count, width = one.shape[2:]
        values[:, :, at : at + count, :width] = one.values
        if said:
            allowed[:, :, at : at + count, :width] = shown[place]
        at += count
    return replace(first, values=values, allowed=allowed if said else None, first=first.position)


def _cut(reading: DenseReading, queries: int, slots: int) -> DenseReading:
    allowed = reading.allowed
    if allowed is not None:
        allowed = allowed.expand(-1, -1, *reading.shape[2:])[:, :, :queries, :slots]
    values = reading.values[:, :, :queries, :slots]
    return replace(reading, values=values, allowed=allowed, first=reading.position)


def filled(reading: DenseReading) -> DenseReading:
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
