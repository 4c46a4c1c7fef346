"""`metrics.jsonl`: one JSON object per event, the truth about a training."""

import json
import math
import os
from pathlib import Path
from typing import Any, Self

from attlas.runs.durable import explained, write_whole
from attlas.training.events import Event

_EVERY = 2**16  # bytes that are searched at a time


class Journal:
    """Appends events. Opening cuts the file back to the first `size` bytes, or to the last whole
    line of fewer.

    A checkpoint knows how long the journal was when it was saved; what a killed training wrote
    after that will happen again, and must not be told twice. `missing`: how many of those bytes
    the file lacks, because somebody shortened it.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        with explained(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            there = os.fstat(self._descriptor).st_size
            kept = size if size <= there else _end_of_last_line(self._descriptor, there)
            os.ftruncate(self._descriptor, kept)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self.missing = size - kept

    def write(self, event: Event) -> None:
        """Append one event."""
        record = {key: _finite(value) for key, value in event.record().items()}
        with explained(self.path):
            write_whole(self._descriptor, json.dumps(record, ensure_ascii=False).encode() + b"\n")

    def sync(self) -> int:
        """Make what was written last; how many bytes that is."""
        with explained(self.path):
            os.fsync(self._descriptor)
            return os.fstat(self._descriptor).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def _end_of_last_line(descriptor: int, size: int) -> int:
    """How many of the first `size` bytes are whole lines."""
    while size:
        start = max(0, size - _EVERY)
        place = os.pread(descriptor, size - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        size = start
    return 0


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
