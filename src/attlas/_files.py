"""Files and JSON: reading with good errors, atomic writes, new folders, locks."""

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attlas.errors import AttlasError, DataError

# Marks what Windows lacks or does otherwise. None of it was tried there.
WINDOWS = os.name == "nt"


def open_descriptor(path: Path | str, flags: int) -> int:
    """`os.open` for bytes as they are: Windows would write a line feed as two characters.

    The umask decides who may read and write a new file.
    """
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)


DEEPEST = 64  # brackets within brackets: a function that walks a value recurses once for each


def parse_json(
    text: str | bytes, fields: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse a JSON text.

    Args:
        fields: What makes an object of its fields; None = a dict.

    Raises:
        ValueError: For a text that is no JSON (a `json.JSONDecodeError` if the place is known), and
            for brackets nested deeper than `DEEPEST`.
    """
    try:
        value = json.loads(text, object_pairs_hook=fields)
    except UnicodeDecodeError as error:
        raise ValueError(undecodable(error)) from None
    except RecursionError:
        raise ValueError("brackets within brackets without end") from None
    letters = text if isinstance(text, str) else text.decode("latin-1")
    if letters.count("[") + letters.count("{") > DEEPEST and nested(value) > DEEPEST:
        raise ValueError(f"brackets within brackets, more than {DEEPEST} deep")
    return value


def nested(value: Any) -> int:
    """The depth of nested tables and lists."""
    deepest, layer = 0, [value]
    while layer := [
        inner
        for outer in layer
        if isinstance(outer, dict | list | tuple)
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        deepest += 1
    return deepest


def utf8_text(content: bytes) -> str:
    """The text that these bytes are, without a byte order mark.

    Raises:
        ValueError: That names the first byte which is not UTF-8, and if it is.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(undecodable(error)) from None


def undecodable(error: UnicodeDecodeError) -> str:
    """Say in words which byte is not UTF-8, and where it is."""
    prefix = error.object[: error.start]
    line, column = prefix.count(b"\n") + 1, error.start - prefix.rfind(b"\n")
    byte = error.object[error.start]
    return f"byte 0x{byte:02x}, which is not UTF-8, at byte {column} of line {line}"


def stored_bytes(path: Path, max_bytes: int = -1) -> bytes:
    """The bytes of a file on disk, the first `max_bytes` of them; −1 = all.

    Raises:
        OSError: For a name that no file can have; for a folder; for a pipe or a device, which may
            never end.
    """
    try:
        descriptor = open_descriptor(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:  # U+0000 in the name
        raise OSError(str(error)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            description = "Is a directory" if stat.S_ISDIR(mode) else "not a file on disk"
            raise OSError(code, description, str(path))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(max_bytes)
    finally:
        os.close(descriptor)


# Files that are whole or absent, also after a kill or a power cut.


TEMPORARY = ".tmp"  # suffix of an incomplete file; a killed write leaves one behind


def sha256_of(paths: Sequence[Path]) -> list[str]:
    """The SHA-256 of each file, of several at the same time.

    Raises:
        OSError: For one that cannot be read.
    """

    def digest(path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    if len(paths) < 2:
        return [*map(digest, paths)]
    with ThreadPoolExecutor(min(len(paths), _READERS)) as pool:
        return [*pool.map(digest, paths)]


_READERS = 4  # files that are read at the same time


def write_durably(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: what was there before, or all of it, never a part.

    Temporary name in the same folder, fsync, rename, fsync of the folder.

    Raises:
        AttlasError: If the disk is full or the folder is not writable. The old file stays as it
            was.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    with explained(path):
        try:
            descriptor = open_descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                write_whole(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError:
            _remove_quietly(temporary)
            raise
        sync(path.parent)


def write_whole(descriptor: int, content: bytes) -> None:
    """`os.write` until everything is written: the system may take a part only."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk; a renamed file is safe when its folder
    is.

    Windows syncs no folders, and no file that is open only for reading.
    """
    if WINDOWS and path.is_dir():
        return
    descriptor = open_descriptor(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the file system into one that names the file."""
    try:
        yield
    except OSError as error:
        advice = "make room or give the right to write there; what was saved before is safe"
        found = _described(error)
        if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
            found, advice = f"no folder {path.parent}", "choose a folder that exists, or make it"
        elif isinstance(error, IsADirectoryError):
            advice = "choose another name"
        raise AttlasError(f"to write {path}", found, advice) from error


def _described(error: OSError) -> str:
    """What is there in place of what was expected."""
    if isinstance(error, IsADirectoryError):
        return "a folder"
    if isinstance(error, NotADirectoryError):
        return "a file in place of a folder in that path"
    return (error.strerror or str(error)).lower()


@contextmanager
def explained_reading(path: Path, what: str) -> Iterator[None]:
    """Turn an error of the file system while reading into one that names the file.

    Args:
        what: What is to be there, as "a watch file".
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"{what} at {path}", _described(error), "check the path") from error


def _remove_quietly(path: Path) -> None:
    # If even that fails, the next start removes it. The first error is the one to report.
    with suppress(OSError):
        path.unlink(missing_ok=True)


# A folder that is whole or absent.


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to write into; after the block it is at `path`, synced.

    If the block raises, nothing is left at `path` or beside it. Only a kill can leave something: a
    hidden folder beside it, whose name ends in .tmp.

    Raises:
        AttlasError: If `path` exists and is not an empty folder, or if the disk refuses.
    """
    check_free(path)
    path = Path(os.path.abspath(path))  # with a name, also where it is "."
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    new_parents = [parent for parent in path.parents if not parent.exists()]
    with explained(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            yield temporary
            for file in sorted(temporary.rglob("*")):
                sync(file)
            sync(temporary)
            try:
                if WINDOWS and path.is_dir():
                    path.rmdir()  # it renames onto nothing, not even an empty folder
                temporary.rename(path)  # onto an empty folder too, but onto nothing else
            except OSError:
                check_free(path)  # another process was faster
                raise
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            with suppress(OSError):  # others may have put something there
                for parent in new_parents:
                    parent.rmdir()
            raise
        sync(path.parent)


def check_free(path: Path) -> None:
    """Check that the path does not exist, or is an empty folder.

    Raises:
        AttlasError: Otherwise.
    """
    if contents := existing(path):
        raise AttlasError(
            f"a new or an empty folder at {path}",
            contents,
            "choose another folder (--out), or take it away",
        )


def existing(path: Path) -> str:
    """Describe what exists there; "" = nothing, or an empty folder."""
    if path.is_dir() and not path.is_symlink():
        others = sorted(file.name for file in path.iterdir())
        return f"one that holds {', '.join(others[:3])}" if others else ""
    return "a file" if path.exists() or path.is_symlink() else ""


# Files that one process at a time may hold.


LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for the length of the block: one trainer per run.

    Raises:
        AttlasError: If another process holds it.
    """
    with held(folder / LOCK) as acquired:
        if not acquired:
            raise AttlasError(
                f"{folder} for this training alone",
                "a run that another process is training right now",
                "wait for it or stop it, or choose another folder",
            )
        yield


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock this file for the block, and create it if it is missing. Yield True if we hold the lock.

    If another process holds it, yield False, or `wait` until it is free. The system releases the
    lock when a process dies.

    Raises:
        AttlasError: If the disk refuses.
    """
    # `filelock` comes with torch; it locks by flock, and on Windows by msvcrt.
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=-1 if wait else 0, thread_local=False)
    with explained(path):
        if not path.parent.is_dir():  # or `filelock` would make it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
        try:
            lock.acquire()
            acquired = True
        except Timeout:
            acquired = False
        except NotImplementedError as error:  # a file system without locks
            raise OSError(errno.ENOSYS, str(error)) from None
    try:
        yield acquired
    finally:
        # Unlock before closing. A child that was forked meanwhile has a copy of the descriptor;
        # while one is open, closing ours alone does not release the lock.
        with suppress(OSError):
            lock.release()
