"""The news of one map: who waits for it, and who has heard of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from attlas.recording.place import Place
from attlas.recording.tap import Journal, Listener


@dataclass(eq=False, slots=True)
class News:
    """One softmax is one map at each place, however many values its weights are multiplied with.

    waiting: what ends the wait of everyone who was told that the softmax was taken. factors: where
    the numbers lie of what was multiplied to scores, where that is known. sources: the news of the
    softmaxes that the map was made of; () = it is one itself.
    """

    waiting: list[Callable[[], None]] = field(default_factory=list)
    factors: tuple[int, ...] = ()
    sources: tuple["News", ...] = ()
    _heard: list[tuple[Journal | None, str, int]] = field(default_factory=list)

    def of_another(self, *others: "News") -> "News":
        """Those of a map that was made of this one, and of others: whoever waits, waits for any."""
        sources = [source for one in (self, *others) for source in one.sources or (one,)]
        return News(sources=tuple(dict.fromkeys(sources)))

    def arrive(self) -> None:
        """The softmax turned out to be attention: nobody waits any more."""
        for source in self.sources or (self,):
            while source.waiting:
                source.waiting.pop()()

    def first_for(self, who: Listener, place: Place, query: int) -> bool:
        """Whether this one has not heard yet of the map, with queries on that axis, there."""
        journal = who.journal
        if any(
            other is journal and (path, axis) == (place.path, query)
            for other, path, axis in self._heard
        ):
            return False
        self._heard.append((journal, place.path, query))
        return True
