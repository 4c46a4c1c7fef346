"""A file that a command writes: gzipped where its name ends in .gz."""

import gzip
import io
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from attlas.errors import AttlasError

STANDARD = "-"
Output = io.BufferedIOBase


def opened(path: Path | str, files: ExitStack) -> Output:
    """The standard output for "-", else a new file that `files` closes.

    The gzip file holds no name and no time: the same content makes the same file.
    Errors: `AttlasError` where it cannot be opened; an `OSError` with the name of the file where
    it cannot be written later.
    """
    if str(path) == STANDARD:
        return cast(io.BufferedIOBase, sys.stdout.buffer)
    try:
        file = files.enter_context(io.BufferedWriter(_Named(path, "wb")))
    except OSError as error:
        raise AttlasError(
            f"to write {path}", error.strerror or str(error), "choose a folder that exists"
        ) from None
    if Path(path).suffix != ".gz":
        return file
    return files.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))


class _Named(io.FileIO):
    """A file whose errors, such as a full disk, say which it is."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = error.filename or str(self.name)
            raise
