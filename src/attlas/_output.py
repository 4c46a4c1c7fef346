"""A file that a command writes: gzipped where its name ends in .gz."""

import gzip
import io
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from attlas.errors import AttlasError, unwritable

# Progress of a command in a file.


_PATIENCE = 60.0  # seconds between two messages about one file, if no bar is shown


class Bar:
    """Progress in lines: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, path: Path, total: int, initial: int) -> None:
        # rich takes long to import, and most commands show no bar.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._path, self._total = path, total
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(path.name, total=total, completed=initial)
        self._last = time.monotonic()

    def update(self, lines: int) -> None:
        """Report how many lines are done."""
        self._bar.update(self._task, completed=lines)
        if self._bar.disable and time.monotonic() - self._last > _PATIENCE:
            self._last = time.monotonic()
            print(f"attlas: {self._path}: {lines:,} of {self._total:,} lines", file=sys.stderr)

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


STANDARD = "-"
Output = io.BufferedIOBase


def check_writable(path: Path | str | None) -> None:
    """Check, as far as possible, that `open_output` can open this file. None and "-" always pass.

    Raises:
        AttlasError: If its folder is missing or not writable, and if it is a folder itself.
    """
    if path is not None and str(path) != STANDARD:
        _check(path, path if os.path.exists(path) else _folder(path))


def check_replaceable(path: Path | str | None) -> None:
    """The same for a file that is written under a temporary name and renamed, as figures and traces
    are. Then the folder must be writable, and not the old file. But what is no regular file, such
    as a pipe, is written in place.
    """
    if path is not None:
        target = os.path.realpath(path)  # a link stays a link
        as_it_is = os.path.exists(target) and not os.path.isfile(target)
        _check(path, target if as_it_is else _folder(target))


def _check(path: Path | str, requested: Path | str) -> None:
    folder = _folder(path)
    if not os.path.isdir(folder):
        problem, advice = f"no folder {folder}", "choose a folder that exists"
    elif os.path.isdir(path):
        problem, advice = "a folder of that name", "name a file"
    elif not os.access(requested, os.W_OK):
        problem, advice = "no right to write there", "get that right, or choose another place"
    else:
        return
    raise AttlasError(f"to write {path}", problem, advice)


def _folder(path: Path | str) -> str:
    return os.path.dirname(path) or os.curdir


def open_output(path: Path | str, files: ExitStack) -> Output:
    """The standard output for "-", else a new file that `files` closes.

    The old file stays until the first byte is written. If an error comes earlier, it is kept. The
        gzip file contains no name and no time: the same content gives the same bytes.

    Raises:
        AttlasError: If it cannot be opened.
        OSError: If it cannot be written later; the error names the file.
    """
    if str(path) == STANDARD:
        return cast(io.BufferedIOBase, sys.stdout.buffer)
    try:
        file = files.enter_context(_replacing(path))
    except OSError as error:
        raise unwritable(path, error) from None
    if Path(path).suffix != ".gz":
        return file
    return files.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))


def write_lines(path: Path | str, lines: Iterable[bytes]) -> None:
    """Write all lines into such a file.

    Raises:
        AttlasError: As `open_output`.
    """
    with ExitStack() as files:
        open_output(path, files).writelines(lines)


@contextmanager
def kept(lines: Iterable[bytes], path: Path | str | None) -> Iterator[None]:
    """Write the lines after the block, even after an error; None = nowhere.

    Raises:
        AttlasError: As `open_output`.
    """
    try:
        yield
    finally:
        if path is not None:
            write_lines(path, lines)


@contextmanager
def _replacing(path: Path | str) -> Iterator[Output]:
    created = not os.path.lexists(path)
    raw = _Patient(path)
    try:
        with io.BufferedWriter(raw) as file:
            try:
                yield file
            except BaseException:
                raw.leave()
                raise
            raw.begin()  # also where there was nothing to write
    except BaseException:
        # A disk may be so full that not a byte could be written.
        if created and (not raw.begun or not os.path.getsize(path)):
            with suppress(OSError):
                os.unlink(path)
        raise


class _Patient(io.FileIO):
    """A file that is emptied only when writing begins. Its errors, such as a full disk, name it."""

    begun = left = False

    def __init__(self, path: Path | str) -> None:
        super().__init__(os.fspath(path), "wb", opener=_as_it_is)

    def begin(self) -> None:
        """Remove the old content."""
        if not self.begun and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            self.truncate(0)
        self.begun = True

    def leave(self) -> None:
        """Keep the old file if nothing was written yet."""
        self.left = not self.begun

    def write(self, data: Any, /) -> int:
        try:
            if self.left:
                return len(data)
            self.begin()
            return super().write(data)
        except OSError as error:
            error.filename = error.filename or str(self.name)
            raise


def _as_it_is(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)  # the flags of `io.FileIO`: of bytes
