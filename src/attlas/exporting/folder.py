"""A folder that is whole or absent."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attlas.errors import AttlasError
from attlas.runs.durable import TEMPORARY, explained, sync


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write into; after the block it stands at `path`, durably.

    Where the block fails nothing is left, at `path` or beside it. Only a kill can leave something:
    a hidden folder beside it, whose name ends in .tmp.
    Errors: `AttlasError` where something stands at `path` already (an empty folder may), or where
    the disk refuses.
    """
    check_free(path)
    path = Path(os.path.abspath(path))  # with a name, also where it is "."
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            yield temporary
            for file in sorted(temporary.rglob("*")):
                sync(file)
            sync(temporary)
            try:
                temporary.rename(path)  # onto an empty folder too, but onto nothing else
            except OSError:
                check_free(path)  # somebody was there first
                raise
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync(path.parent)


def check_free(path: Path) -> None:
    """That nothing, or an empty folder, stands there.

    Errors: `AttlasError` otherwise.
    """
    if came := standing(path):
        raise AttlasError(
            f"a new or an empty folder at {path}",
            came,
            "choose another folder (--out), or take it away",
        )


def standing(path: Path) -> str:
    """What is in the way there, in words; "" = nothing, or an empty folder."""
    if path.is_dir() and not path.is_symlink():
        others = sorted(file.name for file in path.iterdir())
        return f"one that holds {', '.join(others[:3])}" if others else ""
    return "a file" if path.exists() or path.is_symlink() else ""
