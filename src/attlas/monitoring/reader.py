"""The reader of a forward pass: statistics of each attention call while it happens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attlas.monitoring.precision import context_errors
from attlas.monitoring.statistics import Array, LayerTotals, totals_of
from attlas.recording import AttentionMap, Trace
from attlas.recording.generation import with_cross_position, with_position
from attlas.recording.hooks import CallSite, Listener, attention_hooks, listening, modules_of
from attlas.recording.maps.factored import FactoredAttentionMap
from attlas.recording.padding import query_mask, token_mask_of
from attlas.recording.recorder import Recorder
from attlas.recording.torch_functions.mode import tracking_attention

TokenMask = Bool[Tensor, "batch queries"]


@dataclass(eq=False)
class PendingSteps:
    """What each key has received so far from calls of one query each, as a recurrent decoder makes
    them: together they are one text.
    """

    received: Array
    queries: Array


@dataclass(eq=False, slots=True)
class StatisticsRecorder(Recorder):
    """Takes the statistics of each call at once, and keeps no map.

    Args:
        masks: The tokens of the texts whose queries look, where the masks of attention do not say
            it: of causal self-attention and of cross-attention, by their shape.
    """

    masks: Sequence[TokenMask] = ()
    _totals: dict[str, LayerTotals] = field(default_factory=dict)
    _pending: dict[str, PendingSteps] = field(default_factory=dict)
    _self_masks: dict[str, TokenMask] = field(default_factory=dict)
    _steps: dict[str, int] = field(default_factory=dict)
    _last: tuple[str, FactoredAttentionMap, TokenMask] | None = None

    def record_call(self, site: CallSite, attention_map: AttentionMap, content: Any = None) -> None:
        """One call at this place."""
        batch, _, queries, num_keys = attention_map.shape
        cross_attention = site.is_cross_attention(batch, queries, num_keys)
        site = replace(site, cross_attention=cross_attention)
        self._add(site.path, with_position(attention_map, site), cross_attention)

    def record(self, path: str, attention_map: AttentionMap, cross_attention: bool | None) -> None:
        """One call of a layer that speaks for itself."""
        self.called_layers.add(path)
        if cross_attention and attention_map.shape[2] > 1:
            attention_map = with_cross_position(attention_map)
        mask = self._add(path, attention_map, cross_attention)
        self._last = None
        if isinstance(attention_map, FactoredAttentionMap):
            self._last = path, attention_map, mask

    def compare(self, path: str, context: Tensor, values: Tensor) -> None:
        """What the layer of the call that was recorded last has read, and of which values."""
        last, self._last = self._last, None
        if last is None or last[0] != path or 0 in (context.numel(), values.numel()):
            return
        with torch.no_grad(), torch._C.DisableTorchFunction():
            errors = context_errors(last[1], context, values, last[2])
        self._totals[path] = self._totals[path].with_context_errors(errors)

    def totals(self) -> dict[str, LayerTotals]:
        """The totals of each layer, in the order of their first calls."""
        self._last = None
        for path in list(self._pending):
            self._end_steps(path)
        return self._totals

    def _add(
        self, path: str, attention_map: AttentionMap, cross_attention: bool | None
    ) -> TokenMask:
        """The queries that count."""
        # What is computed here is no attention of the model.
        with torch.no_grad(), torch._C.DisableTorchFunction():
            own_mask = query_mask(
                attention_map, token_mask_of(attention_map), cross_attention=cross_attention
            )
            mask = self._query_mask(path, attention_map, own_mask, cross_attention)
            totals, received, queries = totals_of(
                attention_map, mask, own_mask, cross_attention=cross_attention
            )
        if path in self._totals:
            totals = self._totals[path].merge(totals, path)
        self._totals[path] = totals
        pending = self._pending.get(path)
        single = attention_map.shape[2] == 1
        if pending is not None and single and pending.received.shape == received.shape:
            pending.received += received
            pending.queries += queries
            return mask
        self._end_steps(path)
        if single:
            self._pending[path] = PendingSteps(received, queries)
        else:
            self._totals[path] = totals.with_received(received, queries)
        return mask

    def _end_steps(self, path: str) -> None:
        pending = self._pending.pop(path, None)
        if pending is not None:
            self._totals[path] = self._totals[path].with_received(pending.received, pending.queries)

    def _query_mask(
        self, path: str, attention_map: AttentionMap, mask: TokenMask, cross_attention: bool | None
    ) -> TokenMask:
        """The queries of tokens: as the map says, or a mask that was given, or self-attention of
        the same block.
        """
        batch, _, queries, num_keys = attention_map.shape
        is_self = not cross_attention and queries == num_keys
        if bool(mask.all()):
            given = self._given_masks(path, batch, queries)
            if given and (queries == 1 or cross_attention or (is_self and attention_map.causal)):
                mask = given[0].to(mask.device)
            elif cross_attention:
                found = self._mask_beside(path, (batch, queries))
                mask = mask if found is None else found.to(mask.device)
        if is_self:
            self._self_masks[path] = mask
        return mask

    def _given_masks(self, path: str, batch: int, queries: int) -> list[TokenMask]:
        """The masks that were given for so many queries; of a call of one query, which is a step,
        its column.
        """
        found = [mask for mask in self.masks if tuple(mask.shape) == (batch, queries)]
        if queries > 1 or found:
            return found
        step = self._steps.get(path, 0)
        self._steps[path] = step + 1
        return [
            mask[:, step : step + 1]
            for mask in self.masks
            if mask.shape[0] == batch and step < mask.shape[1]
        ]

    def _mask_beside(self, path: str, shape: tuple[int, int]) -> TokenMask | None:
        """The queries of tokens in self-attention of the same block; None = there is none."""
        for other, mask in self._self_masks.items():
            if tuple(mask.shape) == shape and _same_block(path, other):
                return mask
        return None


def _same_block(first: str, second: str) -> bool:
    """Return True if two layers have the same parent, or the same numbered ancestor."""
    a, b = first.split("."), second.split(".")
    shared = [x for x, y in zip(a, b, strict=False) if x == y]
    prefix = shared == a[: len(shared)]
    return prefix and (len(shared) == len(a) - 1 or any(part.isdigit() for part in shared))


def is_recomputation() -> bool:
    """Return True in a backward pass, where activation checkpointing computes a forward anew."""
    return bool(torch._C._current_graph_task_id() != -1)


@contextmanager
def recorded_statistics(
    model: nn.Module, masks: Sequence[TokenMask] = ()
) -> Iterator[StatisticsRecorder]:
    """Read every attention call of `model` in this thread, for the length of a block."""
    recorder = StatisticsRecorder(Trace(), masks=masks)
    listener = Listener(
        attention_hooks(model),
        recorder.record,
        modules=modules_of(model),
        recorder=recorder,
        compare=recorder.compare,
    )
    with listening(listener), tracking_attention(model):
        yield recorder
