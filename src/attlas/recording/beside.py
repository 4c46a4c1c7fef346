"""The reading of another text than one's own."""

from dataclasses import replace

from attlas.patterns import everywhere
from attlas.recording.dense_reading import DenseReading
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.reading import Reading


def beside(reading: Reading) -> Reading:
    """The same with its first query at the first slot, unless it says where it stands."""
    if isinstance(reading, FactoredReading) and reading.pattern == everywhere:
        return replace(reading, first=0)
    if isinstance(reading, DenseReading) and reading.first is None:
        return replace(reading, first=0)
    return reading
