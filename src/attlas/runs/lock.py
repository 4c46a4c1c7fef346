"""Files that one process at a time may hold."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attlas.errors import AttlasError
from attlas.runs.durable import explained

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for the length of the block: one trainer per run.

    Errors: `AttlasError` where somebody else holds it.
    """
    with held(folder / LOCK) as ours:
        if not ours:
            raise AttlasError(
                f"{folder} for this training alone",
                "a run that another process is training right now",
                "wait for it or stop it, or choose another folder",
            )
        yield


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold this file, made if need be, for the length of the block; whether it is ours.

    It is not where somebody else holds it, unless we `wait` until nobody does. The system lets go
    of it when a process dies.
    Errors: `AttlasError` where the disk refuses.
    """
    with explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with explained(path):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                ours = True
            except BlockingIOError:
                ours = False
        yield ours
    finally:
        # A child that was forked meanwhile has a copy of the descriptor: while one is open, closing
        # ours alone does not let go of the file.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
