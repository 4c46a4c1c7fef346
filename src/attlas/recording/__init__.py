"""Recording attention while a model runs, without changing what it computes."""

from attlas.recording.hooks import AttentionHook
from attlas.recording.intervene import intervene, permuted, uniform, without
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap
from attlas.recording.observe import observe
from attlas.recording.trace import Trace

__all__ = [
    "AttentionHook",
    "AttentionMap",
    "DenseAttentionMap",
    "FactoredAttentionMap",
    "Trace",
    "intervene",
    "observe",
    "permuted",
    "uniform",
    "without",
]
