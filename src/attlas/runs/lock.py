"""One trainer per run folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attlas.errors import AttlasError
from attlas.runs.durable import explained

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for the length of the block; the system lets go of it when a process dies.

    Errors: `AttlasError` where somebody else holds it.
    """
    with explained(folder / LOCK):
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with explained(folder / LOCK):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AttlasError(
                    f"{folder} for this training alone",
                    "a run that another process is training right now",
                    "wait for it or stop it, or choose another folder",
                ) from None
        yield
    finally:
        os.close(descriptor)
