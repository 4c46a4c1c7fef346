"""Readings, and the file that keeps them: one JSON object a line."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from attlas._files import (
    explained,
    explained_reading,
    open_descriptor,
    parse_json,
    stored_bytes,
    write_whole,
)
from attlas.errors import AttlasError, DataError, quoted
from attlas.monitoring.alarms import Alarm, messages_of
from attlas.monitoring.statistics import FIGURES, HeadStatistics

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_COLUMNS = (
    "queries", "max_logit", "entropy", "normalized_entropy", "effective_keys", "first_share",
    "self_share", "received_share", "distance", "nonfinite",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """The statistics of all heads at one step.

    Args:
        heads: In the order in which the model called their layers.
        alarms: Those that begin with this step.
        nan_module: The path of the module whose output is the first with NaN; None = no output has.
            Of the model itself it is the name of its type.
    """

    step: int
    heads: Sequence[HeadStatistics]
    alarms: tuple[Alarm, ...] = ()
    nan_module: str | None = None

    def __str__(self) -> str:
        """A table with a row for each head, and the alarms that begin."""
        rows: list[tuple[str, ...]] = [("layer", "head", *_COLUMNS)]
        for head in self.heads:
            values = [getattr(head, name) for name in _COLUMNS]
            cells = ["" if value is None else f"{value:.4g}" for value in values]
            rows.append((head.layer, str(head.head), *cells))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"step {self.step}"]
        for layer, *cells in rows:
            aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([layer.ljust(widths[0]), *aligned]))
        return "\n".join([*lines, *messages_of(self.alarms)])

    def record(self) -> dict[str, Any]:
        """As JSON; None = not known or not finite."""
        heads = [{k: _finite(v) for k, v in asdict(head).items()} for head in self.heads]
        return {
            "step": self.step,
            "alarms": [alarm.record() for alarm in self.alarms],
            "heads": heads,
        } | ({} if self.nan_module is None else {"nan_module": self.nan_module})

    def flat(self, prefix: str = "attention") -> dict[str, float]:
        """One number a name, as loggers take them: "attention/encoder.0/head_3/entropy".

        What is not known or not finite is left out; "…/nonfinite" says where that is.
        """
        figures = {
            "/".join(filter(None, (prefix, head.layer, f"head_{head.head}", name))): value
            for head in self.heads
            for name, value in head.figures().items()
            if math.isfinite(value)
        }
        counts = {"step": float(self.step), "alarms": float(len(self.alarms))}
        return {f"{prefix}/{name}": value for name, value in counts.items()} | figures


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


WATCH_FILE = "a watch file"
_BEGINNING = b'{"step": '
_FIELDS = {field.name for field in fields(HeadStatistics)}


def head_statistics_of(record: dict[str, Any]) -> list[HeadStatistics]:
    """The statistics of a record, as `Reading.record` wrote them."""
    return [
        HeadStatistics(**{name: value for name, value in head.items() if name in _FIELDS})
        for head in record["heads"]
    ]


def read_history(path: Path | str) -> list[dict[str, Any]]:
    """The records of a watch file, in order of their steps.

    A line replaces those above it with the same step or a later one: a training that goes on from
    an earlier checkpoint repeats them. A last line without an end was cut off by a kill, and is
    left out.

    Raises:
        DataError: If the file is no watch file, or a line is damaged.
    """
    path = Path(path)
    with explained_reading(path, WATCH_FILE):
        *lines, rest = stored_bytes(path).split(b"\n")
    if rest[: len(_BEGINNING)] != _BEGINNING[: len(rest)]:  # no kill has cut off such a line
        _parsed(rest, path, len(lines) + 1)
    return _effective(_parsed(line, path, number) for number, line in enumerate(lines, 1))


def _effective(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    for record in records:
        _append(history, record)
    return history


def _append(history: list[dict[str, Any]], record: dict[str, Any]) -> None:
    while history and history[-1]["step"] >= record["step"]:
        history.pop()
    history.append(record)


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    expected = f"a reading of attlas.watch in line {number} of {path}"
    advice = "restore the line or remove it; name a file that attlas.watch wrote"
    try:
        record = parse_json(line)
    except ValueError as error:
        got = f"{quoted(line.decode(errors='replace'))} ({error})"
        raise DataError(expected, got, advice) from None
    if not _is_reading(record):
        raise DataError(expected, quoted(line.decode(errors="replace")), advice)
    found: dict[str, Any] = record
    return found


def _is_reading(record: Any) -> bool:
    """Return True if a value is what `Reading.record` writes."""
    if not isinstance(record, dict) or not {"step", "alarms", "heads"} <= record.keys():
        return False
    heads = record["heads"]
    return (
        type(record["step"]) is int
        and isinstance(record["alarms"], list)
        and all(map(_is_alarm, record["alarms"]))
        and isinstance(record.get("nan_module"), str | None)
        and isinstance(heads, list)
        and all(
            isinstance(head, dict)
            and isinstance(head.get("layer"), str)
            and all(type(head.get(name)) is int for name in ("head", "queries"))
            and all(type(head.get(name)) in (int, float, NoneType) for name in FIGURES)
            for head in heads
        )
    )


def _is_alarm(alarm: Any) -> bool:
    return (
        isinstance(alarm, dict)
        and all(isinstance(alarm.get(name), str) for name in ("kind", "layer"))
        and type(alarm.get("head")) in (int, NoneType)
    )


class GrowingHistory:
    """The records of a watch file that is being written: each line is read once."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: tuple[int, int] = (0, 0)  # the device and the number of the file
        self._read = self._lines = 0
        self._history: list[dict[str, Any]] = []

    def records(self) -> list[dict[str, Any]]:
        """Those of all whole lines, as of `read_history`.

        Raises:
            DataError: If the file is gone or no watch file, or a line is damaged.
        """
        with explained_reading(self.path, WATCH_FILE), self.path.open("rb") as file:
            found = os.fstat(file.fileno())
            if (found.st_dev, found.st_ino) != self._file or found.st_size < self._read:
                self._file = found.st_dev, found.st_ino
                self._read, self._lines, self._history = 0, 0, []
            file.seek(self._read)
            lines = file.read(found.st_size - self._read).split(b"\n")
        for line in lines[:-1]:
            _append(self._history, _parsed(line, self.path, self._lines + 1))
            self._lines += 1
            self._read += len(line) + 1
        return self._history


def _locks(descriptor: int) -> bool:
    """Return True if this process may write the file alone, as far as the system can say."""
    if fcntl is None:  # Windows, where this was not tried
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _unlock(descriptor: int) -> None:
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


class HistoryFile:
    """Appends readings to a watch file; what a kill left of a last line is cut off.

    One of them at a time writes a file. A new one takes the place of an older one in the same
    process, as where a notebook runs a cell again.

    Raises:
        AttlasError: If another process writes the file.
    """

    _in_this_process: ClassVar[WeakValueDictionary[tuple[int, int], "HistoryFile"]] = (
        WeakValueDictionary()
    )

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._descriptor = -1
        self._open()
        try:
            with explained(self.path):
                content = stored_bytes(self.path)
                os.ftruncate(self._descriptor, content.rfind(b"\n") + 1)
                os.lseek(self._descriptor, 0, os.SEEK_END)
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open the file and lock it."""
        with explained(self.path):
            self._descriptor = open_descriptor(self.path, os.O_RDWR | os.O_CREAT)
            found = os.fstat(self._descriptor)
        key = found.st_dev, found.st_ino
        older = self._in_this_process.get(key)
        if (
            older is not None and older is not self
        ):  # a new file may have the number of a removed one
            older.close()
        if not _locks(self._descriptor):
            self.close()
            raise AttlasError(
                f"to write {self.path}",
                "another process whose watch writes it",
                "pass another path, or wait until that process ends",
            )
        self._in_this_process[key] = self

    def write(self, record: dict[str, Any]) -> str | None:
        """Append one record, whole. Return what is wrong with the file otherwise."""
        if self._descriptor < 0:
            return "this watch writes it no more, as another one does or it cannot be made"
        problem = None
        if os.fstat(self._descriptor).st_nlink == 0:
            problem = f"it was removed, and begins anew with step {record['step']:,}"
            self.close()
            try:
                self._open()
            except AttlasError as error:
                return f"it was removed, and cannot be made anew ({error})"
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with explained(self.path):
            os.lseek(self._descriptor, 0, os.SEEK_END)
            write_whole(self._descriptor, line)
        return problem

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            _unlock(self._descriptor)  # a child that was forked meanwhile has the file open, too
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
