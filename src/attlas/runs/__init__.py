"""Runs: the folder of a training on disk."""

from attlas.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from attlas.runs.device import device_named
from attlas.runs.durable import write_durably
from attlas.runs.lock import held, locked
from attlas.runs.run import METRICS, Run, load_weights
from attlas.runs.seal import CONFIG, PROVENANCE
from attlas.runs.shelf import AVERAGED, BEST, LAST, Shelf, numbered

__all__ = [
    "AVERAGED",
    "BEST",
    "CONFIG",
    "LAST",
    "METRICS",
    "PROVENANCE",
    "Checkpoint",
    "Run",
    "Shelf",
    "device_named",
    "held",
    "load_weights",
    "locked",
    "numbered",
    "read_checkpoint",
    "write_checkpoint",
    "write_durably",
]
