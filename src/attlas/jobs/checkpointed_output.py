"""Resumable output: the translation of a file up to now, safe against kills."""

import gzip
import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import torch

from attlas._files import (
    explained,
    explained_reading,
    open_descriptor,
    parse_json,
    stored_bytes,
    sync,
    write_durably,
    write_whole,
)
from attlas._output import open_output
from attlas.config import Config
from attlas.errors import AttlasError, CheckpointError, quoted, shortened
from attlas.inference import Translator
from attlas.runs import Run
from attlas.runs.loaded import checkpoint_digest, settings_digest, vocabularies_digest

# Shards: the part of the files that this process works on.


@dataclass(frozen=True, slots=True)
class Shard:
    """Number `number` of `count` shards, from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read "I/N".

        Raises:
            AttlasError: For anything else, and for an I beyond N.
        """
        number, _, count = text.partition("/")
        if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return cls(int(number), int(count))
        raise AttlasError(
            "a shard I/N with I from 1 to N, such as 2/8",
            quoted(text),
            "say which of how many it is",
        )

    def of(self, paths: Sequence[Path]) -> list[Path]:
        """Every N-th path, sorted by name, so that shards never overlap.

        They are sorted first, because a shell lists files by the habits of its own language.
        """
        sorted_paths = sorted(
            paths, key=lambda path: (path.name.encode(errors="surrogateescape"), path)
        )
        members = set(sorted_paths[self.number - 1 :: self.count])
        return [path for path in paths if path in members]


# Fingerprints: while a file has the same one, it has not been written to.


_SETTLED = 2 * 10**9  # nanoseconds; no file system counts more coarsely


class FileFingerprint(Config):
    """What the file system says of a file. While it stays the same, the file was not written to.

    An older record lacks the last two, and equals no file.

    Args:
        size: In bytes.
        modified: When the content was last written, in nanoseconds since 1970.
        changed: When anything of the file was changed; no program can set it.
        inode: The number of the file on its disk.
    """

    size: int
    modified: int
    changed: int | None = None
    inode: int | None = None

    @classmethod
    def of(cls, path: Path) -> "FileFingerprint | None":
        """Check that of a file which is yet to be read; None where there is none to be trusted.

        A file that was written just now may be written again and look the same; so does one whose
        clock is ahead of ours.
        """
        try:
            status = path.stat()
        except OSError:  # the reader reports it
            return None
        if time.time_ns() - status.st_mtime_ns < _SETTLED:
            return None
        return cls(
            size=status.st_size,
            modified=status.st_mtime_ns,
            changed=status.st_ctime_ns,
            inode=status.st_ino,
        )


PROGRESS_DIR = ".attlas"  # the folder beside the outputs where their progress is kept
_EVERY = 2**20  # bytes that are copied at a time
TEXT = "text"  # what of an origin is the checksum of the text
# Files whose name does not say what they are.
_NAMES = {TEXT: "checksum of the text", "target": "checksum of its target", "window": "--window"}
_FACTS, _CHECKSUM = 3, 64  # facts that a message names; characters of a checksum
Origin = Mapping[str, str | int | float | bool]


class OutputProgress(Config):
    """How far an output is: `lines` lines are done, in `bytes` bytes with this checksum.

    Args:
        origin: What the translation depends on.
        whole: Whether the output is complete and in its place.
        fingerprint: That of the file with the text, if the output is complete and it can be
            trusted.
        assembled: The checksum of the final output, if it has other bytes than the lines.
        beside: Whether the companion file of the output is ours.
        checksum: `sum` at the time of writing.
    """

    origin: dict[str, str | int | float | bool]
    lines: int = 0
    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    whole: bool = False
    fingerprint: FileFingerprint | None = None
    assembled: str | None = None
    beside: bool = False
    checksum: str | None = None

    @property
    def sum(self) -> str:
        """The checksum of all the rest, but for the fingerprint: another one is but read again."""
        table = self.model_dump(mode="json", exclude={"fingerprint", "checksum"})
        return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


class ResumableOutput:
    """The progress of one output file; only the process that holds its lock may open it.

    In `.attlas/NAME/` beside the output are `progress.json`, which is replaced in one step, and
    `lines`, which holds at least the lines of `progress.json`. Bytes after these come from a killed
    write, and are cut off by the next run. The output itself is complete or absent.

    Progress without any line is dropped: a corrected command begins anew. A link stays a link:
    output and progress are at its target.

    Raises:
        AttlasError: If the output was begun from another origin, if it is not ours, and if the
            progress is damaged.
    """

    def __init__(self, output: Path, origin: Origin) -> None:
        self.output = output
        self._books = progress_dir(output)
        self._lines, self._record = self._books / "lines", _record(output)
        self._place = _real(output)
        progress = read_progress(output)
        existing = _output_exists(output)
        if progress is None and existing:
            raise _foreign(output)
        if progress and progress.whole and not existing:
            progress = None  # it was removed, so write it again
        if progress and not progress.whole and not progress.lines:
            progress = None  # perhaps after a mistake in the command
        if progress:
            self._check(progress, origin)
        self.progress = progress or OutputProgress(origin=dict(origin))
        if self.progress.whole:
            self._drop_lines()  # left over from a kill
            return
        with explained(self._lines), _open(self._lines) as file:
            self._digest = self._checked(file)
            self._spare()
            os.ftruncate(file.fileno(), self.progress.bytes)
        if not progress:
            self._keep(self.progress)

    def add(self, lines: int, content: bytes) -> None:
        """Save the translation of further lines durably."""
        with explained(self._lines), _open(self._lines) as file:
            os.lseek(file.fileno(), self.progress.bytes, os.SEEK_SET)
            write_whole(file.fileno(), content)
            os.fsync(file.fileno())
        self._digest.update(content)
        self._keep(
            self.progress.model_copy(
                update={
                    "lines": self.progress.lines + lines,
                    "bytes": self.progress.bytes + len(content),
                    "sha256": self._digest.hexdigest(),
                }
            )
        )

    def finish(self, fingerprint: FileFingerprint | None) -> None:
        """Write the final output, gzipped if its name ends in .gz.

        Args:
            fingerprint: Of the file with the text, taken before it was read.
        """
        complete_file = (
            self._books / f"whole{self.output.suffix if self.output.suffix == '.gz' else ''}"
        )
        with explained(self.output):
            with ExitStack() as files:
                shutil.copyfileobj(
                    files.enter_context(self._lines.open("rb")),
                    open_output(complete_file, files),
                    _EVERY,
                )
            sync(complete_file)
            self._spare()
            os.replace(complete_file, self._place)
            sync(self._place.parent)
        self._keep(self.progress.model_copy(update={"whole": True, "fingerprint": fingerprint}))
        self._drop_lines()

    def read_again(self, fingerprint: FileFingerprint | None) -> None:
        """Note that the text of a complete output was read again, and is unchanged."""
        if fingerprint and fingerprint != self.progress.fingerprint:
            self._keep(self.progress.model_copy(update={"fingerprint": fingerprint}))

    def forget(self) -> None:
        """Remove the progress."""
        with explained(self._books):
            self._record.unlink(missing_ok=True)
            self._lines.unlink(missing_ok=True)

    def _spare(self) -> None:
        """Check that no foreign file is in the output's place.

        Ours may be there, where a kill came between putting it there and recording that.
        """
        if self._stands() and output_checksum(self.output) != self._digest.hexdigest():
            raise _foreign(self.output)

    def _stands(self) -> bool:
        return _output_exists(self.output)

    def _drop_lines(self) -> None:
        with explained(self._lines):
            self._lines.unlink(missing_ok=True)

    def _keep(self, progress: OutputProgress) -> None:
        progress = progress.model_copy(update={"checksum": progress.sum})
        write_durably(self._record, progress.model_dump_json(indent=1).encode())
        self.progress = progress

    def _check(self, progress: OutputProgress, origin: Origin) -> None:
        """Check that what was begun has this origin."""
        keys = [k for k in {**progress.origin, **origin} if progress.origin.get(k) != origin.get(k)]
        if not keys:
            return
        raise AttlasError(
            f"{_described(keys, progress.origin)}, with which {self.output} was "
            f"{self._state(progress)}",
            _described(keys, origin),
            _advice(keys, progress, self.output, self._books),
        )

    def _state(self, progress: OutputProgress) -> str:
        """What was done to the output, for a message."""
        done = "translated"
        return done if progress.whole else f"{done} as far as line {progress.lines:,}"

    def _checked(self, file: IO[bytes]) -> Any:
        """The checksum so far; an error if the bytes on disk have changed."""
        digest, remaining = hashlib.sha256(), self.progress.bytes
        while remaining and (block := file.read(min(remaining, _EVERY))):
            digest.update(block)
            remaining -= len(block)
        if remaining or digest.hexdigest() != self.progress.sha256:
            raise _damaged(self.output, "other bytes than were written there")
        return digest


def progress_dir(output: Path) -> Path:
    """The folder where the progress of this output is kept."""
    path = _real(output)
    return path.parent / PROGRESS_DIR / path.name


def _real(output: Path) -> Path:
    return Path(os.path.realpath(output))


def text_of(output: Path, fingerprint: FileFingerprint | None) -> str | None:
    """The checksum of the text of an output that is whole and there, if its file has this stamp
    still.
    """
    progress = read_progress(output)
    if (
        fingerprint is None
        or progress is None
        or not progress.whole
        or progress.fingerprint != fingerprint
    ):
        return None
    if not _output_exists(output):
        return None
    text = progress.origin.get(TEXT)
    return text if isinstance(text, str) else None


def _output_exists(output: Path) -> bool:
    with explained(output):
        return output.exists()


def output_checksum(output: Path, *, unzipped: bool = True) -> str | None:
    """Of the text in an output, or of the file as it is; None: it has none that can be read."""
    if not output.is_file():
        return None
    with explained_reading(output, "an output of this command"), output.open("rb") as file:
        zipped = unzipped and output.suffix == ".gz"
        text = gzip.GzipFile(fileobj=file) if zipped else file
        digest = hashlib.sha256()
        try:
            while block := text.read(_EVERY):
                digest.update(block)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return None
    return digest.hexdigest()


def _foreign(output: Path) -> AttlasError:
    return AttlasError(
        f"to write {output}",
        "a file there that was not translated into this folder",
        "choose another folder, or take that file away",
    )


def _record(output: Path) -> Path:
    return progress_dir(output) / "progress.json"


def read_progress(output: Path) -> OutputProgress | None:
    """What is recorded of an output.

    Raises:
        AttlasError: If it is damaged.
    """
    record = _record(output)
    try:
        progress = OutputProgress.read(parse_json(stored_bytes(record)), str(record))
        if progress.checksum != progress.sum:
            raise ValueError("other bytes than were written there")
        return progress
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, AttlasError):
            raise _damaged(output, str(error)) from None
        raise _damaged(output, f"a damaged {record.name} ({error})") from None


def _damaged(output: Path, got: str) -> AttlasError:
    return CheckpointError(
        f"the whole progress of {output} in {progress_dir(output)}",
        got,
        "remove that folder to start this file again",
    )


def _described(keys: list[str], origin: Origin) -> str:
    """The first of these facts of an origin, and how many others there are, for a message."""
    facts = [f"{_NAMES.get(key, key)} = {_in_brief(origin.get(key, 'none'))}" for key in keys]
    more = len(facts) - _FACTS
    return ", ".join(facts[:_FACTS]) + (f" and {more} more" if more > 0 else "")


def _in_brief(value: object) -> str:
    """A fact; of a checksum the beginning."""
    text = str(value)
    return f"{text[:12]}…" if len(text) == _CHECKSUM else shortened(text)


def _advice(keys: list[str], progress: OutputProgress, output: Path, books: Path) -> str:
    """What to do where an output was begun with other facts than now: `keys` differ."""
    same = "give what it was begun with"
    if keys == ["window"]:
        same = f"give --window {progress.origin['window']}, with which it was begun"
    return (
        f"{same}, choose another output, or, to begin it anew, take away "
        f"{output if progress.whole else books}"
    )


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """A file to read and to write, made if need be, unbuffered."""
    descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file


# What a translation depends on, besides its text.


def origin_of(
    run: Run, checkpoint: str, translator: Translator, *, numbered: bool, window: int
) -> Origin:
    """The facts whose change would change a translation, except for rounding on another machine."""
    vocabularies = translator.vocabularies
    settings = translator.config.model_dump(mode="json", exclude_none=True)
    engine = str(translator.facts.get("engine", "attlas"))
    library = {} if engine == "attlas" else {"ctranslate2": version("ctranslate2")}
    return {
        "attlas": version("attlas"),
        "torch": str(torch.__version__),
        "checkpoint": checkpoint_digest(run, checkpoint, translator.model, vocabularies),
        "model": settings_digest(run),
        "vocabularies": vocabularies_digest(vocabularies),
        "engine": engine,
        **library,
        "device": translator.device.type,
        "n-best lists": numbered,
        "window": window,
        **{f"decoding.{key}": value for key, value in settings.items()},
    }
