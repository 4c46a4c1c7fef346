"""Join the steps of a generation of which only the weights are known."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.recording.generation import MapGrowth, RowParents, parents_of, with_newest_queries
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap


class _Step(NamedTuple):
    """One call, and from which row of the step before each of its rows goes on; None = itself."""

    call: DenseAttentionMap
    parents: Int[Tensor, " batch"] | None


class GrowingDenseMap:
    """A map that grows by the weights of each step, and is assembled on request."""

    def __init__(self, attention_map: DenseAttentionMap, heads: int | None = None) -> None:
        self._steps = [_Step(attention_map, None)]
        self._whole: DenseAttentionMap | None = attention_map
        self._heads = (
            attention_map.shape[1] if heads is None else heads
        )  # of the layer, kept or not
        self.queries, self.num_keys = attention_map.shape[2:]

    def attention_map(self) -> DenseAttentionMap:
        """The present map; it does not change when the generation continues."""
        if self._whole is None:
            self._whole = _put_together(self._steps, self.queries, self.num_keys)
            self._steps = [_Step(self._whole, None)]
        return self._whole

    def followed(
        self, step: DenseAttentionMap, growth: MapGrowth | None, *, cross_attention: bool | None
    ) -> RowParents | None:
        """From which rows the rows of the next call of the same cache continue; None if it does not
        continue this map.

        It continues if its queries are the newest of its keys, after all earlier ones; or, in
        cross-attention, if it has as many keys as before.

        Args:
            cross_attention: Which of the two it is, None = unknown.
            growth: What the same step has made of self-attention in other layers; no keys tell
                whether rows have changed places, or keys were cropped. Of one row the former is
                certain without.
        """
        _, heads, queries, num_keys = step.shape
        last = self._steps[-1].call
        if heads != self._heads or step.values.dtype != last.values.dtype:
            return None
        had = self.num_keys
        if growth is not None and growth.before == self.queries and cross_attention is not True:
            had -= growth.before - growth.kept
        grows = num_keys > had
        if grows and cross_attention is not True:
            step = with_newest_queries(step)
        if num_keys - had not in (0, queries) or cross_attention is grows:
            return None
        if grows and (self._position + self.queries != self.num_keys or step.position != had):
            return None
        batch = step.shape[0]
        if growth is not None and growth.alike is None:
            return RowParents(growth.parents)
        if batch != last.shape[0]:
            return None
        if batch == 1:
            return RowParents(None)
        if growth is None or growth.alike is None or bool((growth.alike.sum(1) != 1).any()):
            return None
        return RowParents.of(parents_of(growth.alike))

    def grow(self, step: DenseAttentionMap, rows: RowParents, num_queries: int) -> None:
        """One more call, which goes on from the first `num_queries` queries of this."""
        if num_queries < self.queries:  # cropped
            attention_map = self.attention_map()
            cropped = (
                self.num_keys if step.shape[3] == self.num_keys else step.shape[3] - step.shape[2]
            )
            self._steps = [_Step(_crop(attention_map, num_queries, cropped), None)]
        if step.shape[3] > self._steps[0].call.shape[3] and len(self._steps) == 1:
            self._steps = [_Step(with_newest_queries(self._steps[0].call), None)]
        self._steps.append(_Step(step, rows.parents))
        self.queries, self.num_keys = num_queries + step.shape[2], step.shape[3]
        self._whole = None

    def filled(self) -> None:
        """Drop the room that a cache has made and not filled yet, behind the only call so far."""
        if len(self._steps) == 1:
            self._whole = filled(self.attention_map())
            self._steps, self.num_keys = [_Step(self._whole, None)], self._whole.shape[3]

    @property
    def _position(self) -> int:
        return with_newest_queries(self._steps[0].call).position or 0


def followed(
    earlier: AttentionMap,
    step: AttentionMap,
    parents: Bool[Tensor, "batch before"] | None = None,
    *,
    cross_attention: bool | None = None,
) -> DenseAttentionMap | None:
    """The weights of a layer after one more step of the same cache; None if the step does not
    continue them.

    Args:
        parents: From which row each row may have gone on, as other layers know; see
            `GrowingDenseMap`.
    """
    if not isinstance(earlier, DenseAttentionMap) or not isinstance(step, DenseAttentionMap):
        return None
    joined = GrowingDenseMap(earlier)
    if cross_attention is False:
        joined.filled()
        step = filled(step)
    queries = joined.queries
    growth = parents if parents is None else MapGrowth(queries, queries, queries, None, parents)
    rows = joined.followed(step, growth, cross_attention=cross_attention)
    if rows is None:
        return None
    joined.grow(step, rows, queries)
    return joined.attention_map()


def _put_together(steps: list[_Step], queries: int, num_keys: int) -> DenseAttentionMap:
    """One attention map of all steps, in the order of the rows of the last of them."""
    rows: Tensor | None = None
    calls = [steps[-1].call]
    for index in range(len(steps) - 1, 0, -1):
        parents = steps[index].parents
        if parents is not None:
            rows = parents if rows is None else parents[rows]
        call = steps[index - 1].call
        calls.append(call if rows is None else call.select(rows))
    calls.reverse()
    first = calls[0]
    batch, heads = calls[-1].shape[:2]
    values = first.values.new_zeros(batch, heads, queries, num_keys)
    has_mask = any(step.allowed is not None for step in calls) or first.shape[3] != num_keys
    shown = [step.allowed_rows(0, step.shape[2]) for step in calls] if has_mask else []
    sizes = [max((step.shape[axis] for step in shown), default=1) for axis in (0, 1)]
    allowed = torch.zeros(*sizes, queries, num_keys, dtype=torch.bool, device=values.device)
    offset = 0
    for index, step in enumerate(calls):
        count, width = step.shape[2:]
        values[:, :, offset : offset + count, :width] = step.values
        if has_mask:
            allowed[:, :, offset : offset + count, :width] = shown[index]
        offset += count
    return replace(
        first, values=values, allowed=allowed if has_mask else None, query_offset=first.position
    )


def _crop(attention_map: DenseAttentionMap, queries: int, num_keys: int) -> DenseAttentionMap:
    allowed = attention_map.allowed
    if allowed is not None:
        allowed = allowed.expand(-1, -1, *attention_map.shape[2:])[:, :, :queries, :num_keys]
    values = attention_map.values[:, :, :queries, :num_keys]
    return replace(
        attention_map, values=values, allowed=allowed, query_offset=attention_map.position
    )


def filled(attention_map: DenseAttentionMap) -> DenseAttentionMap:
    """The attention map without the room that a cache has made and not filled yet, behind its
    queries."""
    query_offset = attention_map.position
    if query_offset is None:
        return attention_map
    end = query_offset + attention_map.shape[2]
    if end >= attention_map.shape[3] or bool(attention_map.values[..., end:].any()):
        return attention_map
    allowed = attention_map.allowed
    if allowed is not None and allowed.shape[3] > 1:
        allowed = allowed[..., :end]
    return replace(
        attention_map,
        values=attention_map.values[..., :end],
        allowed=allowed,
        query_offset=query_offset,
    )
