"""What is heard of attention without a tap, and what was to be heard and was not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from weakref import ref

from torch import Tensor

from attlas.recording.beside import beside, standing
from attlas.recording.dense_steps import followed
from attlas.recording.place import Place
from attlas.recording.reading import Reading
from attlas.recording.selection import Selection
from attlas.recording.stitching import asked_again, grown, without_room
from attlas.recording.trace import Trace

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
    _caches: dict[str, list[Callable[[], Any]]] = field(default_factory=dict)
    _lineage: "_Lineage | None" = None
    _missed: Counter[tuple[str, str]] = field(default_factory=Counter)  # by path and reason

    def wants(self, path: str) -> bool:
        """Whether the reading of a layer that looks is to be kept."""
        self.heard.add(path)
        return self.selection.wants(path)

    def hear(self, place: Place, reading: Reading) -> None:
        """One more call at this place."""
        batch, _, queries, slots = reading.shape
        place = replace(place, across=place.looks_across(batch, queries, slots))
        path, cache = place.path, place.cache
        reading = self.selection.part(reading, path).kept()
        reading = standing(reading, place)
        if place.across is False and cache is not None:
            reading = without_room(reading)
        known = self._caches.setdefault(path, [])
        if place.across is not None:
            self.trace.relate(path, across=place.across)
        goes_on = reading.shape[2] < reading.shape[3] or cache is not None
        calls = self.trace.calls(path) if goes_on and known else []
        for call in reversed(range(len(calls))):
            earlier = calls[call]
            longer = grown(earlier, reading)
            if longer is not None:
                if cache is not None:
                    self._lineage = _Lineage(
                        _weakly(cache), longer.reading.shape[2], longer.parents
                    )
                self.trace.go_on(path, call, longer.reading)
                return
            if cache is not None and known[call]() is cache:
                parents = self._parents(cache, earlier.shape[2] + reading.shape[2])
                again: Reading | None = None
                if place.across is not False:
                    again = asked_again(earlier, reading, parents)
                again = again or followed(earlier, reading, parents, across=place.across)
                if again is not None:
                    self.trace.go_on(path, call, again)
                    return
        known.append(_weakly(cache))
        self._keep(path, reading)
        del known[: len(known) - len(self.trace.calls(path))]

    def _parents(self, cache: Any, queries: int) -> Tensor | None:
        """From which rows those of this cache may have gone on to so many queries; None = not
        known."""
        known = self._lineage
        fits = known is not None and known.cache() is cache and known.queries == queries
        return known.parents if known is not None and fits else None

    def note(self, path: str, reading: Reading, across: bool | None) -> None:
        """One more call of a layer that spoke for itself."""
        if self.wants(path):
            if across is not None:
                self.trace.relate(path, across=across)
            reading = self.selection.part(reading, path)
            # A single query may be a step of many, or a learned one, if it does not say its place.
            self._keep(path, beside(reading) if across and reading.shape[2] > 1 else reading)

    def _keep(self, path: str, reading: Reading) -> None:
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


class _Lineage(NamedTuple):
    """From which rows each row of a step may have gone on, by the keys of self-attention."""

    cache: Callable[[], Any]
    queries: int
    parents: Tensor


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
