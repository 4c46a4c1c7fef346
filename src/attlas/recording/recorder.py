"""The recorder: fills a trace, joins the steps of generations, and reports what could not be
read.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from weakref import ref

from torch import Tensor

from attlas.recording.dense_generation import GrowingDenseMap, filled
from attlas.recording.generation import (
    GrowingFactoredMap,
    MapGrowth,
    MapLink,
    MapPart,
    trim_keys_to,
    trim_single_query,
    with_cross_position,
    with_newest_queries,
    with_position,
)
from attlas.recording.hooks import CallSite
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap
from attlas.recording.torch_functions.contents import Content
from attlas.recording.trace import GrowingMap, Selection, Trace

_NOT_MULTIPLIED = (
    "a softmax that is not multiplied with values by a product over its keys; weights of sampled "
    "points (deformable attention) are such, as they have no axis of keys"
)
_NOT_FOLLOWED = "a softmax of the product of two tensors, without a product with values after it"


@dataclass(eq=False, slots=True)
class Recorder:
    """Fills a trace. A step that continues an earlier call is appended to it.

    Args:
        last_calls: How many calls of each layer are kept, the newest; None = all.
        has_run: Whether a module of the model was at work at all.
        called_layers: The paths of all layers with attention, kept or not.
        softmaxed: Those of all modules that took a softmax.
        matrices: Those that took one of two axes, which count as texts and classes.
    """

    trace: Trace
    selection: Selection = field(default_factory=Selection)
    last_calls: int | None = None
    has_run: bool = False
    called_layers: set[str] = field(default_factory=set)
    softmaxed: set[str] = field(default_factory=set)
    matrices: set[str] = field(default_factory=set)
    _calls: "dict[str, list[_Call]]" = field(default_factory=dict)
    _growth: "_Step | None" = None
    _num_recorded: int = 0
    _unreadable: Counter[tuple[str, str]] = field(default_factory=Counter)  # by path and reason

    def is_selected(self, path: str) -> bool:
        """Return True if the attention map of a layer that looks is to be kept."""
        self.called_layers.add(path)
        return self.selection.is_selected(path)

    def record_call(
        self, site: CallSite, attention_map: AttentionMap, content: Content | None = None
    ) -> None:
        """One more call at this place.

        Args:
            content: What its keys hold, where that is known.
        """
        batch, _, queries, num_keys = attention_map.shape
        site = replace(site, cross_attention=site.is_cross_attention(batch, queries, num_keys))
        path, cache = site.path, site.cache
        if site.cross_attention is not None:
            self.trace.set_kind(path, cross_attention=site.cross_attention)
        attention_map = with_position(attention_map, site)
        if site.cross_attention is False and cache is not None:
            attention_map = trim_single_query(attention_map)
        self._num_recorded += 1
        calls = self._calls.setdefault(path, [])
        goes_on = (
            attention_map.shape[2] < attention_map.shape[3]
            or cache is not None
            or self._is_growing()
        )
        if goes_on and calls and self._extends_earlier_call(site, attention_map, content):
            return
        full_map = self.selection.select_heads(attention_map, path).detached_copy()
        growing_map: GrowingFactoredMap | GrowingDenseMap | None = None
        if isinstance(attention_map, FactoredAttentionMap) and isinstance(
            full_map, FactoredAttentionMap
        ):
            growing_map = GrowingFactoredMap(full_map, content, attention_map)
        elif isinstance(full_map, DenseAttentionMap):
            growing_map = GrowingDenseMap(full_map, attention_map.shape[1])
        inner_part = _is_inner_part(site, attention_map)
        self._begin(
            path, cache, full_map if growing_map is None else growing_map, inner_part=inner_part
        )
        if len(calls) > 1:
            self.trace.add_split_reason(path, _split_reason(site, attention_map))

    def _is_growing(self) -> bool:
        """Return True if self-attention of another layer has just gone on, in the same step."""
        return self._growth is not None

    def _begin(
        self,
        path: str,
        cache: Any,
        growing_map: GrowingFactoredMap | GrowingDenseMap | AttentionMap,
        *,
        inner_part: bool = False,
    ) -> None:
        calls = self._calls[path]
        calls.append(_Call(_weak_getter(cache), growing_map, self._num_recorded, inner_part))
        self._keep(path, growing_map)
        del calls[: len(calls) - len(self.trace.growing_calls(path))]

    def _extends_earlier_call(
        self, site: CallSite, attention_map: AttentionMap, content: Content | None
    ) -> bool:
        """Return True if a call goes on from an earlier one, to which it is added then."""
        cropped: list[tuple[_Call, FactoredAttentionMap, MapLink]] = []
        for call in reversed(self._calls[site.path]):
            same_cache = site.cache is not None and call.cache() is site.cache
            if isinstance(attention_map, FactoredAttentionMap) and isinstance(
                call.kept, GrowingFactoredMap
            ):
                if site.cross_attention is not True and not call.inner_part:
                    step, link = self._find_link(site, call.kept, attention_map, content)
                    if link is not None and not call.kept.num_cropped(step, link):
                        self._grow(site, call, step, link, content)
                        return True
                    if link is not None:
                        cropped.append((call, step, link))
                asks = site.cross_attention is not False
                if asks and self._extends_cross_attention(
                    site, call, attention_map, content, same_cache=same_cache
                ):
                    return True
            elif isinstance(attention_map, DenseAttentionMap) and self._extends_weights(
                site, call, attention_map, same_cache=same_cache
            ):
                return True
        return bool(cropped) and self._extends_cropped_call(site, cropped, content)

    def _find_link(
        self,
        site: CallSite,
        growing_map: GrowingFactoredMap,
        attention_map: FactoredAttentionMap,
        content: Content | None,
    ) -> tuple[FactoredAttentionMap, MapLink | None]:
        path, cache = site.path, site.cache
        # Where the positions of the first call's queries are unknown, all may look ahead.
        inner_part = not growing_map.has_position and _is_inner_part(site, attention_map)
        attention_map = with_newest_queries(attention_map)
        with growing_map.as_cached_step() as links:
            num_keys = growing_map.num_keys + attention_map.shape[2]
            if content is not None:
                num_keys = content.stop - content.start
            step = trim_keys_to(attention_map, num_keys)
            crops = cache is not None
            link = growing_map.find_link(
                step, content, lambda map_: self._part(map_, path), crops=crops
            )
            link = None if inner_part else link
            links += [] if link is None else [link]
        return step, link

    def _part(self, attention_map: FactoredAttentionMap, path: str) -> FactoredAttentionMap:
        selected = self.selection.select_heads(attention_map, path)
        assert isinstance(selected, FactoredAttentionMap)
        return selected

    def _piece(self, path: str, call: FactoredAttentionMap, new: int) -> MapPart:
        """What is kept of a call whose last `new` keys are new."""

        def part(
            bare: FactoredAttentionMap, bias: Tensor | None
        ) -> tuple[FactoredAttentionMap, Any]:
            return self._part(bare, path), self.selection.select_bias_heads(bias)

        return MapPart.of(call, new, None if self.selection.heads is None else part)

    def _grow(
        self,
        site: CallSite,
        call: "_Call",
        step: FactoredAttentionMap,
        link: MapLink,
        content: Content | None,
    ) -> None:
        growing_map = call.kept
        assert isinstance(growing_map, GrowingFactoredMap)
        num_queries, queries = growing_map.queries_before_crop, step.shape[2]
        growing_map.grow(self._piece(site.path, step, queries), link, content)
        growth = MapGrowth(
            num_queries,
            growing_map.queries - queries,
            growing_map.queries,
            link.parents,
            link.alike,
        )
        call.last_recorded = self._num_recorded
        self._growth = _Step(_weak_getter(site.cache), growth, self._num_recorded, growing_map)

    def _extends_cropped_call(
        self,
        site: CallSite,
        cropped: list[tuple["_Call", FactoredAttentionMap, MapLink]],
        content: Content | None,
    ) -> bool:
        """A call that goes on from a part of an earlier one, whose cache was cropped or copied.

        Where candidates of the newest call were taken back, as in a search that guesses ahead, they
        go from the map. What goes back further, or another cache that begins alike, is a map of its
        own that begins as the earlier one does.
        """
        for call, step, link in cropped:
            growing_map, cache = call.kept, call.cache()
            assert isinstance(growing_map, GrowingFactoredMap)
            newest_key = (
                growing_map.num_keys - growing_map.num_cropped(step, link) > growing_map.newest_key
            )
            if newest_key and (cache is site.cache or cache is None):
                self._grow(site, call, step, link, content)
                return True
        call, step, link = cropped[0]
        growing_map = call.kept
        assert isinstance(growing_map, GrowingFactoredMap)
        num_queries, branch = (
            growing_map.queries_before_crop,
            _Call(_weak_getter(site.cache), growing_map.branch(), self._num_recorded),
        )
        self._grow(site, branch, step, link, content)
        assert self._growth is not None
        growth = self._growth.growth._replace(before=num_queries, branched=True)
        self._growth = self._growth._replace(growth=growth)
        self._begin(site.path, site.cache, branch.kept)
        self.trace.add_split_reason(site.path, _BRANCHED)
        return True

    def _extends_cross_attention(
        self,
        site: CallSite,
        call: "_Call",
        attention_map: FactoredAttentionMap,
        content: Content | None,
        *,
        same_cache: bool,
    ) -> bool:
        """Return True if a call asks the source of an earlier one again, in the same generation."""
        growth = self._growth_of(site, call, attention_map.shape[2])
        growing_map = call.kept
        if not isinstance(growing_map, GrowingFactoredMap) or not (
            same_cache or growth is not None
        ):
            return False
        path = site.path
        rows = growing_map.find_parents(
            attention_map, content, growth, lambda map_: self._part(map_, path)
        )
        if rows is None:
            return False
        piece = self._piece(path, attention_map, 0)
        num_queries = (
            growing_map.queries if growth is None else min(growth.kept, growing_map.queries)
        )
        if growth is not None and growth.branched:
            growing_map = growing_map.branch()
            self._begin(path, site.cache, growing_map)
            self.trace.add_split_reason(path, _BRANCHED)
        growing_map.append_cross_queries(piece, rows.parents, num_queries, content)
        growing_map.follow_self_attention(
            None if self._growth is None or growth is None else self._growth.kept
        )
        call.last_recorded = self._num_recorded
        return True

    def _extends_weights(
        self, site: CallSite, call: "_Call", attention_map: DenseAttentionMap, *, same_cache: bool
    ) -> bool:
        """Return True if weights go on from those of an earlier call, in the same generation."""
        growth = self._growth_of(site, call, attention_map.shape[2])
        growing_map = call.kept
        if not isinstance(growing_map, GrowingDenseMap) or not (same_cache or growth is not None):
            return False
        if growth is not None and growth.branched:
            return False
        if site.cross_attention is False:
            growing_map.filled()
            attention_map = filled(attention_map)
        rows = growing_map.followed(attention_map, growth, cross_attention=site.cross_attention)
        if rows is None:
            return False
        num_queries = (
            growing_map.queries if growth is None else min(growth.kept, growing_map.queries)
        )
        piece = self.selection.select_heads(attention_map, site.path).detached_copy()
        assert isinstance(piece, DenseAttentionMap)
        growing_map.grow(piece, rows, num_queries)
        call.last_recorded = self._num_recorded
        return True

    def _growth_of(self, site: CallSite, call: "_Call", queries: int) -> MapGrowth | None:
        """What the step at hand has made of self-attention, where an earlier call has as many
        queries as that had; None = not known."""
        known_growth = self._growth
        if known_growth is None or call.kept is None or isinstance(call.kept, AttentionMap):
            return None
        cache = known_growth.cache()
        if site.cache is not None or cache is not None:
            if cache is not site.cache:
                return None
        elif known_growth.last_recorded < call.last_recorded:
            return None  # of a step before
        growth = known_growth.growth
        fits = growth.after - growth.kept == queries
        prepared = (
            call.kept.queries_before_crop
            if isinstance(call.kept, GrowingFactoredMap)
            else call.kept.queries
        )
        return growth if fits and prepared in (growth.before, growth.kept) else None

    def record(self, path: str, attention_map: AttentionMap, cross_attention: bool | None) -> None:
        """One more call of a layer that spoke for itself."""
        if self.is_selected(path):
            if cross_attention is not None:
                self.trace.set_kind(path, cross_attention=cross_attention)
            attention_map = self.selection.select_heads(attention_map, path)
            # A single query may be a step of many, or a learned one, if it does not say its place.
            self._keep(
                path,
                with_cross_position(attention_map)
                if cross_attention and attention_map.shape[2] > 1
                else attention_map,
            )

    def _keep(self, path: str, attention_map: AttentionMap | GrowingMap) -> None:
        self.trace.record(path, attention_map)
        if self.last_calls is not None:
            self.trace.keep_last(path, self.last_calls)

    def expect_attention(self, site: CallSite, is_certain: bool) -> None:
        """A softmax was taken here: of queries and keys, or of a module whose name may say that it
        is about attention."""
        self.softmaxed.add(site.path)
        self._count_expected(site, is_certain, 1)

    def confirm_attention(self, site: CallSite, is_certain: bool) -> None:
        """What was expected here has come."""
        self._count_expected(site, is_certain, -1)

    def note_matrix(self, site: CallSite) -> None:
        """A softmax of two axes was taken here, which counts as one of texts and classes."""
        self.matrices.add(site.path)

    def _count_expected(self, site: CallSite, is_certain: bool, count: int) -> None:
        if _by_name(site):
            self._unreadable[site.path, _NOT_MULTIPLIED] += count
        elif is_certain:
            self._unreadable[site.path, _NOT_FOLLOWED] += count

    def record_unreadable(self, site: CallSite, reason: str) -> None:
        """One more call of which no attention map can be made."""
        self._unreadable[site.path, reason] += 1

    def unreadable_calls(self) -> list[str]:
        """What seems to have looked and is not in the trace: where, how often and why."""
        by_reason: dict[tuple[str, int], list[str]] = {}
        for (path, reason), count in sorted(self._unreadable.items()):
            if count and self.selection.is_selected(path):
                by_reason.setdefault((reason, count), []).append(path)
        return [
            f"{paths} ({count} × each): {reason}" for (reason, count), paths in by_reason.items()
        ]


@dataclass(eq=False, slots=True)
class _Call:
    """One map of a layer: of which cache, what is kept of it, and when it was recorded last.

    Args:
        inner_part: Whether its queries are known not to be the newest of its keys.
    """

    cache: Callable[[], Any]
    kept: GrowingFactoredMap | GrowingDenseMap | AttentionMap
    last_recorded: int
    inner_part: bool = False


class _Step(NamedTuple):
    """What the newest step has made of self-attention: of which cache, and when."""

    cache: Callable[[], Any]
    growth: MapGrowth
    last_recorded: int
    kept: GrowingFactoredMap


_BRANCHED = (
    "a cache that was cropped by whole calls, or another cache with the same beginning: each "
    "continuation has its "
    "own map"
)


def _is_inner_part(site: CallSite, attention_map: AttentionMap) -> bool:
    """Return True if the queries are a part of the text of the keys, and not its end."""
    if (
        site.first_query_position is None
        or site.cache is not None
        or attention_map.position is not None
    ):
        return False
    return site.first_query_position() not in (None, with_newest_queries(attention_map).position)


def _split_reason(site: CallSite, attention_map: AttentionMap) -> str:
    """Why a call does not go on from an earlier one."""
    queries, num_keys = attention_map.shape[2:]
    if site.cross_attention:
        return "another source, or the same one without a sign that the generation is the same"
    if queries >= num_keys:
        return "a call with a new text, without earlier keys"
    if isinstance(attention_map, DenseAttentionMap):
        return (
            "a step of which only the weights are known: they do not say which "
            "earlier keys and rows it continues"
        )
    return (
        "a step whose earlier keys match no earlier call: a cache that rounds or "
        "changes what it keeps, or one that was filled outside of `observe`"
    )


def _weak_getter(cache: Any) -> Callable[[], Any]:
    """What gives it back while it lives: a trace does not keep the memory of a generation.

    Tuples, which cannot be referred to so, are others with each step.
    """
    try:
        return ref(cache)
    except TypeError:
        return lambda: None


def _by_name(site: CallSite) -> bool:
    name = type(site.module).__name__.lower()
    return "attention" in name or "attn" in name
