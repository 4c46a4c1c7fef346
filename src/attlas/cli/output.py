"""A file that a command writes: gzipped where its name ends in .gz."""

import gzip
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from attlas.errors import unwritable

STANDARD = "-"
Output = io.BufferedIOBase


def opened(path: Path | str, files: ExitStack) -> Output:
    """The standard output for "-", else a new file that `files` closes.

    What stood there before stays until the first byte is written; where a mistake comes earlier, it
    stays for good. The gzip file holds no name and no time: the same content makes the same file.
    Errors: `AttlasError` where it cannot be opened; an `OSError` with the name of the file where
    it cannot be written later.
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
    """All of them, into such a file. Errors: as `opened`."""
    with ExitStack() as files:
        opened(path, files).writelines(lines)


@contextmanager
def _replacing(path: Path | str) -> Iterator[Output]:
    ours = not os.path.lexists(path)
    raw = _Patient(path)
    try:
        with io.BufferedWriter(raw) as file:
            try:
                yield file
            except BaseException:
                raw.leave()
                raise
            raw.begin()  # also where there was nothing to write
    finally:
        if ours and not raw.begun:
            with suppress(OSError):
                os.unlink(path)


class _Patient(io.FileIO):
    """A file that is emptied when writing begins, or left; its errors, such as a full disk, say
    which it is.
    """

    begun = left = False

    def __init__(self, path: Path | str) -> None:
        super().__init__(os.fspath(path), "wb", opener=_as_it_is)

    def begin(self) -> None:
        """Take away what stood there."""
        if not self.begun and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            self.truncate(0)
        self.begun = True

    def leave(self) -> None:
        """If nothing is written yet, nothing will be."""
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
    return os.open(path, flags & ~os.O_TRUNC, 0o666)
