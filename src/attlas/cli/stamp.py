"""How a file looks from outside: while it looks so, nobody has written to it."""

import time
from pathlib import Path

from attlas.config import Config

_SETTLED = 2 * 10**9  # nanoseconds; no file system counts more coarsely


class Stamp(Config):
    """size: in bytes; modified: when it was last written, in nanoseconds since 1970; changed: when
    anything of it was, which nobody can set; inode: which file of the disk has this name. An older
    record lacks the last two, and is like no file.
    """

    size: int
    modified: int
    changed: int | None = None
    inode: int | None = None

    @classmethod
    def of(cls, path: Path) -> "Stamp | None":
        """That of a file which is yet to be read; None where there is none to be trusted.

        A file that was written just now may be written again and look the same; so does one whose
        clock is ahead of ours.
        """
        try:
            status = path.stat()
        except OSError:  # whoever reads it says so
            return None
        if time.time_ns() - status.st_mtime_ns < _SETTLED:
            return None
        return cls(
            size=status.st_size,
            modified=status.st_mtime_ns,
            changed=status.st_ctime_ns,
            inode=status.st_ino,
        )
