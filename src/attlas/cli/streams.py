"""The standard streams: UTF-8 whatever the locale says, and there whatever the shell did."""

import io
import os
import sys
from typing import Any

_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


class Telling(io.FileIO):
    """What is told on the side; when nobody can hear it any more, the work goes on in silence."""

    def write(self, data: Any, /) -> int:
        """Write, or be silent from now on."""
        try:
            return super().write(data)
        except OSError:  # the reader has left, or the disk is full
            silence(self.fileno())
            return len(data)


def prepare() -> None:
    """Make the three streams what the commands rely on."""
    _open_closed()
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files may be other bytes than UTF-8, and are written as they are.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    if sys.stderr is None or isinstance(sys.stderr, io.TextIOWrapper):
        telling = io.BufferedWriter(Telling(2, "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(
            telling, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True
        )


def silence(descriptor: int) -> None:
    """What goes to this descriptor goes nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _open_closed() -> None:
    """A closed descriptor would become that of the next file, which prints would then ruin."""
    for descriptor, mode in enumerate(_MODES):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest number that is free, which is this one
