"""Runs: the folder of a training."""

from attlas.runs.checkpoints import (
    AVERAGED,
    BEST,
    LAST,
    Checkpoint,
    CheckpointStore,
    numbered,
    read_checkpoint,
    write_checkpoint,
)
from attlas.runs.run import METRICS, NOTES, WATCH, FromRun, Run, load_weights
from attlas.runs.seal import CONFIG, PROVENANCE

__all__ = [
    "AVERAGED",
    "BEST",
    "CONFIG",
    "LAST",
    "METRICS",
    "NOTES",
    "PROVENANCE",
    "WATCH",
    "Checkpoint",
    "CheckpointStore",
    "FromRun",
    "Run",
    "load_weights",
    "numbered",
    "read_checkpoint",
    "write_checkpoint",
]
