"""Where the queries of a reading stand that does not say it itself."""

from dataclasses import replace
from typing import TypeVar, cast

from attlas.recording.dense_reading import DenseReading
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.place import Place
from attlas.recording.reading import Reading

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
