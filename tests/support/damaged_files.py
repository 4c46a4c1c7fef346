"""Files that are damaged, or another thing than a file: by chance, from a seed."""

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

PATIENCE = 120  # seconds, on a machine that does much else

_HUGE = (10**30, -(10**30), 1e308, -1, 0, 2**31, 2**63, 10**4000)
_OTHERS: tuple[Any, ...] = (
    *(None, True, "", "x", "\ud800", "a\x00b", "\ufeff", "x" * 100_000, [], {}, [[]], {"": {}}),
    *(1.5, *_HUGE),
)


def damaged(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """What was done to it, and what became of it: other bytes."""
    while True:
        name, change = chance.choice(_CHANGES)
        changed = change(content, chance)
        if changed != content:
            return name, changed


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"\x00")
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _zeroed(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    size = min(chance.choice((1, 16, 512, 4096)), len(content) - start)
    return content[:start] + bytes(size) + content[start + size :]


_PUT_IN = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b'"', b"\xed\xa0\x80", b"-", b"{"),
    *(b"\t", b",", b"\xe2\x80\xa8", b"nan", b"1e999", b"\x1b[31m", b"9" * 5000, b"[" * 3000),
)


def _inserted(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    what = chance.choice(_PUT_IN)
    return content[:start] + what + content[start:]


def _doubled(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return b"x"
    place = chance.randrange(len(lines))
    return b"".join([*lines[: place + 1], *lines[place:]])


def _shuffled(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def _returns(content: bytes, chance: random.Random) -> bytes:
    return content.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"")))


def _marked(content: bytes, chance: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + content


def _wide(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-7")))


def _empty(content: bytes, chance: random.Random) -> bytes:
    return b""


def _other_json(content: bytes, chance: random.Random) -> bytes:
    """JSON, or lines of it, of which one value is another: of another kind, gone, or twice."""
    lines = content.split(b"\n") if content.count(b"\n{") else [content]
    place = chance.randrange(len(lines))
    try:
        value = json.loads(lines[place])
    except ValueError:
        return content
    lines[place] = _spelt(_other(value, chance))
    return b"\n".join(lines)


def _spelt(value: Any) -> bytes:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value).encode()
    finally:
        sys.set_int_max_str_digits(before)


def _other(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return chance.choice(_OTHERS)
    keys: Any = list(value) if isinstance(value, dict) else range(len(value))
    key = chance.choice(list(keys))
    if chance.random() < 0.2:
        rest = value.copy()
        del rest[key]
        return rest
    changed: Any = value.copy()
    changed[key] = _other(value[key], chance)
    return changed


_CHANGES: tuple[tuple[str, Callable[[bytes, random.Random], bytes]], ...] = (
    *(("a flipped bit", _flip),) * 4,
    ("cut short", _cut),
    ("zeroed", _zeroed),
    *(("bytes put in", _inserted),) * 2,
    ("a line twice", _doubled),
    ("other order", _shuffled),
    ("other line ends", _returns),
    ("a byte order mark", _marked),
    ("another encoding", _wide),
    ("empty", _empty),
    *(("other values", _other_json),) * 4,
)


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere at all"))


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _nothing(path: Path) -> None:
    """Gone."""


PLACED: dict[str, Callable[[Path], None]] = {
    "a folder": _folder,
    "a pipe": _pipe,
    "a link to itself": _loop,
    "a link to nowhere": _nowhere,
    "a device without end": _device,
    "gone": _nothing,
}


class LateError(BaseException):
    """Something waited for what never comes; no command takes it for an error of its own."""


@contextmanager
def in_time() -> Iterator[None]:
    """An error where the block waits for ever."""

    def late(number: int, frame: FrameType | None) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
