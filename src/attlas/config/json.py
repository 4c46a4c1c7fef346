"""JSON, as settings, runs and texts are written in, and the files that it is read from."""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEEPEST = 64  # brackets within brackets: what goes through a value calls itself for each


def parse_json(
    text: str | bytes, fields: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value that it spells. fields: what makes an object of its fields; None = a dict.

    Errors: `ValueError` for what is none (a `json.JSONDecodeError` where that has a place), also
    for brackets that go deeper than `DEEPEST`.
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
    """How many tables and lists are within each other."""
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

    Errors: `ValueError` that names the first byte which is not UTF-8, and where it is.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(undecodable(error)) from None


def undecodable(error: UnicodeDecodeError) -> str:
    """Which byte is not UTF-8, and where it is: what Python counts from 0, in words."""
    before = error.object[: error.start]
    line, place = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
    byte = error.object[error.start]
    return f"byte 0x{byte:02x}, which is not UTF-8, at byte {place} of line {line}"


def stored_bytes(path: Path, most: int = -1) -> bytes:
    """The bytes of a file on disk, the first `most` of them; −1 = all.

    Errors: `OSError` also for a name that no file can have, and for a folder, a pipe or a device,
    which may never end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except ValueError as error:  # U+0000 in the name
        raise OSError(str(error)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            told = "Is a directory" if stat.S_ISDIR(mode) else "not a file on disk"
            raise OSError(code, told, str(path))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(most)
    finally:
        os.close(descriptor)
