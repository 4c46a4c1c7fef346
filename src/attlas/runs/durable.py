"""Files that are whole or absent, also after a kill or a power cut."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attlas.errors import AttlasError

TEMPORARY = ".tmp"  # the suffix of what is not yet whole; a killed write leaves one behind


def write_durably(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: what was there before, or all of it, never a part.

    Temporary name in the same folder, fsync, rename, fsync of the folder.
    Errors: `AttlasError` where the disk is full or the folder may not be written; what was there
    stays as it was.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    with explained(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                write_whole(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError:
            _removed(temporary)
            raise
        sync(path.parent)


def write_whole(descriptor: int, content: bytes) -> None:
    """`os.write` until everything is written: the system may take a part only."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, last: a renamed file is safe when its folder is."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a refusal of the file system into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise AttlasError(
            f"to write {path}",
            (error.strerror or str(error)).lower(),
            "make room or give the right to write there; what was saved before is unharmed",
        ) from error


def _removed(path: Path) -> None:
    # If even that fails, the next start cleans it away; the first error is the one to report.
    with suppress(OSError):
        path.unlink(missing_ok=True)
