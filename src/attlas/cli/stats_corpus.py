"""The corpus of `attlas stats`: lines of a file, and perhaps the right translation of each."""

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attlas.cli.output import STANDARD
from attlas.data import stream_lines
from attlas.data.amount import amount
from attlas.data.lines import shown
from attlas.errors import AttlasError
from attlas.exporting.checksums import short
from attlas.runs.durable import explained

_EVERY = 2**20  # bytes that are copied at a time


@dataclass(frozen=True, slots=True)
class Corpus:
    """A file of texts, read through once: every line of it can be read, and how many there are.

    names: what messages call the two files, of which there may be copies. checksum: of the texts;
    target_checksum: of the file beside it, if there is one.
    """

    source: Path
    target: Path | None
    names: tuple[str, str]
    lines: int
    checksum: str
    target_checksum: str | None

    @classmethod
    def of(cls, source: Path, target: Path | None, names: tuple[str, str]) -> "Corpus":
        """Errors: `AttlasError` for a file that cannot be read, and for two of different length."""
        checksum, lines = _read_through(source, names[0])
        if target is None:
            return cls(source, None, names, lines, checksum, None)
        target_checksum, others = _read_through(target, names[1])
        if others != lines:
            raise AttlasError(
                f"a line of {names[1]} beside each of the {amount(lines, 'line')} of {names[0]}",
                amount(others, "line"),
                "give files of as many lines",
            )
        return cls(source, target, names, lines, checksum, target_checksum)

    def stream(self) -> Iterator[tuple[int, str, str | None]]:
        """The number of each line from 1, its text and its target.

        Errors: `AttlasError`, after the last one, where another text has come than before.
        """
        digests = hashlib.sha256(), hashlib.sha256()
        texts = _hashed(self.source, self.names[0], digests[0])
        beside = self.target
        targets = None if beside is None else _hashed(beside, self.names[1], digests[1])
        for number, text in enumerate(texts, 1):
            yield number, text, None if targets is None else next(targets, "")
        found = short(digests[0]), None if targets is None else short(digests[1])
        if found != (self.checksum, self.target_checksum):
            raise CorpusChangedError(
                f"{self.names[0]} to stay as it is while it is read",
                "another text at the end than at the start",
                "run it again when nobody writes to that file",
            )

    def check_has_words(self) -> None:
        """That a line has a word, and its target too; `AttlasError` otherwise."""
        if not any(_has_words(text, target) for _, text, target in self.stream()):
            raise _wordless(self.names[0], self.lines, paired=self.target is not None)


class CorpusChangedError(AttlasError):
    """Somebody wrote to the corpus."""


@contextmanager
def on_disk(source: str, place: Path) -> Iterator[Path]:
    """The path of a file that can be read again: the file itself, or what comes from a stream (the
    standard input, a pipe), which is kept at `place` for the length of the block.
    """
    if not _is_stream(source):
        yield Path(source)
        return
    try:
        with explained(place), place.open("wb") as kept:
            if source == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, kept, _EVERY)
            else:
                with Path(source).open("rb") as arriving:
                    shutil.copyfileobj(arriving, kept, _EVERY)
        yield place
    finally:
        with suppress(OSError):
            place.unlink()


def check_has_words(source: str) -> None:
    """That a file is there, and can be read up to a line with a word; a stream is left alone.

    Errors: `AttlasError` that names it.
    """
    if _is_stream(source):
        return
    lines = 0
    for text in stream_lines(source):
        lines += 1
        if _has_words(text, None):
            return
    raise _wordless(name_of(source), lines, paired=False)


def _is_stream(source: str) -> bool:
    if source == STANDARD:
        return True
    try:
        mode = os.stat(source).st_mode
    except (OSError, ValueError):  # whoever reads it says so
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def name_of(source: str) -> str:
    """How a message or a table names this file."""
    return shown(source)


def _has_words(text: str, target: str | None) -> bool:
    return bool(text.strip()) and (target is None or bool(target.strip()))


def _wordless(name: str, lines: int, *, paired: bool) -> AttlasError:
    came = f"{amount(lines, 'line')}, none of them with a word" if lines else "nothing"
    beside = ""
    if paired:
        came, beside = f"{came} on both sides", ", and one in its target"
    return AttlasError(
        f"a line with a word in {name}{beside}", came, "check that this is the text that was meant"
    )


def _read_through(path: Path, name: str) -> tuple[str, int]:
    digest = hashlib.sha256()
    lines = sum(1 for _ in _hashed(path, name, digest))
    return short(digest), lines


def _hashed(path: Path, name: str, digest: Any) -> Iterator[str]:
    for line in stream_lines(path, name):
        digest.update(f"{line}\n".encode())
        yield line
