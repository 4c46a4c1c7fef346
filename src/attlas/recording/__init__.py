"""Recording: where a model looked, kept without changing how it computes."""

from attlas.recording.dense_reading import DenseReading
from attlas.recording.factored_reading import FactoredReading
from attlas.recording.intervene import intervene, permuted, uniform, without
from attlas.recording.observe import observe
from attlas.recording.reading import Reading
from attlas.recording.tap import Tap
from attlas.recording.trace import Trace

__all__ = [
    "DenseReading",
    "FactoredReading",
    "Reading",
    "Tap",
    "Trace",
    "intervene",
    "observe",
    "permuted",
    "uniform",
    "without",
]
