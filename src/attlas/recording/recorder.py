"""What is heard of attention without a tap, and what was to be heard and was not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from weakref import ref

from torch import Tensor

from attlas.recording.dense_generation import StitchedWeights, filled
from attlas.recording.generation import (
    Growth,
    Link,
    Piece,
    Stitched,
    beside,
    filled_up_to,
    newest,
    standing,
    without_room,
)
from attlas.recording.hooks import Place
from attlas.recording.maps.base import Reading
from attlas.recording.maps.dense import DenseReading
from attlas.recording.maps.factored import FactoredReading
from attlas.recording.torch_functions.contents import Content
from attlas.recording.trace import Growing, Selection, Trace

_NOT_MULTIPLIED = (
    "a softmax that is not multiplied with values by a product over its slots; weights of sampled "
    "points (deformable attention) are such, as they have no axis of keys"
)
_NOT_FOLLOWED = "a softmax of the product of two tensors, which no product with values followed"


@dataclass(eq=False, slots=True)
class Journal:
    """Fills a trace; a step that goes on from an earlier call joins it.

    keep: so many calls of each layer, the newest; None = all. ran: whether a module of the model
    was at work at all. heard: the paths of all layers that looked, wanted or not; softmaxed:
    those of all modules that took a softmax.
    """

    trace: Trace
    selection: Selection = field(default_factory=Selection)
    keep: int | None = None
    ran: bool = False
    heard: set[str] = field(default_factory=set)
    softmaxed: set[str] = field(default_factory=set)
    _calls: "dict[str, list[_Call]]" = field(default_factory=dict)
    _growth: "_Step | None" = None
    _heard: int = 0
    _missed: Counter[tuple[str, str]] = field(default_factory=Counter)  # by path and reason

    def wants(self, path: str) -> bool:
        """Whether the reading of a layer that looks is to be kept."""
        self.heard.add(path)
        return self.selection.wants(path)

    def hear(self, place: Place, reading: Reading, content: Content | None = None) -> None:
        """One more call at this place; content: what its keys hold, where that is known."""
        batch, _, queries, slots = reading.shape
        place = replace(place, across=place.looks_across(batch, queries, slots))
        path, cache = place.path, place.cache
        if place.across is not None:
            self.trace.relate(path, across=place.across)
        reading = standing(reading, place)
        if place.across is False and cache is not None:
            reading = without_room(reading)
        self._heard += 1
        calls = self._calls.setdefault(path, [])
        goes_on = reading.shape[2] < reading.shape[3] or cache is not None or self._is_growing()
        if goes_on and calls and self._joins(place, reading, content):
            return
        whole = self.selection.part(reading, path).kept()
        kept: Stitched | StitchedWeights | None = None
        if isinstance(reading, FactoredReading) and isinstance(whole, FactoredReading):
            kept = Stitched(whole, content, reading)
        elif isinstance(whole, DenseReading):
            kept = StitchedWeights(whole, reading.shape[1])
        aside = _stands_aside(place, reading)
        self._begin(path, cache, whole if kept is None else kept, aside=aside)
        if len(calls) > 1:
            self.trace.say_apart(path, _why_apart(place, reading))

    def _is_growing(self) -> bool:
        """Whether self-attention of another layer has just gone on, in the same step."""
        return self._growth is not None

    def _begin(
        self,
        path: str,
        cache: Any,
        kept: Stitched | StitchedWeights | Reading,
        *,
        aside: bool = False,
    ) -> None:
        calls = self._calls[path]
        calls.append(_Call(_weakly(cache), kept, self._heard, aside))
        self._keep(path, kept)
        del calls[: len(calls) - len(self.trace.calls_so_far(path))]

    def _joins(self, place: Place, reading: Reading, content: Content | None) -> bool:
        """Whether a call goes on from an earlier one, to which it is added then."""
        cropped: list[tuple[_Call, FactoredReading, Link]] = []
        for call in reversed(self._calls[place.path]):
            same = place.cache is not None and call.cache() is place.cache
            if isinstance(reading, FactoredReading) and isinstance(call.kept, Stitched):
                if place.across is not True and not call.aside:
                    step, link = self._linked(place, call.kept, reading, content)
                    if link is not None and not call.kept.drops(step, link):
                        self._grow(place, call, step, link, content)
                        return True
                    if link is not None:
                        cropped.append((call, step, link))
                asks = place.across is not False
                if asks and self._asks_again(place, call, reading, content, same=same):
                    return True
            elif isinstance(reading, DenseReading) and self._follows(
                place, call, reading, same=same
            ):
                return True
        return bool(cropped) and self._goes_back(place, cropped, content)

    def _linked(
        self,
        place: Place,
        kept: Stitched,
        reading: FactoredReading,
        content: Content | None,
    ) -> tuple[FactoredReading, Link | None]:
        path, cache = place.path, place.cache
        # Where nobody knows where the queries of the first call stand, all may look ahead.
        aside = not kept.is_placed and _stands_aside(place, reading)
        reading = newest(reading)
        with kept.trying() as found:
            slots = kept.slots + reading.shape[2]
            if content is not None:
                slots = content.stop - content.start
            step = filled_up_to(reading, slots)
            crops = cache is not None
            link = kept.linked(step, content, lambda one: self._part(one, path), crops=crops)
            link = None if aside else link
            found += [] if link is None else [link]
        return step, link

    def _part(self, reading: FactoredReading, path: str) -> FactoredReading:
        chosen = self.selection.part(reading, path)
        assert isinstance(chosen, FactoredReading)
        return chosen

    def _piece(self, path: str, call: FactoredReading, new: int) -> Piece:
        """What is kept of a call whose last `new` slots are new."""

        def part(bare: FactoredReading, bias: Tensor | None) -> tuple[FactoredReading, Any]:
            return self._part(bare, path), self.selection.part_of_bias(bias)

        return Piece.of(call, new, None if self.selection.heads is None else part)

    def _grow(
        self,
        place: Place,
        call: "_Call",
        step: FactoredReading,
        link: Link,
        content: Content | None,
    ) -> None:
        kept = call.kept
        assert isinstance(kept, Stitched)
        before, queries = kept.asked, step.shape[2]
        kept.grow(self._piece(place.path, step, queries), link, content)
        growth = Growth(before, kept.queries - queries, kept.queries, link.parents, link.alike)
        call.heard = self._heard
        self._growth = _Step(_weakly(place.cache), growth, self._heard, kept)

    def _goes_back(
        self,
        place: Place,
        cropped: list[tuple["_Call", FactoredReading, Link]],
        content: Content | None,
    ) -> bool:
        """A call that goes on from a part of an earlier one, whose cache was cropped or copied.

        Where candidates of the newest call were taken back, as in a search that guesses ahead, they
        go from the map. What goes back further, or another cache that begins alike, is a map of its
        own that begins as the earlier one does.
        """
        for call, step, link in cropped:
            kept, cache = call.kept, call.cache()
            assert isinstance(kept, Stitched)
            newest = kept.slots - kept.drops(step, link) > kept.newest
            if newest and (cache is place.cache or cache is None):
                self._grow(place, call, step, link, content)
                return True
        call, step, link = cropped[0]
        kept = call.kept
        assert isinstance(kept, Stitched)
        before, branch = kept.asked, _Call(_weakly(place.cache), kept.branch(), self._heard)
        self._grow(place, branch, step, link, content)
        assert self._growth is not None
        growth = self._growth.growth._replace(before=before, branched=True)
        self._growth = self._growth._replace(growth=growth)
        self._begin(place.path, place.cache, branch.kept)
        self.trace.say_apart(place.path, _BRANCHED)
        return True

    def _asks_again(
        self,
        place: Place,
        call: "_Call",
        reading: FactoredReading,
        content: Content | None,
        *,
        same: bool,
    ) -> bool:
        """Whether a call asks the source of an earlier one again, in the same generation."""
        growth = self._growth_of(place, call, reading.shape[2])
        kept = call.kept
        if not isinstance(kept, Stitched) or not (same or growth is not None):
            return False
        path = place.path
        rows = kept.same_source(reading, content, growth, lambda one: self._part(one, path))
        if rows is None:
            return False
        piece = self._piece(path, reading, 0)
        before = kept.queries if growth is None else min(growth.kept, kept.queries)
        if growth is not None and growth.branched:
            kept = kept.branch()
            self._begin(path, place.cache, kept)
            self.trace.say_apart(path, _BRANCHED)
        kept.ask_again(piece, rows.parents, before, content)
        kept.goes_with(None if self._growth is None or growth is None else self._growth.kept)
        call.heard = self._heard
        return True

    def _follows(self, place: Place, call: "_Call", reading: DenseReading, *, same: bool) -> bool:
        """Whether weights go on from those of an earlier call, in the same generation."""
        growth = self._growth_of(place, call, reading.shape[2])
        kept = call.kept
        if not isinstance(kept, StitchedWeights) or not (same or growth is not None):
            return False
        if growth is not None and growth.branched:
            return False
        if place.across is False:
            kept.filled()
            reading = filled(reading)
        rows = kept.followed(reading, growth, across=place.across)
        if rows is None:
            return False
        before = kept.queries if growth is None else min(growth.kept, kept.queries)
        piece = self.selection.part(reading, place.path).kept()
        assert isinstance(piece, DenseReading)
        kept.grow(piece, rows, before)
        call.heard = self._heard
        return True

    def _growth_of(self, place: Place, call: "_Call", queries: int) -> Growth | None:
        """What the step at hand has made of self-attention, where an earlier call has as many
        queries as that had; None = not known."""
        known = self._growth
        if known is None or call.kept is None or isinstance(call.kept, Reading):
            return None
        cache = known.cache()
        if place.cache is not None or cache is not None:
            if cache is not place.cache:
                return None
        elif known.heard < call.heard:
            return None  # of a step before
        growth = known.growth
        fits = growth.after - growth.kept == queries
        asked = call.kept.asked if isinstance(call.kept, Stitched) else call.kept.queries
        return growth if fits and asked in (growth.before, growth.kept) else None

    def note(self, path: str, reading: Reading, across: bool | None) -> None:
        """One more call of a layer that spoke for itself."""
        if self.wants(path):
            if across is not None:
                self.trace.relate(path, across=across)
            reading = self.selection.part(reading, path)
            # A single query may be a step of many, or a learned one, if it does not say its place.
            self._keep(path, beside(reading) if across and reading.shape[2] > 1 else reading)

    def _keep(self, path: str, reading: Reading | Growing) -> None:
        self.trace.note(path, reading)
        if self.keep is not None:
            self.trace.forget(path, self.keep)

    def expect(self, place: Place, surely: bool) -> None:
        """A softmax was taken here: of queries and keys, or of a module whose name may say that it
        is about attention."""
        self.softmaxed.add(place.path)
        self._await(place, surely, 1)

    def meet(self, place: Place, surely: bool) -> None:
        """What was expected here has come."""
        self._await(place, surely, -1)

    def _await(self, place: Place, surely: bool, count: int) -> None:
        if _by_name(place):
            self._missed[place.path, _NOT_MULTIPLIED] += count
        elif surely:
            self._missed[place.path, _NOT_FOLLOWED] += count

    def miss(self, place: Place, why: str) -> None:
        """One more call of which no reading can be made."""
        self._missed[place.path, why] += 1

    def missed(self) -> list[str]:
        """What seems to have looked and is not in the trace: where, how often and why."""
        alike: dict[tuple[str, int], list[str]] = {}
        for (path, why), count in sorted(self._missed.items()):
            if count and self.selection.wants(path):
                alike.setdefault((why, count), []).append(path)
        return [f"{paths} ({count} × each): {why}" for (why, count), paths in alike.items()]


@dataclass(eq=False, slots=True)
class _Call:
    """One map of a layer: of which cache, what is kept of it, and when it was heard last.

    aside: whether its queries are known not to be the newest of its slots.
    """

    cache: Callable[[], Any]
    kept: Stitched | StitchedWeights | Reading
    heard: int
    aside: bool = False


class _Step(NamedTuple):
    """What the newest step has made of self-attention: of which cache, and when."""

    cache: Callable[[], Any]
    growth: Growth
    heard: int
    kept: Stitched


_BRANCHED = (
    "a cache that was cropped by whole calls, or another that begins alike: each text that was "
    "gone on with has a map of its own"
)


def _stands_aside(place: Place, reading: Reading) -> bool:
    """Whether the queries are a part of the text of the keys, and not its end."""
    if place.taken is None or place.cache is not None or reading.position is not None:
        return False
    return place.taken() not in (None, newest(reading).position)


def _why_apart(place: Place, reading: Reading) -> str:
    """Why a call does not go on from an earlier one."""
    queries, slots = reading.shape[2:]
    if place.across:
        return (
            "another source, or one that was asked again without a sign that it was in the same "
            "generation"
        )
    if queries >= slots:
        return "a call that brought a text of its own, without slots of before"
    if isinstance(reading, DenseReading):
        return (
            "a step of which the weights alone are known, which do not say from which slots and "
            "rows of before it goes on"
        )
    return (
        "a step whose earlier keys are not those of any call before: a cache that rounds or "
        "changes what it keeps, or that was filled while nobody observed"
    )


def _weakly(cache: Any) -> Callable[[], Any]:
    """What gives it back while it lives: a trace does not keep the memory of a generation.

    Tuples, which cannot be referred to so, are others with each step.
    """
    try:
        return ref(cache)
    except TypeError:
        return lambda: None


def _by_name(place: Place) -> bool:
    name = type(place.module).__name__.lower()
    return "attention" in name or "attn" in name
