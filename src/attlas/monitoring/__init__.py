"""Watching a training: statistics of every head, alarms, and the file that keeps them."""

from attlas.monitoring.alarms import Alarm, Thresholds
from attlas.monitoring.callbacks import lightning_callback, transformers_callback
from attlas.monitoring.history import Reading, read_history
from attlas.monitoring.monitor import AttentionWarning, Watch, watch
from attlas.monitoring.statistics import HeadStatistics

__all__ = [
    "Alarm",
    "AttentionWarning",
    "HeadStatistics",
    "Reading",
    "Thresholds",
    "Watch",
    "lightning_callback",
    "read_history",
    "transformers_callback",
    "watch",
]
