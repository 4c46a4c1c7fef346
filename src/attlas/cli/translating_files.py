"""Many files through a translator, each of them whole or not at all, and never twice."""

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attlas.cli.given import check_distinct
from attlas.cli.origin import short
from attlas.cli.part import Origin, Part, books
from attlas.cli.shard import Shard
from attlas.cli.translating import line_of, n_best_lines, remark
from attlas.data import stream_lines
from attlas.decoding import Translation, Translator
from attlas.errors import AttlasError
from attlas.runs import held
from attlas.runs.durable import explained

_PATIENCE = 60.0  # seconds between two words about one file, where no bar shows how far it is


def translate_files(
    translator: Translator,
    sources: Sequence[Path],
    folder: Path,
    *,
    origin: Origin,
    shard: Shard,
    numbered: bool,
    window: int,
) -> None:
    """Write the translation of each file to one of the same name in `folder`.

    What is done already is left as it is, what was begun goes on. A file that another process is at
    comes last; we wait for it, and go on with it should that process die. origin: what beside its
    text a translation depends on. numbered, window: as in `translate_lines`; what is done is kept
    after each window.

    Errors: `AttlasError` where a file cannot be read or written, and where something of what an
    output was begun with has changed.
    """
    outputs = _outputs(sources, folder)
    mine = {output: outputs[output] for output in shard.of(list(outputs))}
    with explained(folder):
        for output in mine:
            books(output).mkdir(parents=True, exist_ok=True)
    work = _Work(translator, origin, numbered, window)
    busy = [output for output, source in mine.items() if not work.done(source, output)]
    for output in busy:
        _say(f"waiting for {output}, which another process is at")
        work.done(mine[output], output, wait=True)
    of = "" if shard.count == 1 else f" of shard {shard.number}/{shard.count}"
    before = f", {work.before:,} of them before" if work.before else ""
    _say(f"all files{of} are in {folder}: {len(mine):,}{before}")


@dataclass
class _Work:
    """What is the same for all files; `before` counts those that were whole when we came."""

    translator: Translator
    origin: Origin
    numbered: bool
    window: int
    before: int = 0

    def done(self, source: Path, output: Path, *, wait: bool = False) -> bool:
        """Whether the output is there now; it is not where another process is at it."""
        with held(books(output) / "lock", wait=wait) as ours:
            if ours:
                self._translate(source, output)
        return ours

    def _translate(self, source: Path, output: Path) -> None:
        checksum, total = _read_through(source)
        part = Part(output, {**self.origin, "text": checksum})
        if part.progress.whole:
            self.before += 1
            return
        begun, start = part.progress.lines, time.monotonic()
        _say(f"{source}: {total:,} lines{f', {begun:,} of them before' if begun else ''}")
        digest = hashlib.sha256()
        with _Told(source, total, begun) as told:
            arriving = _hashed(stream_lines(source), digest)
            for _ in islice(arriving, begun):
                pass
            while texts := list(islice(arriving, self.window)):
                found = self.translator.many(texts, window=len(texts))
                first = part.progress.lines
                written = [
                    self._written(source, number, translation)
                    for number, translation in enumerate(found, first)
                ]
                part.add(len(texts), b"".join(written))
                told.tell(part.progress.lines)
        if short(digest) != checksum:
            part.forget()
            raise AttlasError(
                f"{source} to stay as it is while it is translated",
                "another text at the end than at the start",
                "run it again when nobody writes to that file",
            )
        part.finish()
        seconds = time.monotonic() - start
        _say(f"{output}: {total - begun:,} lines in {seconds:,.1f} s")

    def _written(self, source: Path, number: int, translation: Translation) -> bytes:
        remark(f"{source}: line {number + 1}", translation)
        if self.numbered:
            return b"".join(n_best_lines(number, translation))
        return line_of(translation)


class _Told:
    """How far a file is: a bar on a terminal, elsewhere a line now and then."""

    def __init__(self, source: Path, total: int, begun: int) -> None:
        console = Console(stderr=True)
        self._source, self._total = source, total
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(source.name, total=total, completed=begun)
        self._last = time.monotonic()

    def tell(self, lines: int) -> None:
        """So many lines are done."""
        self._bar.update(self._task, completed=lines)
        if self._bar.disable and time.monotonic() - self._last > _PATIENCE:
            self._last = time.monotonic()
            _say(f"{self._source}: {lines:,} of {self._total:,} lines")

    def __enter__(self) -> "_Told":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def _outputs(sources: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Each output and the file that it is the translation of."""
    found: dict[Path, Path] = {}
    for source in sources:
        output = folder / source.name
        if not source.is_file():
            came = f"no file at {source}"
            if source.is_dir():
                came = f"the folder {source}"
            elif source.exists():
                came = f"{source}, which is none"
            raise AttlasError("files to translate", came, "name regular files")
        if output in found:
            raise AttlasError(
                f"files of different names to translate into {folder}",
                f"{found[output]} and {source}",
                "translate them into different folders",
            )
        if source.resolve() == output.resolve():
            raise AttlasError(
                "another folder than that of the files themselves",
                f"{source} into {folder}",
                "choose another folder",
            )
        found[output] = source
    check_distinct(found.values(), found)
    return found


def _read_through(source: Path) -> tuple[str, int]:
    """The checksum of its text, and the number of its lines, each of which can be read."""
    digest = hashlib.sha256()
    lines = sum(1 for _ in _hashed(stream_lines(source), digest))
    return short(digest), lines


def _hashed(lines: Iterator[str], digest: Any) -> Iterator[str]:
    for line in lines:
        digest.update(f"{line}\n".encode())
        yield line


def _say(what: str) -> None:
    print(f"attlas: {what}", file=sys.stderr)
