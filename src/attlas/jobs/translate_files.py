"""Translate many files; each output is whole or absent, and no work is done twice."""

import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from attlas._files import explained, held
from attlas._output import Bar
from attlas._text import count_noun
from attlas.data import stream_lines
from attlas.errors import AttlasError, DataError
from attlas.inference import Translation, Translator
from attlas.jobs.checkpointed_output import (
    PROGRESS_DIR,
    TEXT,
    FileFingerprint,
    Origin,
    ResumableOutput,
    Shard,
    progress_dir,
    text_of,
)
from attlas.jobs.inputs import check_distinct
from attlas.jobs.translate_stream import (
    Remarks,
    line_of,
    n_best_lines,
    remarks_on,
    translate_window,
)
from attlas.runs.loaded import short_digest


def translate_files(
    translator: Translator,
    sources: Sequence[Path],
    folder: Path,
    *,
    origin: Origin,
    shard: Shard,
    numbered: bool,
    window: int,
    trained_length: int | None = None,
) -> None:
    """Write the translation of each file to one of the same name in `folder`.

    Finished outputs are kept, and begun ones continue. A file that another process works on comes
    last: we wait for it, and continue it if that process dies. If a file fails, the others are
    still translated; failures are reported at the end.

    Args:
        origin: What beside its text a translation depends on.
        numbered, window, trained_length: As in `translate_lines`. Each finished window is saved.

    Raises:
        AttlasError: If an output would be written over what is read or over another, if the disk is
            full, and, after the other files, if one cannot be read or written or where something of
            what an output was begun with has changed.
    """
    outputs = _outputs(sources, folder)
    shard_outputs = {output: outputs[output] for output in shard.of(list(outputs))}
    if any(map(_is_file, shard_outputs.values())):
        with explained(folder):
            (folder / PROGRESS_DIR).mkdir(parents=True, exist_ok=True)
    jobs = _Work(
        translator, origin, numbered, window, trained_length, alone=len(shard_outputs) == 1
    )
    try:
        busy = [output for output, source in shard_outputs.items() if not jobs.done(source, output)]
        for output in busy:
            _print(f"waiting for {output}, which another process is at")
            jobs.done(shard_outputs[output], output, wait=True)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"the same command goes on with what is not yet in {folder}")
        raise
    finally:  # whatever ends it
        for source, error in jobs.failed.items():
            _print(f"{source} failed: {error}")
    shard_suffix = "" if shard.count == 1 else f" of shard {shard.number}/{shard.count}"
    if jobs.failed:
        raise AttlasError(
            f"all {count_noun(len(shard_outputs), 'file')}{shard_suffix} in {folder}",
            f"{len(shard_outputs) - len(jobs.failed):,} of them",
            "correct what the messages above name; then the same command does the rest",
        )
    earlier_lines = f", {jobs.before:,} of them before" if jobs.before else ""
    _print(f"all files{shard_suffix} are in {folder}: {len(shard_outputs):,}{earlier_lines}")


@dataclass
class _Work:
    """What is the same for all files; `before` counts those that were whole when we came, `failed`
    has the mistake in each file that could not be done.

    Args:
        alone: Of a single file it is raised.
    """

    translator: Translator
    origin: Origin
    numbered: bool
    window: int
    trained: int | None
    alone: bool
    before: int = 0
    failed: dict[Path, AttlasError] = field(default_factory=dict)

    def done(self, source: Path, output: Path, *, wait: bool = False) -> bool:
        """Return True if nothing is left to do for it; there is where another process is at it.

        Raises:
            AttlasError: If there is no room on the disk, nor will be for other files.
        """
        try:
            _check_file(source)
            with explained(output):
                progress_dir(output).mkdir(parents=True, exist_ok=True)
            with held(progress_dir(output) / "lock", wait=wait) as acquired:
                if acquired:
                    self._translate(source, output)
            return acquired
        except AttlasError as error:
            if self.alone or _no_room(error):
                raise
            self.failed[source] = error
            return True

    def _translate(self, source: Path, output: Path) -> None:
        fingerprint = FileFingerprint.of(source)
        checksum, total = text_of(output, fingerprint), 0
        if checksum is None:
            checksum, total = _read_through(source)
        part = ResumableOutput(output, {**self.origin, TEXT: checksum})
        if part.progress.whole:
            part.read_again(fingerprint)
            self.before += 1
            return
        first_line, start = part.progress.lines, time.monotonic()
        earlier_lines = f", {first_line:,} of them before" if first_line else ""
        _print(f"{source}: {count_noun(total, 'line')}{earlier_lines}")
        digest = hashlib.sha256()
        with ExitStack() as after, Bar(source, total, first_line) as bar:
            remarks = Remarks(f"{source}: ", at_once=False)
            after.callback(remarks.end)
            arriving = _hashed(stream_lines(source), digest)
            for _ in islice(arriving, first_line):
                pass
            while texts := list(islice(arriving, self.window)):
                first = part.progress.lines
                translations = translate_window(
                    self.translator, texts, first, f"{source}: ", self.trained, bar
                )
                remarks.add(first + 1, [*map(remarks_on, texts, translations)])
                output_lines = [
                    self._written(number, translation)
                    for number, translation in enumerate(translations, first)
                ]
                part.add(len(texts), b"".join(output_lines))
                bar.update(part.progress.lines)
        if short_digest(digest) != checksum:
            part.forget()
            raise DataError(
                f"{source} to stay as it is while it is translated",
                "another text at the end than at the start",
                "run it again when no process writes to that file",
            )
        part.finish(fingerprint)
        seconds = time.monotonic() - start
        _print(f"{output}: {count_noun(total - first_line, 'line')} in {seconds:,.1f} s")

    def _written(self, number: int, translation: Translation) -> bytes:
        if self.numbered:
            return b"".join(n_best_lines(number, translation))
        return line_of(translation)


def _outputs(sources: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Each output and the file that it is the translation of."""
    if _is_file(folder):
        raise AttlasError(
            "a folder to translate --into", f"the file {folder}", "name a folder, new or not"
        )
    outputs: dict[Path, Path] = {}
    for source in sources:
        output = folder / source.name
        if output in outputs:
            raise AttlasError(
                f"files of different names to translate into {folder}",
                f"{outputs[output]} and {source}",
                "translate them into different folders",
            )
        if os.path.realpath(source) == os.path.realpath(output):
            raise AttlasError(
                "another folder than that of the files themselves",
                f"{source} into {folder}",
                "choose another folder",
            )
        outputs[output] = source
    check_distinct(outputs.values(), outputs)
    return outputs


def _is_file(source: Path) -> bool:
    try:
        return source.is_file()
    except OSError:  # in a folder that may not be read
        return False


def _check_file(source: Path) -> None:
    if _is_file(source):
        return
    got, advice = f"no file at {source}", "check the path"
    if os.path.isdir(source):
        got, advice = f"the folder {source}", f"name the files in it: {quote(str(source))}/*"
    elif os.path.exists(source):
        got, advice = f"{source}, which is no regular file", "name regular files"
    raise DataError("files to translate", got, advice)


def _no_room(error: AttlasError) -> bool:
    """Return True if it is the disk's: nothing that comes later would fit."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _read_through(source: Path) -> tuple[str, int]:
    """The checksum of its text, and the number of its lines, each of which can be read."""
    digest = hashlib.sha256()
    lines = sum(1 for _ in _hashed(stream_lines(source), digest))
    return short_digest(digest), lines


def _hashed(lines: Iterator[str], digest: Any) -> Iterator[str]:
    for line in lines:
        digest.update(f"{line}\n".encode())
        yield line


def _print(text: str) -> None:
    print(f"attlas: {text}", file=sys.stderr)
