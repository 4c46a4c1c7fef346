"""What a command shows of its progress, and the files that it writes: gzipped where a name ends
in .gz."""

import gzip
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

from attlas._text import count_noun
from attlas.errors import AttlasError, unwritable

# Progress of a command.


_GLANCE = 0.25  # seconds between two looks at how much is done
_DRAWN_AFTER = 2.0  # seconds: shorter work needs no bar
_FIRST, _PATIENCE = 10.0, 60.0  # seconds until a line, and between two, if no bar is drawn


class Bar:
    """Progress on the standard error, of work that takes more than a few seconds.

    On a terminal a bar, from the second 2 on; elsewhere a line after 10 seconds, and one each
    minute from then on.

    Args:
        name: What is done.
        total: How many lines, or others, there are.
        initial: How many of them were done before.
        counted: What one of them is.
    """

    def __init__(
        self, name: Path | str, total: int, initial: int = 0, counted: str = "line"
    ) -> None:
        self._name, self._total, self._done, self._counted = name, total, initial, counted
        self._running: Callable[[], int] = int  # 0
        self._shown, self._next_line = initial, _FIRST
        self._bar: Any = None
        self._left, self._begun = Event(), time.monotonic()
        self._thread = Thread(target=self._watch, daemon=True)

    def update(self, done: int) -> None:
        """Report how many are done."""
        self._done = done

    @contextmanager
    def counting(self, count: Callable[[], int]) -> Iterator[None]:
        """Within the block, what `count` grows by is done, too. Another thread calls it."""
        before = count()
        self._running = lambda: count() - before
        try:
            yield
        finally:
            self._running = int

    def _watch(self) -> None:
        while not self._left.wait(_GLANCE):
            self._show()

    def _show(self) -> None:
        seconds = time.monotonic() - self._begun
        done = min(self._done + self._running(), self._total)
        self._shown = max(self._shown, done)  # a window that has just ended is counted once again
        if sys.stderr is None:
            return
        if sys.stderr.isatty():
            if seconds > _DRAWN_AFTER:
                self._draw()
        elif seconds > self._next_line:
            self._next_line = seconds + _PATIENCE
            of_all = f"{self._shown:,} of {count_noun(self._total, self._counted)}"
            print(f"attlas: {self._name}: {of_all}, {seconds:,.0f} s so far", file=sys.stderr)

    def _draw(self) -> None:
        if self._bar is None:
            # rich takes long to import, and most commands show no bar.
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
            )
            name = self._name.name if isinstance(self._name, Path) else self._name
            self._bar.add_task(name, total=self._total, completed=self._shown)
            self._bar.start()
        (task,) = self._bar.task_ids
        self._bar.update(task, completed=self._shown, refresh=True)

    def __enter__(self) -> "Bar":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()
        if self._bar is not None:
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
    raw = _LateTruncatedFile(path)
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


class _LateTruncatedFile(io.FileIO):
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
