"""`metrics.jsonl`: one JSON object for each event."""

import json
import math
import os
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from attlas._files import explained, open_descriptor, write_whole
from attlas.errors import missing_extra
from attlas.runs import METRICS, WATCH
from attlas.training.checkpointing import TrainingState
from attlas.training.events import Event, Report, Trained, Validated, Watched

_EVERY = 2**16  # bytes that are searched at a time


class MetricsFile:
    """Appends events. Opening cuts the file back to the first `size` bytes, or to its last whole
    line.

    A checkpoint stores the length of the file at its time. What a killed training wrote later will
    happen again, and must not be written twice. `missing` is how many of those bytes the file
    lacks, because it was shortened.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        with explained(path):
            self._descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT)
            size_on_disk = os.fstat(self._descriptor).st_size
            kept_size = (
                size if size <= size_on_disk else _end_of_last_line(self._descriptor, size_on_disk)
            )
            os.ftruncate(self._descriptor, kept_size)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self.missing = size - kept_size

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
        os.lseek(descriptor, start, os.SEEK_SET)  # Windows has no pread
        part = b""
        while more := os.read(descriptor, size - start - len(part)):
            part += more
        offset = part.rfind(b"\n")
        if offset >= 0:
            return start + offset + 1
        size = start
    return 0


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The events as TensorBoard curves.


_NAMES = ("update", "epoch", "seconds")


def summary_writer() -> Any:
    """The class of torch that writes curves.

    Raises:
        AttlasError: Without TensorBoard.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise missing_extra("TensorBoard curves", "tensorboard") from None
    return SummaryWriter


class TensorBoard:
    """Writes `folder/tensorboard`; what an earlier session wrote after `update` is hidden.

    Raises:
        AttlasError: If TensorBoard is not installed.
    """

    def __init__(self, folder: Path, update: int) -> None:
        self._writer = summary_writer()(str(folder / "tensorboard"), purge_step=update + 1)

    def write(self, event: Event) -> None:
        """The numbers of an event, if it has any to draw."""
        if isinstance(event, Watched):
            for name, value in event.reading.flat().items():
                self._writer.add_scalar(name, value, event.update)
        if not isinstance(event, Trained | Validated):
            return
        for name, value in event.record().items():
            if isinstance(value, int | float) and name not in _NAMES:
                self._writer.add_scalar(f"{event.kind}/{name}", value, event.update)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()


# The logger: events go to `metrics.jsonl`, TensorBoard and the report.


class Clock:
    """Seconds of training over all sessions; `earlier_seconds` are those of the earlier ones."""

    def __init__(self, earlier_seconds: float) -> None:
        self._begun = time.monotonic() - earlier_seconds

    def seconds(self) -> float:
        """Until now."""
        return time.monotonic() - self._begun

    def moment(self, state: TrainingState) -> dict[str, Any]:
        """What every event says of when it happened."""
        return {
            "update": state.update,
            "epoch": state.epoch,
            "seconds": round(self.seconds(), 3),
        }


class EventLogger:
    """`with EventLogger(…) as logger: logger.log(event)`; what came after `state` is forgotten."""

    def __init__(
        self,
        folder: Path,
        state: TrainingState,
        clock: Clock,
        report: Report,
        *,
        curves: bool,
        watches: bool = False,
    ) -> None:
        self.clock, self._report = clock, report
        with ExitStack() as files:
            self.journal = files.enter_context(MetricsFile(folder / METRICS, state.journal))
            self._boards = [
                files.enter_context(TensorBoard(folder, state.update)) for _ in range(curves)
            ]
            # A run that was watched before, and is not now, keeps its readings up to here.
            watches = watches or (folder / WATCH).exists()
            self.readings = (
                files.enter_context(MetricsFile(folder / WATCH, state.watched)) if watches else None
            )
            self._files = files.pop_all()

    def log(self, event: Event) -> None:
        """Write the event to all of them."""
        if not isinstance(event, Watched):
            self.journal.write(event)
        elif self.readings is not None:
            self.readings.write(event)
        for board in self._boards:
            board.write(event)
        self._report(event)

    def stamped(self, state: TrainingState) -> TrainingState:
        """The state, with the time and the lengths of the synced files."""
        watched = state.watched if self.readings is None else self.readings.sync()
        journal = self.journal.sync()
        return replace(state, seconds=self.clock.seconds(), journal=journal, watched=watched)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()
