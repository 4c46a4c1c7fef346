"""Recording: where a model looked, kept without changing how it computes."""

from attlas.recording.hooks import Tap
from attlas.recording.intervene import intervene, permuted, uniform, without
from attlas.recording.maps.base import Reading
from attlas.recording.maps.dense import DenseReading
from attlas.recording.maps.factored import FactoredReading
from attlas.recording.observe import observe
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
