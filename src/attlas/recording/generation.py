"""The steps of a generation, put together to one map."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.patterns import Both, Causal, Everywhere, Pattern, Window, both, causal, everywhere
from attlas.patterns import window as within
from attlas.recording.hooks import Place
from attlas.recording.maps.base import Reading
from attlas.recording.maps.dense import DenseReading
from attlas.recording.maps.factored import FactoredReading
from attlas.recording.torch_functions.contents import Content

# Where the queries of a reading stand that does not say it itself.


AnyReading = TypeVar("AnyReading", bound=Reading)


def beside(reading: Reading) -> Reading:
    """The reading of another text than one's own: its first query stands at the first slot, unless
    it says where it stands."""
    return reading if reading.position is not None else _from(reading, 0)


def standing(reading: Reading, place: Place) -> Reading:
    """The reading of a call at this place, with the place of its first query where that is known.

    It is known where a mask spells it out; where the slots are those of a text that looks at
    itself; where a cache has put the queries behind what came before; and of what looks at another
    text, which begins at its first slot, as `beside` counts. Nobody knows it of learned queries, of
    a single one that looks at another text, which may be one, of a class token, of some queries of
    many, and of keys that were gathered.
    """
    if reading.position is not None or place.unplaced:
        return reading
    batch, _, queries, slots = reading.shape
    if place.across:
        return beside(reading) if queries > 1 or place.cache is not None else reading
    if queries == slots:
        return _from(reading, 0) if place.may_hold(batch, slots) else reading
    appended = place.across is False and place.cache is not None
    return newest(reading) if appended else reading


def newest(reading: AnyReading) -> AnyReading:
    """The reading with its queries at the newest of the slots, if it does not say where they stand.

    The newest are those that any of them sees: behind these is room that a cache has not filled
    yet.
    """
    if reading.position is not None:
        return reading
    queries, slots = reading.shape[2:]
    end = slots
    dense = isinstance(reading, DenseReading) and reading.allowed is not None
    if dense or (isinstance(reading, FactoredReading) and reading.bias is not None):
        see = reading.shown if isinstance(reading, FactoredReading) else reading.seen
        seen = see(0, queries).flatten(0, 2).any(0).nonzero()
        end = 1 + int(seen.max()) if len(seen) else slots
    return _from(reading, max(end - queries, 0))


def _from(reading: AnyReading, first: int) -> AnyReading:
    if not isinstance(reading, DenseReading | FactoredReading):
        return reading
    return cast(AnyReading, replace(reading, first=first))


Part = Callable[[FactoredReading, Tensor | None], tuple[FactoredReading, Tensor | None]]
"""Gives of queries, keys and a bias those of the heads that are kept."""


class Link(NamedTuple):
    """How a call of self-attention goes on from a map.

    begin: where its first slot stands among those of the map; up to its own queries the slots of
    both are the same. parents: from which row each of its rows goes on, None = each from itself.
    alike: from which it may have gone on, where numbers alone tell; None = from its parent alone.
    """

    begin: int
    parents: Int[Tensor, " batch"] | None = None
    alike: Bool[Tensor, "batch before"] | None = None


class Rows(NamedTuple):
    """From which row of before each row goes on; None = each from itself."""

    parents: Int[Tensor, " batch"] | None

    @classmethod
    def of(cls, parents: Int[Tensor, " batch"] | None) -> "Rows | None":
        """The same as short as it can be said; None where nobody knows."""
        if parents is None:
            return None
        own = torch.arange(len(parents), device=parents.device)
        return cls(None if torch.equal(parents, own) else parents)


class Growth(NamedTuple):
    """What a step has made of a map of self-attention: of `before` queries it kept `kept`, and now
    there are `after`. parents, alike: as in `Link`. branched: whether the map of before stays as it
    was, because a whole call was taken back."""

    before: int
    kept: int
    after: int
    parents: Int[Tensor, " batch"] | None
    alike: Bool[Tensor, "batch before"] | None
    branched: bool = False


class Longer(NamedTuple):
    """A reading after one more step, and from which rows of before each of its rows may have gone
    on: those whose keys are just what the step brought."""

    reading: FactoredReading
    parents: Bool[Tensor, "batch before"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one call has brought: its queries, the keys that are new, and what its queries see.

    begin: where the call's first slot stands in the map; slots: how many the call has. parents: of
    which row of the step before each of its rows is, None = of the same.
    """

    query: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch key_heads new width"]
    pattern: Pattern
    first: int | None
    real: Bool[Tensor, "#batch slots"] | None
    bias: Shaped[Tensor, "#batch #heads #queries #slots"] | None
    slots: int
    begin: int = 0
    parents: Int[Tensor, " batch"] | None = None

    @classmethod
    def of(cls, call: FactoredReading, new: int, part: Part | None = None) -> "Piece":
        """What is to be kept of a call whose last `new` slots are new. part: gives its heads."""
        slots = call.shape[3]
        keys = call.keys[:, :, slots - new :]
        bare = FactoredReading(call.query, keys, call.scale, everywhere, 0, None, None)
        bias = call.bias
        if part is not None:
            bare, bias = part(bare, bias)
        bare = bare.kept()
        return cls(bare.query, bare.keys, call.pattern, call.first, call.real, bias, slots)

    @property
    def queries(self) -> int:
        """How many it has brought."""
        return self.query.shape[2]

    @property
    def position(self) -> int:
        """Where its first query stands in the map."""
        return self.begin + (0 if self.first is None else self.first)

    def of_rows(self, rows: Int[Tensor, " chosen"] | None) -> "Piece":
        """The same of these rows alone."""
        if rows is None:
            return self
        real = self.real if self.real is None or len(self.real) == 1 else self.real[rows]
        bias = self.bias if self.bias is None or len(self.bias) == 1 else self.bias[rows]
        query, keys = self.query[rows], self.keys[rows]
        return replace(self, query=query, keys=keys, real=real, bias=bias, parents=None)

    def asking(self, queries: int) -> "Piece":
        """The same of its first queries."""
        bias = self.bias
        bias = bias[:, :, :queries] if bias is not None and bias.shape[2] > 1 else bias
        return replace(self, query=self.query[:, :, :queries], bias=bias)

    def cut(self, stop: int) -> "Piece":
        """The same without what stands from `stop` on."""
        slots = max(0, min(self.slots, stop - self.begin))
        queries = max(0, min(self.queries, stop - self.position))
        keys = self.keys[:, :, : max(0, self.keys.shape[2] - (self.slots - slots))]
        bias = self.bias
        if bias is not None:
            bias = bias[:, :, :queries] if bias.shape[2] > 1 else bias
            bias = bias[..., :slots] if bias.shape[3] > 1 else bias
        real = None if self.real is None else self.real[:, :slots]
        query = self.query[:, :, :queries]
        return replace(self, query=query, keys=keys, real=real, bias=bias, slots=slots)

    def whole(self) -> FactoredReading:
        """The call, with keys of which only the number is right."""
        batch, heads, _, width = self.keys.shape
        keys = self.query.new_zeros(()).expand(batch, heads, self.slots, width)
        real = None if self.real is None else self.real.expand(batch, -1)
        return FactoredReading(self.query, keys, 1.0, self.pattern, self.first, real, self.bias)


class Stitched:
    """A map that grows by the steps of a generation, which are kept one by one and put together
    when somebody asks: what a step costs does not depend on how many there were."""

    def __init__(
        self,
        reading: FactoredReading,
        content: Content | None = None,
        like: FactoredReading | None = None,
    ) -> None:
        like = reading if like is None else like  # the call with all of its heads
        self.content = content  # of the keys of the last call
        self._origin = 0 if content is None else content.start
        self._scale, self._softcap = reading.scale, reading.softcap
        self._heads = like.query.shape[1], like.keys.shape[1]
        self._whole: FactoredReading | None = reading
        self._beside: tuple[Stitched, int] | None = None  # what this map of a source goes with
        self._keys: Tensor | None = None  # of a source, in the order of the last call
        self._hold(reading)
        self.asked = self.queries  # after the last call, before anything was cropped since

    def _hold(self, whole: FactoredReading) -> None:
        """From now on there is this one piece."""
        query, keys, slots = whole.query, whole.keys, whole.shape[3]
        one = Piece(query, keys, whole.pattern, whole.first, whole.real, whole.bias, slots)
        self._whole, self._steps = whole, [one]
        self._count()

    def _count(self) -> None:
        self.queries = sum(step.queries for step in self._steps)
        self.slots = max(step.begin + step.slots for step in self._steps)

    @property
    def is_placed(self) -> bool:
        """Whether it is known where its first query stands."""
        return self._steps[0].first is not None

    @property
    def newest(self) -> int:
        """How many slots there were before the last call."""
        return self._steps[-1].position

    @property
    def stands_at_its_end(self) -> bool:
        """Whether its last queries are the newest of its slots."""
        last = self._steps[-1]
        return last.position + last.queries == self.slots

    def reading(self) -> FactoredReading:
        """What there is now, as one reading; it stays as it is when the map grows on."""
        self._settle()
        if self._whole is None:
            pieces = _in_order(self._steps)
            query = torch.cat([piece.query for piece in pieces], 2)
            keys = torch.cat([piece.keys for piece in pieces], 2)
            pattern, real, bias = _sight_of_all(pieces, keys.shape[2], len(query))
            across = len(pieces) > 1 and not pieces[-1].keys.shape[2]
            first = 0 if across and pieces[0].first is None else pieces[0].first
            self._hold(
                FactoredReading(query, keys, self._scale, pattern, first, real, bias, self._softcap)
            )
        assert self._whole is not None
        return self._whole

    def branch(self) -> "Stitched":
        """Another map that begins as this one does."""
        other = object.__new__(Stitched)
        other.content, other._origin = self.content, self._origin
        other._scale, other._softcap = self._scale, self._softcap
        other._steps, other._whole = list(self._steps), self._whole
        other._heads, other._keys, other._beside = self._heads, None, None
        other.asked = self.asked
        other._count()
        return other

    def fits(self, step: FactoredReading, *, batch: bool) -> bool:
        """Whether a call is of the same heads, widths and numbers, and of as many texts."""
        mine = self._steps[-1]
        return (
            self._scale == step.scale
            and self._softcap == step.softcap
            and mine.query.dtype == step.query.dtype
            and self._heads == (step.query.shape[1], step.keys.shape[1])
            and mine.query.shape[3] == step.query.shape[3]
            and mine.keys.shape[3] == step.keys.shape[3]
            and (not batch or mine.query.shape[0] == step.query.shape[0])
        )

    @contextmanager
    def trying(self) -> Iterator[list[Any]]:
        """For the length of a block, the only call so far is one whose queries are the newest of
        its slots, without room behind them that a cache has made and not filled yet. It stays so
        where the list that this gives is filled."""
        before = self._whole
        found: list[Any] = []
        if len(self._steps) == 1:
            whole = self.reading()
            filled = _filled(newest(whole))
            if self.content is not None and whole.shape[2] == 1:  # of which room it may see nothing
                filled = filled_up_to(filled, self.content.stop - self._origin)
            if filled is not whole:
                before = whole
                self._hold(filled)
        yield found
        if not found and before is not None and self._whole is not before:
            self._hold(before)

    def linked(
        self,
        step: FactoredReading,
        content: Content | None,
        chosen: Callable[[FactoredReading], FactoredReading] = lambda step: step,
        *,
        crops: bool = True,
    ) -> Link | None:
        """How a call of self-attention goes on from here, by what its keys are known to hold; or
        else by their numbers. None where it does not. chosen: gives the heads that are kept; crops:
        whether there is a cache that may have been cropped."""
        if not self.stands_at_its_end or not stands_at_its_end(step):
            return None
        if content is not None and self.content is not None:
            common = content.common(self.content)
            if common is not None:
                return self._by_content(step, content, common.stop, common.rows)
        return self._by_numbers(chosen(step), crops) if self.fits(step, batch=True) else None

    def _by_content(
        self, step: FactoredReading, content: Content, stop: int, rows: Tensor | None
    ) -> Link | None:
        brought = step.shape[3] - step.shape[2]
        begin = content.start - self._origin
        shared = min(stop - self._origin, self.slots)
        known = step.shape[3] <= content.stop - content.start  # the rest is room that is seen
        if self.content is not None:
            known = known and self.slots <= self.content.stop - self._origin
        if not known or begin < 0 or not self.fits(step, batch=rows is None):
            return None
        if rows is not None and len(rows) != step.shape[0]:
            return None
        return Link(begin, rows) if brought > 0 and shared == begin + brought else None

    def _by_numbers(self, step: FactoredReading, crops: bool) -> Link | None:
        brought = step.shape[3] - step.shape[2]
        if not 0 < brought <= self.slots:
            return None
        keys = self.reading().keys
        found: list[Link] = []
        for begin in dict.fromkeys((self.slots - brought, 0) if crops else (self.slots - brought,)):
            held = keys[:, :, begin : begin + brought]
            alike = _alike_rows(held, step.keys[:, :, :brought])
            parents = parents_of(alike)
            if parents is not None:
                rows = Rows.of(parents)
                found.append(Link(begin, rows and rows.parents, alike))
        return found[0] if len(found) == 1 else None  # keys that repeat do not say where they are

    def same_source(
        self,
        step: FactoredReading,
        content: Content | None,
        growth: Growth | None,
        chosen: Callable[[FactoredReading], FactoredReading] = lambda step: step,
    ) -> Rows | None:
        """From which rows those of a call go on that looks at the same slots with more queries;
        None where it does not, or where nobody knows.

        growth: what the step has made of self-attention, if that is known.
        """
        mine = self._steps[-1]
        both_see_all = isinstance(step.pattern, Everywhere) and isinstance(mine.pattern, Everywhere)
        if not both_see_all or step.shape[3] != self.slots or not self.fits(step, batch=True):
            return None
        batch, exact = step.shape[0], growth is not None and growth.alike is None
        common = None
        if content is not None and self.content is not None:
            common = content.common(self.content)
        if common is not None and content is not None and self.content is not None:
            whole = content.start == self.content.start and common.stop == content.stop
            whole = whole and content.stop - content.start == self.slots
            if whole and growth is None and batch == 1:
                return Rows(None)
            if whole and growth is not None and exact and _equal(growth.parents, common.rows):
                return Rows(common.rows)
        alike = _alike_rows(self._source_keys(), chosen(step).keys)
        if growth is not None and exact:
            own = torch.arange(batch, device=alike.device)
            parents = own if growth.parents is None else growth.parents
            return Rows(growth.parents) if bool(alike[own, parents].all()) else None
        if growth is None and bool((alike.sum(1) > 1).any()):
            return None  # hypotheses of one text, of which nobody knows which went on
        fitting = alike if growth is None or growth.alike is None else alike & growth.alike
        return Rows.of(parents_of(fitting))

    def _source_keys(self) -> Tensor:
        """The keys, in the order of the rows of the last call."""
        if self._keys is None:
            self._keys = self.reading().keys
        return self._keys

    def drops(self, step: FactoredReading, link: Link) -> int:
        """How many slots of the map a call does not go on from, because they were cropped."""
        return self.slots - (link.begin + step.shape[3] - step.shape[2])

    def grow(self, piece: Piece, link: Link, content: Content | None) -> None:
        """One more call, which goes on from here."""
        self._crop(link.begin + piece.slots - piece.queries)
        self._append(replace(piece, begin=link.begin, parents=link.parents), content)

    def _settle(self) -> None:
        """Drop the queries that were asked last and that a cache was cropped of since, such as
        candidates of a search that were not taken; in a map of a source, those of the same step."""
        text = None if self.content is None or self._beside is not None else self.content.text
        if text is not None and text.cropped is not None:
            stop = text.cropped - self._origin
            if self.newest < stop < self.slots:
                self._crop(stop)
        if self._beside is not None:
            other, there = self._beside
            other._settle()
            gone = there - other.queries
            if 0 < gone < self._steps[-1].queries:
                self._beside = other, other.queries
                self._ask_less(self.queries - gone)

    def _crop(self, stop: int) -> None:
        """Keep what stands before `stop`."""
        empty: list[Piece] = []
        if stop >= self.slots:
            return
        while stop < self.slots:
            last = self._steps.pop()
            cut = last.cut(stop)
            if cut.keys.shape[2] or not self._steps:
                self._steps.append(cut)
                break
            self.slots -= last.keys.shape[2]
            empty += [cut] if cut.parents is not None else []
        self._steps += reversed(empty)
        self._whole = None
        self._count()

    def _ask_less(self, queries: int) -> None:
        """Keep so many queries of a source."""
        if queries < self.queries:
            last = self._steps[-1]
            rest = last.queries - (self.queries - queries)
            if rest > 0:
                self._steps[-1] = last.asking(rest)
                self._whole = None
                self._count()
                return
            self._beside = None
            whole = self.reading()
            bias = whole.bias
            bias = bias[:, :, :queries] if bias is not None and bias.shape[2] > 1 else bias
            self._hold(replace(whole, query=whole.query[:, :, :queries], bias=bias))

    def ask_again(
        self,
        piece: Piece,
        parents: Int[Tensor, " batch"] | None,
        before: int,
        content: Content | None = None,
    ) -> None:
        """More queries of the same slots, behind the first `before` of those that are there."""
        self._ask_less(before)
        if self._keys is not None and parents is not None:
            self._keys = self._keys[parents]
        self._append(replace(piece, parents=parents), content or self.content)

    def goes_with(self, other: "Stitched | None") -> None:
        """This map of a source grows with one of self-attention, which has come to its step."""
        self._beside = None if other is None else (other, other.queries)

    def _append(self, piece: Piece, content: Content | None) -> None:
        self._steps.append(piece)
        self.queries += piece.queries
        self.asked = self.queries
        self.slots = piece.begin + piece.slots
        self._whole, self.content = None, content


def grown(earlier: Reading, step: Reading) -> Longer | None:
    """The reading of self-attention after one more step; None where it does not go on from there.

    It goes on where its keys are the earlier ones, number for number, and those of its own queries
    behind them. A cache of a window may have dropped the oldest; one that was cropped may have
    dropped the newest. Batch rows may have changed places, as in a beam: then the earlier queries
    go with the keys from which a row went on.
    """
    if not isinstance(earlier, FactoredReading) or not isinstance(step, FactoredReading):
        return None
    map_, asked = Stitched(earlier), newest(step)
    with map_.trying() as found:
        step = filled_up_to(asked, map_.slots + asked.shape[2])
        found += [one for one in [map_.linked(step, None)] if one is not None]
    link = found[0] if found else None
    if link is None or link.alike is None:
        return None
    map_.grow(Piece.of(step, step.shape[2]), link, None)
    return Longer(map_.reading(), link.alike)


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
    map_ = Stitched(earlier)
    queries = map_.queries
    growth = parents if parents is None else Growth(queries, queries, queries, None, parents)
    rows = map_.same_source(step, None, growth)
    if rows is None:
        return None
    map_.ask_again(Piece.of(step, 0), rows.parents, queries)
    return map_.reading()


def _in_order(steps: list[Piece]) -> list[Piece]:
    """All steps, with their rows in the order of those of the last."""
    rows: Tensor | None = None
    ordered = [steps[-1]]
    for place in range(len(steps) - 1, 0, -1):
        parents = steps[place].parents
        if parents is not None:
            rows = parents if rows is None else parents[rows]
        ordered.append(steps[place - 1].of_rows(rows))
    return ordered[::-1]


def _sight_of_all(
    steps: list[Piece], slots: int, batch: int
) -> tuple[Pattern, Tensor | None, Tensor | None]:
    """What the queries of all steps see: as a pattern and padding, or else spelled out."""
    across = len(steps) > 1 and not steps[-1].keys.shape[2]
    found = _as_pattern(steps, slots, batch, across)
    return (*found, None) if found is not None else (everywhere, None, _spelled_out(steps, slots))


def _as_pattern(
    steps: list[Piece], slots: int, batch: int, across: bool
) -> tuple[Pattern, Tensor | None] | None:
    if any(step.bias is not None for step in steps):
        return None
    if across:
        one = steps[0]
        alike = all(step.pattern == everywhere and _equal(step.real, one.real) for step in steps)
        return (everywhere, one.real) if alike and one.pattern == everywhere else None
    if all(map(_sees_all_before, steps)):
        return causal, None
    device = steps[0].keys.device
    real = torch.zeros(batch, slots, dtype=torch.bool, device=device)
    for step in steps:
        real[:, step.begin : step.begin + step.slots] |= _columns(step)
    padding = None if bool(real.all()) else real
    reach = max(_reach(step) for step in steps)
    for pattern in (causal, both(causal, within(reach))):
        if all(_fits(pattern, step, real) for step in steps):
            return pattern, padding
    return None


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one, other)


def _sees_all_before(step: Piece) -> bool:
    """Whether its queries see all slots of the map up to their own."""
    at_its_end = step.position + step.queries == step.slots and not step.begin
    looks_back = isinstance(step.pattern, Causal) or step.queries == 1
    return at_its_end and looks_back and step.real is None and _is_simple(step.pattern)


def _is_simple(pattern: Pattern) -> bool:
    return isinstance(pattern, Causal | Everywhere)


def _columns(step: Piece) -> Bool[Tensor, "#batch slots"]:
    """Which slots of its own any of its queries sees."""
    if _is_simple(step.pattern):
        real = step.real
        if real is None:
            real = torch.ones(1, step.slots, dtype=torch.bool, device=step.keys.device)
        return real & (
            torch.arange(step.slots, device=real.device) < step.position - step.begin + step.queries
        )
    return step.whole().seen(0, step.queries).any(1).any(1)


def _reach(step: Piece) -> int:
    """How far back its queries look, at most."""
    windowed = step.pattern
    if isinstance(windowed, Both) and isinstance(windowed.right, Window):
        return windowed.right.radius
    queries = step.queries
    if step.real is None or queries > 1:
        return step.position - step.begin + queries - 1
    oldest = step.real.any(0).nonzero()
    return step.position - step.begin - int(oldest.min()) if len(oldest) else 0


def _fits(pattern: Pattern, step: Piece, real: Bool[Tensor, "batch slots"]) -> bool:
    """Whether a step sees just what a pattern shows of the real slots."""
    queries, slots = step.queries, real.shape[1]
    if not queries:
        return True
    expected = pattern.mask(queries, slots, step.position, real.device) & real[:, None]
    stop = step.begin + step.slots
    if bool(expected[..., : step.begin].any()) or bool(expected[..., stop:].any()):
        return False
    seen = step.whole().seen(0, queries)[:, 0]
    expected = expected[..., step.begin : stop]
    return torch.equal(seen.expand_as(expected), expected)


def _spelled_out(steps: list[Piece], slots: int) -> Shaped[Tensor, "#batch #heads queries slots"]:
    """What is added to the scores of each pair, −∞ where a query does not see a slot; or, where
    nothing is added, which it sees."""
    masks = [_mask(step) for step in steps if step.queries]
    begins = [step.begin for step in steps if step.queries]
    batch, heads = (max(mask.shape[axis] for mask in masks) for axis in (0, 1))
    added = [mask.dtype for mask in masks if mask.dtype != torch.bool]
    kind = added[0] if added else torch.bool
    hidden = -torch.inf if added else False
    queries = sum(mask.shape[2] for mask in masks)
    whole = torch.full((batch, heads, queries, slots), hidden, dtype=kind, device=masks[0].device)
    at = 0
    for mask, begin in zip(masks, begins, strict=True):
        if added and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=kind).masked_fill(~mask, -torch.inf)
        whole[:, :, at : at + mask.shape[2], begin : begin + mask.shape[3]] = mask
        at += mask.shape[2]
    return whole


def _mask(step: Piece) -> Shaped[Tensor, "#batch #heads queries slots"]:
    """What is added to the scores of each pair, or which are seen where nothing is added."""
    queries = step.queries
    bias = step.bias
    allowed = replace(step.whole(), bias=None).seen(0, queries)
    allowed = allowed.expand(-1, -1, queries, step.slots)
    if bias is None:
        return allowed
    if bias.dtype == torch.bool:
        return allowed & bias
    return torch.where(allowed, bias, -torch.inf)


def _filled(reading: FactoredReading) -> FactoredReading:
    """The reading without the room that a cache has made and not filled yet, behind its queries."""
    end = reading.counted_from + reading.shape[2]
    if end >= reading.shape[3]:
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
    return filled_up_to(step, slots) if slots < step.shape[3] else step


def filled_up_to(step: FactoredReading, slots: int) -> FactoredReading:
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


def stands_at_its_end(step: FactoredReading) -> bool:
    """Whether its queries are the newest of its slots."""
    return step.first is not None and step.first + step.shape[2] == step.shape[3]


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


def parents_of(alike: Bool[Tensor, "batch before"]) -> Int[Tensor, " batch"] | None:
    """From which row each row of a step goes on: from itself where it may, else from the first."""
    if not bool(alike.any(1).all()):
        return None
    first = alike.to(torch.uint8).argmax(1)
    own = torch.arange(len(alike), device=alike.device)
    return torch.where(alike.diagonal(), own, first)
