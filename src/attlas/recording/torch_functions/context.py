"""The context of tracking: active listeners, and facts about tensors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedError
from attlas.recording.hooks import AttentionHook, CallSite, Listener, listeners
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap, without_position
from attlas.recording.torch_functions.call_site import (
    find_call_site,
    outermost_call,
    running_inputs,
)
from attlas.recording.torch_functions.contents import Content, Contents
from attlas.recording.torch_functions.heads import Folds, heads_named
from attlas.recording.torch_functions.masks import MaskSpecCache, drop_last_keys
from attlas.recording.torch_functions.origins import Origins
from attlas.recording.torch_functions.provenance import (
    PendingMap,
    ProductInfo,
    Provenance,
    ScoreInfo,
    WeightInfo,
)
from attlas.recording.torch_functions.tensors import memory

ListenerSites = Sequence[tuple[Listener, CallSite]]
Handler = Callable[["TrackingContext", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Runs a function of torch with its arguments, and makes something of it."""


class TrackingContext:
    """The listeners of this thread, and what is known of the tensors at hand."""

    def __init__(self) -> None:
        self.provenance = Provenance()
        self.origins = Origins()
        self.mask_specs = MaskSpecCache(self.provenance.versions)
        self.folds = Folds()
        self.contents = Contents(self.provenance.versions)
        self.seen = 0  # how many attentions there were, wanted or not
        self.extra_keys = 0  # how many keys are no keys of the text, in the call at hand
        self.unconfirmed = True  # whether a recorder may not know yet that a model runs
        self.in_kernel = False  # whether a kernel that transformers calls by name is at work

    def call_sites(self) -> ListenerSites:
        """Who listens to the module that is at work, and where it is for them.

        Layers of attlas speak for themselves; what they call is theirs.
        """
        sites = [
            (listener, site)
            for listener in listeners()
            if listener.modules and (site := find_call_site(listener.modules)) is not None
        ]
        return [pair for pair in sites if not _is_attlas_layer(pair[1].module)]

    def heads_named(self) -> int | None:
        """How many heads the module that is at work says that it has."""
        call_sites = self.call_sites()
        return heads_named(call_sites[0][1].module) if call_sites else None

    def interested(self, refused: Callable[[CallSite], str | None] | None = None) -> ListenerSites:
        """The same of those who want the attention that happens there, or to change it.

        Args:
            refused: Why no attention map is made of what happens at a place; for every recorder.
        """
        self.seen += 1
        call_sites = self.call_sites()
        reason = refused(call_sites[0][1]) if refused is not None and call_sites else None
        if reason is not None:
            self._record_unreadable(call_sites, reason)
            return []
        self.origins.begin(*outermost_call())
        return [
            (listener, site)
            for listener, site in call_sites
            if listener.patch
            or (
                listener.recorder
                and not _is_recomputation()
                and listener.recorder.is_selected(site.path)
            )
        ]

    def deliver(
        self,
        sites: ListenerSites,
        attention_map: AttentionMap,
        input_ids: tuple[int, int, int] | None,
        before_call: int | None = None,
        content: Content | None = None,
    ) -> None:
        """Give an attention map to every listener, without keys that no text has.

        Args:
            input_ids: The identities of queries, keys and values. None = not known.
            before_call: The call before which the tensors had these identities.
            content: What the keys hold. None = not known.
        """
        if self.extra_keys and any(listener.recorder for listener, _ in sites):
            attention_map, content = drop_last_keys(attention_map, self.extra_keys), None
        if content is not None and isinstance(attention_map, FactoredAttentionMap):
            heads, num_kv_heads = attention_map.query.shape[1], attention_map.keys.shape[1]
            content = content.once() if num_kv_heads * content.repeats == heads else content
        for listener, site in sites:
            if listener.recorder and not _is_recomputation():
                doubted = self._doubts(site, attention_map, input_ids, before_call)
                delivered = without_position(attention_map) if doubted else attention_map
                related = self._with_kind(site, input_ids, before_call)
                placed = self._with_position(related, delivered, input_ids, before_call)
                listener.recorder.record_call(placed, delivered, content)

    def _with_kind(
        self, site: CallSite, input_ids: tuple[int, int, int] | None, before_call: int | None
    ) -> CallSite:
        """The same place, with what the origin of queries and keys says of their relation."""
        if input_ids is None:
            return site
        verdict = self.origins.relation(
            *input_ids,
            running_inputs(site.module),
            before_call=before_call,
            cached=site.cache is not None,
            cross_by_name=site.cross_attention,
        )
        if verdict == "unknown":
            return site
        cross_attention = None if verdict == "neither" else verdict == "cross"
        return replace(site, cross_attention=cross_attention, is_final=True)

    def _with_position(
        self,
        site: CallSite,
        attention_map: AttentionMap,
        input_ids: tuple[int, int, int] | None,
        before_call: int | None,
    ) -> CallSite:
        """The same place, with what the origin of queries and keys says of where queries stand."""
        if attention_map.position is not None or site.cache is not None:
            return site
        batch, _, queries, num_keys = attention_map.shape
        cross_attention = site.is_cross_attention(batch, queries, num_keys)
        if input_ids is None:  # a product of learned queries, which is taken for a projection, say
            return replace(site, position_unknown=bool(cross_attention))
        query, key, _ = input_ids
        if cross_attention:
            return replace(site, position_unknown=self.origins.is_learned(query, before_call))
        if queries != num_keys:
            find_position = partial(
                self.origins.first_of, query, key, (queries, num_keys), before_call
            )
            return replace(
                site, first_query_position=cache(find_position)
            )  # each earlier call may ask it
        return replace(
            site, position_unknown=not self.origins.in_order(query, key, queries, before_call)
        )

    def _doubts(
        self,
        site: CallSite,
        attention_map: AttentionMap,
        input_ids: tuple[int, int, int] | None,
        before_call: int | None,
    ) -> bool:
        """Return True if a mask says that queries stand elsewhere than where they were taken from a
        text.

        Some rows of a window that looks ahead, without the ends of the text, look as those of later
        queries that look back do.
        """
        queries, num_keys = attention_map.shape[2:]
        is_placed = attention_map.position is None or site.cache is not None
        if is_placed or input_ids is None or queries == num_keys:
            return False
        first = self.origins.first_of(*input_ids[:2], (queries, num_keys), before_call)
        return first is not None and first != attention_map.position

    @contextmanager
    def with_extra_keys(self, keys: int) -> Iterator[None]:
        """For the length of a block, so many keys behind the keys are none."""
        previous, self.extra_keys = self.extra_keys, keys
        try:
            yield
        finally:
            self.extra_keys = previous

    def expect_attention(
        self, scores: ScoreInfo | None, loose: ProductInfo | None = None
    ) -> PendingMap:
        """A softmax was taken, which may be attention: the recorders that are notified wait for it.

        Args:
            scores, loose: Of what, where that is known; of two tensors that are no parameters it
                surely is.
        """
        factors = loose.factors if loose is not None else ()
        if scores is not None:
            factors = (memory(scores.right),)
        pending = PendingMap(factors=factors)
        for listener, site in [] if _is_recomputation() else self.call_sites():
            if listener.recorder:
                is_certain = bool(factors) and not _has_parameters_at(factors, site.module)
                listener.recorder.expect_attention(site, is_certain)
                pending.callbacks.append(
                    partial(listener.recorder.confirm_attention, site, is_certain)
                )
        return pending

    def note_matrix(self) -> None:
        """A softmax was taken of two axes, which may not be queries and keys."""
        for listener, site in [] if _is_recomputation() else self.call_sites():
            if listener.recorder:
                listener.recorder.note_matrix(site)

    def reads_values(self, info: WeightInfo, weights: Tensor, values: Tensor) -> bool:
        """Return True if these are the values of weights, and not rows that are the same for every
        text.

        Such tables have fewer axes than the weights, or are learnt; where the weights are surely of
        queries and keys, what they are multiplied with are values all the same.
        """
        learnt = isinstance(values, nn.Parameter)
        if not learnt and (values.ndim > 2 or values.ndim == weights.ndim):
            return True
        call_sites = self.call_sites()
        if not call_sites:
            return False
        module, address = call_sites[0][1].module, memory(values)
        state = (*module.parameters(), *module.buffers())
        learnt = learnt or (address != 0 and any(memory(source) == address for source in state))
        if not learnt and values.ndim == 2:
            return True
        sources = info.pending.sources or (info.pending,)
        known_factors = (source.factors for source in sources if source.factors)
        return any(not _has_parameters_at(factors, module) for factors in known_factors)

    def record_unreadable(self, reason: str) -> None:
        """Attention happened of which no attention map can be made: notify all recorders.

        Raises:
            UnsupportedError: If an intervention wants to change it.
        """
        self.seen += 1
        self._record_unreadable(self.call_sites(), reason)

    def _record_unreadable(self, call_sites: ListenerSites, reason: str) -> None:
        for listener, site in call_sites:
            if listener.patch:
                raise UnsupportedError(
                    f"attention that can be changed, in layer {site.path!r}",
                    reason,
                    "intervene where attlas can read",
                )
            if listener.recorder and not _is_recomputation():
                listener.recorder.record_unreadable(site, reason)

    def patch_function(self, sites: ListenerSites) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Every intervention in turn, as one function of weights and what is seen; None = none."""
        patches = [(listener.patch, site) for listener, site in sites if listener.patch]
        if not patches:
            return None

        def patch_function(weights: Tensor, allowed: Tensor) -> Tensor:
            for patch, site in patches:
                weights = patch(weights, allowed, site.path)
            return weights

        return patch_function

    def mark_running(self) -> None:
        """Note that a model runs, until that is known of all that are listened to."""
        self.unconfirmed = False
        for listener in listeners():
            if listener.recorder and not listener.recorder.has_run:
                listener.recorder.has_run = find_call_site(listener.modules) is not None
                self.unconfirmed |= not listener.recorder.has_run


def _is_recomputation() -> bool:
    """Return True if a backward pass computes anew what gradient checkpointing has let go."""
    return torch._C._current_graph_task_id() != -1


def _has_parameters_at(factors: tuple[int, ...], module: nn.Module) -> bool:
    """Return True if the numbers of a parameter of the module, such as a table of words, lie
    there.
    """
    modules = [module]
    while modules:
        module = modules.pop()
        parameters = module._parameters.values()
        if any(tensor is not None and memory(tensor) in factors for tensor in parameters):
            return True
        modules += [child for child in module._modules.values() if child is not None]
    return False


def _is_attlas_layer(module: nn.Module) -> bool:
    return any(isinstance(child, AttentionHook) for child in module.children())
