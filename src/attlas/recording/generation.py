"""Join the steps of a generation into one map."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.patterns import Both, Causal, Everywhere, Pattern, Window, both, causal, everywhere
from attlas.patterns import window as within
from attlas.recording.hooks import CallSite
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap
from attlas.recording.torch_functions.contents import Content

# Positions of queries, for maps that do not know them.


AnyAttentionMap = TypeVar("AnyAttentionMap", bound=AttentionMap)


def with_cross_position(attention_map: AttentionMap) -> AttentionMap:
    """A map of cross-attention: its first query is at the first key, unless its position is
    known.
    """
    return attention_map if attention_map.position is not None else _move(attention_map, 0)


def with_position(attention_map: AttentionMap, site: CallSite) -> AttentionMap:
    """The attention map of a call at this place, with the position of its first query if that is
    known.

    It is known if a mask defines it; in self-attention over a whole text; with a cache, where the
    queries come after the earlier keys; and in cross-attention, which begins at the first key, see
    `with_cross_position`. It is unknown for learned queries, for a single query of cross-attention
    (which may be learned), for a class token, for some queries of many, and for gathered keys.
    """
    if attention_map.position is not None or site.position_unknown:
        return attention_map
    batch, _, queries, num_keys = attention_map.shape
    if site.cross_attention:
        return (
            with_cross_position(attention_map)
            if queries > 1 or site.cache is not None
            else attention_map
        )
    if queries == num_keys:
        return _move(attention_map, 0) if site.may_hold_text(batch, num_keys) else attention_map
    appended = site.cross_attention is False and site.cache is not None
    return with_newest_queries(attention_map) if appended else attention_map


def with_newest_queries(attention_map: AnyAttentionMap) -> AnyAttentionMap:
    """The attention map with its queries at the newest of the keys, if it does not say where they
    stand.

    The newest keys are the last ones that any query sees: later ones are free space of a cache.
    """
    if attention_map.position is not None:
        return attention_map
    queries, num_keys = attention_map.shape[2:]
    end = num_keys
    dense = isinstance(attention_map, DenseAttentionMap) and attention_map.allowed is not None
    if dense or (
        isinstance(attention_map, FactoredAttentionMap) and attention_map.bias is not None
    ):
        see = (
            attention_map.shown
            if isinstance(attention_map, FactoredAttentionMap)
            else attention_map.allowed_rows
        )
        allowed = see(0, queries).flatten(0, 2).any(0).nonzero()
        end = 1 + int(allowed.max()) if len(allowed) else num_keys
    return _move(attention_map, max(end - queries, 0))


def _move(attention_map: AnyAttentionMap, query_offset: int) -> AnyAttentionMap:
    if not isinstance(attention_map, DenseAttentionMap | FactoredAttentionMap):
        return attention_map
    return cast(AnyAttentionMap, replace(attention_map, query_offset=query_offset))


Part = Callable[[FactoredAttentionMap, Tensor | None], tuple[FactoredAttentionMap, Tensor | None]]
"""Gives of queries, keys and a bias those of the heads that are kept."""


class MapLink(NamedTuple):
    """How a call of self-attention continues a map.

    Args:
        begin: The place of its first key among the keys of the map; up to its own queries the keys
            of both are the same.
        parents: From which row each of its rows continues; None = each from itself.
        alike: From which rows it may continue, where only numbers tell; None = from its parent
            alone.
    """

    begin: int
    parents: Int[Tensor, " batch"] | None = None
    alike: Bool[Tensor, "batch before"] | None = None


class RowParents(NamedTuple):
    """From which earlier row each row continues; None = each from itself."""

    parents: Int[Tensor, " batch"] | None

    @classmethod
    def of(cls, parents: Int[Tensor, " batch"] | None) -> "RowParents | None":
        """The same as short as it can be said; None if unknown."""
        if parents is None:
            return None
        identity = torch.arange(len(parents), device=parents.device)
        return cls(None if torch.equal(parents, identity) else parents)


class MapGrowth(NamedTuple):
    """The effect of a step on a map of self-attention: of `before` queries it kept `kept`, and now
    there are `after`.

    Args:
        parents, alike: As in `MapLink`.
        branched: Whether the earlier map stays as it was, because a whole call was taken back.
    """

    before: int
    kept: int
    after: int
    parents: Int[Tensor, " batch"] | None
    alike: Bool[Tensor, "batch before"] | None
    branched: bool = False


class ExtendedMap(NamedTuple):
    """An attention map after one more step, and from which rows of before each of its rows may have
    gone on: those whose keys are just what the step brought."""

    attention_map: FactoredAttentionMap
    parents: Bool[Tensor, "batch before"]


@dataclass(frozen=True, slots=True)
class MapPart:
    """The part of one call: its queries, its new keys, and what its queries see.

    Args:
        begin: Where the call's first key stands in the map.
        keys: How many the call has.
        parents: Of which row of the step before each of its rows is, None = of the same.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    keys: Float[Tensor, "batch kv_heads new head_dim"]
    pattern: Pattern
    query_offset: int | None
    token_mask: Bool[Tensor, "#batch keys"] | None
    bias: Shaped[Tensor, "#batch #heads #queries #keys"] | None
    num_keys: int
    begin: int = 0
    parents: Int[Tensor, " batch"] | None = None

    @classmethod
    def of(cls, call: FactoredAttentionMap, new: int, part: Part | None = None) -> "MapPart":
        """The part of a call whose last `new` keys are new.

        Args:
            part: Gives its heads.
        """
        num_keys = call.shape[3]
        keys = call.keys[:, :, num_keys - new :]
        base = FactoredAttentionMap(call.query, keys, call.scale, everywhere, 0, None, None)
        bias = call.bias
        if part is not None:
            base, bias = part(base, bias)
        base = base.detached_copy()
        return cls(
            base.query, base.keys, call.pattern, call.query_offset, call.token_mask, bias, num_keys
        )

    @property
    def queries(self) -> int:
        """The number of its queries."""
        return self.query.shape[2]

    @property
    def position(self) -> int:
        """The position of its first query in the map."""
        return self.begin + (0 if self.query_offset is None else self.query_offset)

    def of_rows(self, rows: Int[Tensor, " chosen"] | None) -> "MapPart":
        """The same of these rows alone."""
        if rows is None:
            return self
        token_mask = (
            self.token_mask
            if self.token_mask is None or len(self.token_mask) == 1
            else self.token_mask[rows]
        )
        bias = self.bias if self.bias is None or len(self.bias) == 1 else self.bias[rows]
        query, keys = self.query[rows], self.keys[rows]
        return replace(self, query=query, keys=keys, token_mask=token_mask, bias=bias, parents=None)

    def first_queries(self, queries: int) -> "MapPart":
        """The same of its first queries."""
        bias = self.bias
        bias = bias[:, :, :queries] if bias is not None and bias.shape[2] > 1 else bias
        return replace(self, query=self.query[:, :, :queries], bias=bias)

    def cut(self, stop: int) -> "MapPart":
        """The same without everything from `stop` on."""
        num_keys = max(0, min(self.num_keys, stop - self.begin))
        queries = max(0, min(self.queries, stop - self.position))
        keys = self.keys[:, :, : max(0, self.keys.shape[2] - (self.num_keys - num_keys))]
        bias = self.bias
        if bias is not None:
            bias = bias[:, :, :queries] if bias.shape[2] > 1 else bias
            bias = bias[..., :num_keys] if bias.shape[3] > 1 else bias
        token_mask = None if self.token_mask is None else self.token_mask[:, :num_keys]
        query = self.query[:, :, :queries]
        return replace(
            self, query=query, keys=keys, token_mask=token_mask, bias=bias, num_keys=num_keys
        )

    def whole(self) -> FactoredAttentionMap:
        """The call, with placeholders for keys."""
        batch, heads, _, head_dim = self.keys.shape
        keys = self.query.new_zeros(()).expand(batch, heads, self.num_keys, head_dim)
        token_mask = None if self.token_mask is None else self.token_mask.expand(batch, -1)
        return FactoredAttentionMap(
            self.query, keys, 1.0, self.pattern, self.query_offset, token_mask, self.bias
        )


class GrowingFactoredMap:
    """A map that grows by the steps of a generation. Steps are stored one by one and assembled on
    request, so the cost of a step does not depend on the number of steps.
    """

    def __init__(
        self,
        attention_map: FactoredAttentionMap,
        content: Content | None = None,
        like: FactoredAttentionMap | None = None,
    ) -> None:
        like = attention_map if like is None else like  # the call with all of its heads
        self.content = content  # of the keys of the last call
        self._origin = 0 if content is None else content.start
        self._scale, self._softcap = attention_map.scale, attention_map.softcap
        self._heads = like.query.shape[1], like.keys.shape[1]
        self._whole: FactoredAttentionMap | None = attention_map
        self._beside: tuple[GrowingFactoredMap, int] | None = None  # for a source: self-attention
        self._keys: Tensor | None = None  # of a source, in the order of the last call
        self._hold(attention_map)
        self.queries_before_crop = self.queries  # after the last call

    def _hold(self, whole: FactoredAttentionMap) -> None:
        """Replace all steps by this map."""
        query, keys, num_keys = whole.query, whole.keys, whole.shape[3]
        step = MapPart(
            query, keys, whole.pattern, whole.query_offset, whole.token_mask, whole.bias, num_keys
        )
        self._whole, self._steps = whole, [step]
        self._count()

    def _count(self) -> None:
        self.queries = sum(step.queries for step in self._steps)
        self.num_keys = max(step.begin + step.num_keys for step in self._steps)

    @property
    def has_position(self) -> bool:
        """Return True if the position of its first query is known."""
        return self._steps[0].query_offset is not None

    @property
    def newest_key(self) -> int:
        """The number of keys before the last call."""
        return self._steps[-1].position

    @property
    def stands_at_its_end(self) -> bool:
        """Return True if its last queries are the newest of its keys."""
        return self.newest_key + self._steps[-1].queries == self.num_keys

    def attention_map(self) -> FactoredAttentionMap:
        """The present map; it does not change when the generation continues."""
        self._settle()
        if self._whole is None:
            pieces = _in_order(self._steps)
            query = torch.cat([piece.query for piece in pieces], 2)
            keys = torch.cat([piece.keys for piece in pieces], 2)
            pattern, token_mask, bias = _mask_spec_of_all(pieces, keys.shape[2], len(query))
            cross_attention = len(pieces) > 1 and not pieces[-1].keys.shape[2]
            query_offset = (
                0 if cross_attention and pieces[0].query_offset is None else pieces[0].query_offset
            )
            self._hold(
                FactoredAttentionMap(
                    query, keys, self._scale, pattern, query_offset, token_mask, bias, self._softcap
                )
            )
        assert self._whole is not None
        return self._whole

    def branch(self) -> "GrowingFactoredMap":
        """A copy that can continue in another way."""
        other = object.__new__(GrowingFactoredMap)
        other.content, other._origin = self.content, self._origin
        other._scale, other._softcap = self._scale, self._softcap
        other._steps, other._whole = list(self._steps), self._whole
        other._heads, other._keys, other._beside = self._heads, None, None
        other.queries_before_crop = self.queries_before_crop
        other._count()
        return other

    def fits(self, step: FactoredAttentionMap, *, batch: bool) -> bool:
        """Return True if a call is of the same heads, widths and numbers, and of as many texts."""
        last_step = self._steps[-1]
        return (
            self._scale == step.scale
            and self._softcap == step.softcap
            and last_step.query.dtype == step.query.dtype
            and self._heads == (step.query.shape[1], step.keys.shape[1])
            and last_step.query.shape[3] == step.query.shape[3]
            and last_step.keys.shape[3] == step.keys.shape[3]
            and (not batch or last_step.query.shape[0] == step.query.shape[0])
        )

    @contextmanager
    def as_cached_step(self) -> Iterator[list[Any]]:
        """For the length of a block, the only call so far is one whose queries are the newest of
        its keys, without room behind them that a cache has made and not filled yet. It stays so
        where the list that this gives is filled."""
        previous = self._whole
        links: list[Any] = []
        if len(self._steps) == 1:
            full = self.attention_map()
            trimmed = _trim_unfilled(with_newest_queries(full))
            # The query may see nothing of the free positions at the end.
            if self.content is not None and full.shape[2] == 1:
                trimmed = trim_keys_to(trimmed, self.content.stop - self._origin)
            if trimmed is not full:
                previous = full
                self._hold(trimmed)
        yield links
        if not links and previous is not None and self._whole is not previous:
            self._hold(previous)

    def find_link(
        self,
        step: FactoredAttentionMap,
        content: Content | None,
        chosen: Callable[[FactoredAttentionMap], FactoredAttentionMap] = lambda step: step,
        *,
        crops: bool = True,
    ) -> MapLink | None:
        """How a call of self-attention continues this map, by the known content of its keys, or
        else by their numbers. None if it does not.

        Args:
            chosen: Gives the heads that are kept.
            crops: Whether there is a cache that may have been cropped.
        """
        if not self.stands_at_its_end or not stands_at_its_end(step):
            return None
        if content is not None and self.content is not None:
            match = content.common(self.content)
            if match is not None:
                return self._by_content(step, content, match.stop, match.rows)
        return self._by_numbers(chosen(step), crops) if self.fits(step, batch=True) else None

    def _by_content(
        self, step: FactoredAttentionMap, content: Content, stop: int, rows: Tensor | None
    ) -> MapLink | None:
        num_old_keys = step.shape[3] - step.shape[2]
        begin = content.start - self._origin
        shared = min(stop - self._origin, self.num_keys)
        is_contained = (
            step.shape[3] <= content.stop - content.start
        )  # the rest is room that is seen
        if self.content is not None:
            is_contained = is_contained and self.num_keys <= self.content.stop - self._origin
        if not is_contained or begin < 0 or not self.fits(step, batch=rows is None):
            return None
        if rows is not None and len(rows) != step.shape[0]:
            return None
        return MapLink(begin, rows) if num_old_keys > 0 and shared == begin + num_old_keys else None

    def _by_numbers(self, step: FactoredAttentionMap, crops: bool) -> MapLink | None:
        num_old_keys = step.shape[3] - step.shape[2]
        if not 0 < num_old_keys <= self.num_keys:
            return None
        keys = self.attention_map().keys
        links: list[MapLink] = []
        for begin in dict.fromkeys(
            (self.num_keys - num_old_keys, 0) if crops else (self.num_keys - num_old_keys,)
        ):
            old_keys = keys[:, :, begin : begin + num_old_keys]
            equal_rows = _alike_rows(old_keys, step.keys[:, :, :num_old_keys])
            parents = parents_of(equal_rows)
            if parents is not None:
                rows = RowParents.of(parents)
                links.append(MapLink(begin, rows and rows.parents, equal_rows))
        return links[0] if len(links) == 1 else None  # keys that repeat do not say where they are

    def find_parents(
        self,
        step: FactoredAttentionMap,
        content: Content | None,
        growth: MapGrowth | None,
        chosen: Callable[[FactoredAttentionMap], FactoredAttentionMap] = lambda step: step,
    ) -> RowParents | None:
        """From which rows a call with the same keys and more queries continues; None if it does
        not, or if that is unknown.

        Args:
            growth: What the step has made of self-attention, if that is known.
        """
        last_step = self._steps[-1]
        both_see_all = isinstance(step.pattern, Everywhere) and isinstance(
            last_step.pattern, Everywhere
        )
        if not both_see_all or step.shape[3] != self.num_keys or not self.fits(step, batch=True):
            return None
        batch, exact = step.shape[0], growth is not None and growth.alike is None
        match = None
        if content is not None and self.content is not None:
            match = content.common(self.content)
        if match is not None and content is not None and self.content is not None:
            is_whole = content.start == self.content.start and match.stop == content.stop
            is_whole = is_whole and content.stop - content.start == self.num_keys
            if is_whole and growth is None and batch == 1:
                return RowParents(None)
            if is_whole and growth is not None and exact and _equal(growth.parents, match.rows):
                return RowParents(match.rows)
        equal_rows = _alike_rows(self._source_keys(), chosen(step).keys)
        if growth is not None and exact:
            identity = torch.arange(batch, device=equal_rows.device)
            parents = identity if growth.parents is None else growth.parents
            return RowParents(growth.parents) if bool(equal_rows[identity, parents].all()) else None
        if growth is None and bool((equal_rows.sum(1) > 1).any()):
            return None  # hypotheses of one text, and it is unknown which went on
        equal = equal_rows if growth is None or growth.alike is None else equal_rows & growth.alike
        return RowParents.of(parents_of(equal))

    def _source_keys(self) -> Tensor:
        """The keys, in the order of the rows of the last call."""
        if self._keys is None:
            self._keys = self.attention_map().keys
        return self._keys

    def num_cropped(self, step: FactoredAttentionMap, link: MapLink) -> int:
        """How many keys of the map were cropped before this call."""
        return self.num_keys - (link.begin + step.shape[3] - step.shape[2])

    def grow(self, piece: MapPart, link: MapLink, content: Content | None) -> None:
        """Append one more call; its keys are a text of their own where only numbers tell so."""
        self._crop(link.begin + piece.num_keys - piece.queries)
        self._origin = self._origin if content is None else content.start - link.begin
        self._append(replace(piece, begin=link.begin, parents=link.parents), content)

    def _settle(self) -> None:
        """Drop the last queries that were cropped from the cache since, such as rejected candidates
        of a search; in a map of a source, those of the same step.
        """
        text = None if self.content is None or self._beside is not None else self.content.text
        if text is not None and text.cropped is not None:
            stop = text.cropped - self._origin
            if self.newest_key < stop < self.num_keys:
                self._crop(stop)
        if self._beside is not None:
            other, other_queries = self._beside
            other._settle()
            removed = other_queries - other.queries
            if 0 < removed < self._steps[-1].queries:
                self._beside = other, other.queries
                self._crop_queries(self.queries - removed)

    def _crop(self, stop: int) -> None:
        """Keep what stands before `stop`."""
        empty: list[MapPart] = []
        if stop >= self.num_keys:
            return
        while stop < self.num_keys:
            last = self._steps.pop()
            cut = last.cut(stop)
            if cut.keys.shape[2] or not self._steps:
                self._steps.append(cut)
                break
            self.num_keys -= last.keys.shape[2]
            empty += [cut] if cut.parents is not None else []
        self._steps += reversed(empty)
        self._whole = None
        self._count()

    def _crop_queries(self, queries: int) -> None:
        """Keep so many queries of a source."""
        if queries < self.queries:
            last = self._steps[-1]
            num_cropped = last.queries - (self.queries - queries)
            if num_cropped > 0:
                self._steps[-1] = last.first_queries(num_cropped)
                self._whole = None
                self._count()
                return
            self._beside = None
            full_map = self.attention_map()
            bias = full_map.bias
            bias = bias[:, :, :queries] if bias is not None and bias.shape[2] > 1 else bias
            self._hold(replace(full_map, query=full_map.query[:, :, :queries], bias=bias))

    def append_cross_queries(
        self,
        piece: MapPart,
        parents: Int[Tensor, " batch"] | None,
        num_queries: int,
        content: Content | None = None,
    ) -> None:
        """More queries of the same keys, behind the first `num_queries` of those that are there."""
        self._crop_queries(num_queries)
        if self._keys is not None and parents is not None:
            self._keys = self._keys[parents]
        self._append(replace(piece, parents=parents), content or self.content)

    def follow_self_attention(self, other: "GrowingFactoredMap | None") -> None:
        """This map of a source grows with one of self-attention, which has come to its step."""
        self._beside = None if other is None else (other, other.queries)

    def _append(self, piece: MapPart, content: Content | None) -> None:
        self._steps.append(piece)
        self.queries += piece.queries
        self.queries_before_crop = self.queries
        self.num_keys = piece.begin + piece.num_keys
        self._whole, self.content = None, content


def append_self_attention_step(earlier: AttentionMap, step: AttentionMap) -> ExtendedMap | None:
    """The map of self-attention after one more step; None if the step does not continue it.

    It continues the map if its keys are the earlier ones, number for number, followed by those of
    its own queries. A cache of a window may have dropped the oldest; one that was cropped may have
    dropped the newest. Batch rows may have changed places, as in a beam: then the earlier queries
        follow the keys that a row continues.
    """
    if not isinstance(earlier, FactoredAttentionMap) or not isinstance(step, FactoredAttentionMap):
        return None
    map_, new_queries = GrowingFactoredMap(earlier), with_newest_queries(step)
    with map_.as_cached_step() as links:
        step = trim_keys_to(new_queries, map_.num_keys + new_queries.shape[2])
        links += [link for link in [map_.find_link(step, None)] if link is not None]
    link = links[0] if links else None
    if link is None or link.alike is None:
        return None
    map_.grow(MapPart.of(step, step.shape[2]), link, None)
    return ExtendedMap(map_.attention_map(), link.alike)


def append_cross_attention_step(
    earlier: AttentionMap, step: AttentionMap, parents: Bool[Tensor, "batch before"] | None = None
) -> FactoredAttentionMap | None:
    """The attention map of a decoder that looks at its source, after one more step; None as in
    `append_self_attention_step`.

    It continues the map if its keys are exactly the earlier ones. Only the caller knows if that is
    one generation, or two calls with the same source.

    Args:
        parents: From which rows each row may have gone on, as self-attention knows it; without it,
            rows of the same source are not distinguished, and such a step does not go on.
    """
    if not isinstance(earlier, FactoredAttentionMap) or not isinstance(step, FactoredAttentionMap):
        return None
    map_ = GrowingFactoredMap(earlier)
    queries = map_.queries
    growth = parents if parents is None else MapGrowth(queries, queries, queries, None, parents)
    rows = map_.find_parents(step, None, growth)
    if rows is None:
        return None
    map_.append_cross_queries(MapPart.of(step, 0), rows.parents, queries)
    return map_.attention_map()


def _in_order(steps: list[MapPart]) -> list[MapPart]:
    """All steps, with their rows in the order of those of the last."""
    rows: Tensor | None = None
    sorted_steps = [steps[-1]]
    for index in range(len(steps) - 1, 0, -1):
        parents = steps[index].parents
        if parents is not None:
            rows = parents if rows is None else parents[rows]
        sorted_steps.append(steps[index - 1].of_rows(rows))
    return sorted_steps[::-1]


def _mask_spec_of_all(
    steps: list[MapPart], num_keys: int, batch: int
) -> tuple[Pattern, Tensor | None, Tensor | None]:
    """What the queries of all steps see: as a pattern and padding, or else spelled out."""
    cross_attention = len(steps) > 1 and not steps[-1].keys.shape[2]
    spec = _as_pattern(steps, num_keys, batch, cross_attention)
    return (*spec, None) if spec is not None else (everywhere, None, _spelled_out(steps, num_keys))


def _as_pattern(
    steps: list[MapPart], num_keys: int, batch: int, cross_attention: bool
) -> tuple[Pattern, Tensor | None] | None:
    if any(step.bias is not None for step in steps):
        return None
    if cross_attention:
        first_step = steps[0]
        all_equal = all(
            step.pattern == everywhere and _equal(step.token_mask, first_step.token_mask)
            for step in steps
        )
        return (
            (everywhere, first_step.token_mask)
            if all_equal and first_step.pattern == everywhere
            else None
        )
    if all(map(_sees_all_before, steps)):
        return causal, None
    device = steps[0].keys.device
    token_mask = torch.zeros(batch, num_keys, dtype=torch.bool, device=device)
    for step in steps:
        token_mask[:, step.begin : step.begin + step.num_keys] |= _columns(step)
    padding = None if bool(token_mask.all()) else token_mask
    last_key = max(_reach(step) for step in steps)
    for pattern in (causal, both(causal, within(last_key))):
        if all(_fits(pattern, step, token_mask) for step in steps):
            return pattern, padding
    return None


def _equal(first: Tensor | None, second: Tensor | None) -> bool:
    if first is None or second is None:
        return first is second
    return torch.equal(first, second)


def _sees_all_before(step: MapPart) -> bool:
    """Return True if its queries see all keys of the map up to their own."""
    at_its_end = step.position + step.queries == step.num_keys and not step.begin
    looks_back = isinstance(step.pattern, Causal) or step.queries == 1
    return at_its_end and looks_back and step.token_mask is None and _is_simple(step.pattern)


def _is_simple(pattern: Pattern) -> bool:
    return isinstance(pattern, Causal | Everywhere)


def _columns(step: MapPart) -> Bool[Tensor, "#batch keys"]:
    """Which keys of its own any of its queries sees."""
    if _is_simple(step.pattern):
        token_mask = step.token_mask
        if token_mask is None:
            token_mask = torch.ones(1, step.num_keys, dtype=torch.bool, device=step.keys.device)
        return token_mask & (
            torch.arange(step.num_keys, device=token_mask.device)
            < step.position - step.begin + step.queries
        )
    return step.whole().allowed_rows(0, step.queries).any(1).any(1)


def _reach(step: MapPart) -> int:
    """How far back its queries look, at most."""
    windowed = step.pattern
    if isinstance(windowed, Both) and isinstance(windowed.right, Window):
        return windowed.right.radius
    queries = step.queries
    if step.token_mask is None or queries > 1:
        return step.position - step.begin + queries - 1
    oldest = step.token_mask.any(0).nonzero()
    return step.position - step.begin - int(oldest.min()) if len(oldest) else 0


def _fits(pattern: Pattern, step: MapPart, token_mask: Bool[Tensor, "batch keys"]) -> bool:
    """Return True if a step sees just what a pattern shows of the tokens."""
    queries, num_keys = step.queries, token_mask.shape[1]
    if not queries:
        return True
    expected = (
        pattern.mask(queries, num_keys, step.position, token_mask.device) & token_mask[:, None]
    )
    stop = step.begin + step.num_keys
    if bool(expected[..., : step.begin].any()) or bool(expected[..., stop:].any()):
        return False
    allowed = step.whole().allowed_rows(0, queries)[:, 0]
    expected = expected[..., step.begin : stop]
    return torch.equal(allowed.expand_as(expected), expected)


def _spelled_out(
    steps: list[MapPart], num_keys: int
) -> Shaped[Tensor, "#batch #heads queries keys"]:
    """What is added to the scores of each pair, −∞ where a query does not see a key; or, where
    nothing is added, which it sees."""
    masks = [_mask(step) for step in steps if step.queries]
    step_starts = [step.begin for step in steps if step.queries]
    batch, heads = (max(mask.shape[axis] for mask in masks) for axis in (0, 1))
    bias_dtypes = [mask.dtype for mask in masks if mask.dtype != torch.bool]
    kind = bias_dtypes[0] if bias_dtypes else torch.bool
    hidden = -torch.inf if bias_dtypes else False
    queries = sum(mask.shape[2] for mask in masks)
    bias = torch.full((batch, heads, queries, num_keys), hidden, dtype=kind, device=masks[0].device)
    offset = 0
    for mask, begin in zip(masks, step_starts, strict=True):
        if bias_dtypes and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=kind).masked_fill(~mask, -torch.inf)
        bias[:, :, offset : offset + mask.shape[2], begin : begin + mask.shape[3]] = mask
        offset += mask.shape[2]
    return bias


def _mask(step: MapPart) -> Shaped[Tensor, "#batch #heads queries keys"]:
    """What is added to the scores of each pair, or which are seen where nothing is added."""
    queries = step.queries
    bias = step.bias
    allowed = replace(step.whole(), bias=None).allowed_rows(0, queries)
    allowed = allowed.expand(-1, -1, queries, step.num_keys)
    if bias is None:
        return allowed
    if bias.dtype == torch.bool:
        return allowed & bias
    return torch.where(allowed, bias, -torch.inf)


def _trim_unfilled(attention_map: FactoredAttentionMap) -> FactoredAttentionMap:
    """The attention map without the room that a cache has made and not filled yet, behind its
    queries."""
    end = attention_map.pattern_offset + attention_map.shape[2]
    if end >= attention_map.shape[3]:
        return attention_map
    if attention_map.bias is None:
        return (
            _trim(attention_map, end) if attention_map.pattern.bound.ahead == 0 else attention_map
        )
    shown_after = attention_map.shown(0, attention_map.shape[2])[..., end:]
    return attention_map if bool(shown_after.any()) else _trim(attention_map, end)


def trim_single_query(step: AttentionMap) -> AttentionMap:
    """A single query of self-attention, of all there is: the newest of its keys is its own.

    What lies behind that is room which a cache has made and not filled yet.
    """
    if not isinstance(step, FactoredAttentionMap) or step.shape[2] != 1 or step.token_mask is None:
        return step
    if step.pattern != everywhere or not bool(step.token_mask.any()):
        return step
    num_keys = 1 + int(step.token_mask.any(0).nonzero().max())
    return trim_keys_to(step, num_keys) if num_keys < step.shape[3] else step


def trim_keys_to(step: FactoredAttentionMap, num_keys: int) -> FactoredAttentionMap:
    """The same of one query that sees all there is, of which there should be so many keys."""
    num_keys = min(num_keys, step.shape[3])  # a cache of a window has dropped the oldest
    if step.shape[2] != 1 or step.token_mask is None or bool(step.token_mask[:, num_keys:].any()):
        return _trim_unfilled(step)
    return replace(_trim(step, num_keys), query_offset=num_keys - 1)


def _trim(attention_map: FactoredAttentionMap, num_keys: int) -> FactoredAttentionMap:
    token_mask = (
        None if attention_map.token_mask is None else attention_map.token_mask[:, :num_keys]
    )
    bias = attention_map.bias
    bias = bias[..., :num_keys] if bias is not None and bias.shape[-1] > 1 else bias
    return replace(
        attention_map, keys=attention_map.keys[:, :, :num_keys], token_mask=token_mask, bias=bias
    )


def stands_at_its_end(step: FactoredAttentionMap) -> bool:
    """Return True if its queries are the newest of its keys."""
    return step.query_offset is not None and step.query_offset + step.shape[2] == step.shape[3]


def _alike_rows(
    old_keys: Float[Tensor, "batch kv_heads keys head_dim"],
    brought: Float[Tensor, "batch kv_heads keys head_dim"],
) -> Bool[Tensor, "batch before"]:
    """[i, j]: whether row i of a step brought, number for number, the keys of row j of before."""
    # Rows that share their last key may still differ before it: a word that two sentences end with.
    last = old_keys[:, :, -1]
    equal_rows = torch.stack([(last == row[:, -1]).flatten(1).all(1) for row in brought])
    for row, old in equal_rows.nonzero().tolist():
        equal_rows[row, old] = torch.equal(old_keys[old], brought[row])
    return equal_rows


def parents_of(equal_rows: Bool[Tensor, "batch before"]) -> Int[Tensor, " batch"] | None:
    """From which row each row of a step goes on: from itself where it may, else from the first."""
    if not bool(equal_rows.any(1).all()):
        return None
    first = equal_rows.to(torch.uint8).argmax(1)
    identity = torch.arange(len(equal_rows), device=equal_rows.device)
    return torch.where(equal_rows.diagonal(), identity, first)
