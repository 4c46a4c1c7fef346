"""The work of `attlas stats`: check the options, read the corpus, write the table."""

import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import torch

from attlas._files import explained, held, open_descriptor, sync, write_whole
from attlas._hardware import disable_malloc_trim
from attlas._output import STANDARD, Bar, check_replaceable
from attlas._text import count_noun
from attlas.config import overridden
from attlas.corpus_statistics.formats import Facts, Table, table_at, write_beside
from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.readers import (
    ClassifierReader,
    CorpusText,
    Reader,
    TextWindow,
    TranslatorReader,
    batches_of,
    windows_of,
)
from attlas.corpus_statistics.table import (
    ALSO,
    FORMAT,
    Measured,
    columns_of,
    frames,
    measure_joined_maps,
)
from attlas.data import stream_lines
from attlas.data.lines import shown_path
from attlas.decoding.config import idle_settings
from attlas.errors import AttlasError, CheckpointError, DataError, UnsupportedError, quoted
from attlas.jobs.checkpointed_output import (
    TEXT,
    Origin,
    OutputProgress,
    ResumableOutput,
    output_checksum,
    progress_dir,
    read_progress,
)
from attlas.jobs.inputs import check_distinct, check_used, decoding_of, run_at
from attlas.jobs.translate_stream import TAB
from attlas.runs import BEST, CONFIG
from attlas.runs.loaded import short_digest

# The corpus of `attlas stats`: lines of a file, and perhaps the right translation of each.


_EVERY = 2**20  # bytes that are copied at a time
CorpusLine: TypeAlias = tuple[int, str, str | None]
"""Its number from 1, its text and its target."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of texts that was read through once, so that every line is valid and counted.

    Args:
        names: What messages call the two files, of which there may be copies.
        checksum: Of the texts.
        target_checksum: Of the file beside it, if there is one.
    """

    source: Path
    target: Path | None
    names: tuple[str, str]
    lines: int
    checksum: str
    target_checksum: str | None

    @classmethod
    def of(cls, source: Path, target: Path | None, names: tuple[str, str]) -> "CorpusFile":
        """Raise `AttlasError` for a file that cannot be read, and for two of different length."""
        checksum, lines = _read_through(source, names[0])
        if target is None:
            return cls(
                source=source,
                target=None,
                names=names,
                lines=lines,
                checksum=checksum,
                target_checksum=None,
            )
        target_checksum, others = _read_through(target, names[1])
        if others != lines:
            raise DataError(
                f"a line of {names[1]} beside each of the {count_noun(lines, 'line')} of "
                f"{names[0]}",
                count_noun(others, "line"),
                "give files of as many lines",
            )
        return cls(
            source=source,
            target=target,
            names=names,
            lines=lines,
            checksum=checksum,
            target_checksum=target_checksum,
        )

    def stream(self) -> Iterator[CorpusLine]:
        """The number of each line from 1, its text and its target.

        Raises:
            AttlasError: After the last one, if the text has changed since.
        """
        digests = hashlib.sha256(), hashlib.sha256()
        texts = _hashed(self.source, self.names[0], digests[0])
        companion = self.target
        targets = None if companion is None else _hashed(companion, self.names[1], digests[1])
        for number, text in enumerate(texts, 1):
            yield number, text, None if targets is None else next(targets, "")
        digests_read = (
            short_digest(digests[0]),
            None if targets is None else short_digest(digests[1]),
        )
        if digests_read != (self.checksum, self.target_checksum):
            raise CorpusChangedError(
                f"{self.names[0]} to stay as it is while it is read",
                "another text at the end than at the start",
                "run it again when no process writes to that file",
            )

    def check_has_words(self) -> None:
        """Check that a line has a word, and its target too; `AttlasError` otherwise."""
        if not any(_has_words(text, target) for _, text, target in self.stream()):
            raise _wordless(self.names[0], self.lines, paired=self.target is not None)


class CorpusChangedError(DataError):
    """The corpus has changed meanwhile."""


@contextmanager
def on_disk(source: str, path: Path) -> Iterator[Path]:
    """The path of a file that can be read again: the file itself, or what comes from a stream (the
    standard input, a pipe), which is kept at `path` for the length of the block.
    """
    if not _is_stream(source):
        yield Path(source)
        return
    try:
        with explained(path), path.open("wb") as stream:
            if source == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, stream, _EVERY)
            else:
                with Path(source).open("rb") as arriving:
                    shutil.copyfileobj(arriving, stream, _EVERY)
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def check_has_words(source: str) -> None:
    """Check that a file is there, and can be read up to a line with a word; a stream is left alone.

    Raises:
        AttlasError: That names it.
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
    except (OSError, ValueError):  # the reader reports it
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def name_of(source: str) -> str:
    """How a message or a table names this file."""
    return shown_path(source)


def _has_words(text: str, target: str | None) -> bool:
    return bool(text.strip()) and (target is None or bool(target.strip()))


def _wordless(name: str, lines: int, *, paired: bool) -> AttlasError:
    got = f"{count_noun(lines, 'line')}, none of them with a word" if lines else "nothing"
    addition = ""
    if paired:
        got, addition = f"{got} on both sides", ", and one in its target"
    return DataError(
        f"a line with a word in {name}{addition}", got, "check that this is the right text"
    )


def _read_through(path: Path, name: str) -> tuple[str, int]:
    digest = hashlib.sha256()
    lines = sum(1 for _ in _hashed(path, name, digest))
    return short_digest(digest), lines


def _hashed(path: Path, name: str, digest: Any) -> Iterator[str]:
    for line in stream_lines(path, name):
        digest.update(f"{line}\n".encode())
        yield line


# Resumable statistics of a corpus, safe against kills.


class StatisticsOutput(ResumableOutput):
    """A `ResumableOutput` of a table: rows are added window by window, and assembled at the end.

    Raises:
        AttlasError: As `ResumableOutput`.
    """

    def __init__(self, output: Path, origin: Origin, table: Table) -> None:
        self._table = table
        with explained(output):
            exists = (progress_dir(output) / "progress.json").exists()
            standing = [path for path in (output, table.beside(output)) if path and path.exists()]
            if standing and not exists:
                raise _foreign(standing[0])
        previous_progress = read_progress(output)
        super().__init__(output, origin)
        # Who takes a table away wants it anew, and has left what stands beside it.
        if previous_progress and previous_progress.whole and not self.progress.whole:
            self._keep(self.progress.model_copy(update={"beside": True}))
        if not self.progress.whole and not self.progress.bytes:
            self.add(0, table.head)

    def add_rows(self, lines: int, rows: Iterable[bytes]) -> None:
        """Save the rows of further lines durably, all of them or none."""
        digest, size = self._digest.copy(), self.progress.bytes
        with explained(self._lines):
            descriptor = open_descriptor(self._lines, os.O_WRONLY)
            try:
                os.ftruncate(descriptor, size)
                os.lseek(descriptor, size, os.SEEK_SET)
                for row in rows:
                    write_whole(descriptor, row)
                    digest.update(row)
                    size += len(row)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._digest = digest
        facts = {
            "lines": self.progress.lines + lines,
            "bytes": size,
            "sha256": digest.hexdigest(),
        }
        self._keep(self.progress.model_copy(update=facts))

    @property
    def has_rows(self) -> bool:
        """Return True if anything stands below the head."""
        return self.progress.bytes > len(self._table.head)

    def assemble(self, facts: Facts) -> None:
        """Put the output in its place, whole, with its facts in it or beside it.

        It may stand there, where a kill came before that was recorded.
        """
        self._spare()
        if not self._stands():
            complete_file = self._books / f"whole{''.join(self.output.suffixes[-2:])}"
            with explained(self.output):
                self._table.assemble(self._lines, complete_file, facts)
                sync(complete_file)
            self._spare()
            companion = self._table.beside(self.output)
            if companion is not None and companion.exists() and not self.progress.beside:
                raise _foreign(companion)
            progress = {"assembled": output_checksum(complete_file, unzipped=False), "beside": True}
            self._keep(self.progress.model_copy(update=progress))
            self.write_metadata(facts)
            with explained(self.output):
                os.replace(complete_file, self._place)
                sync(self._place.parent)
        self._keep(self.progress.model_copy(update={"whole": True}))
        self._drop_lines()

    def _spare(self) -> None:
        """As ever, by the checksum of what was put together."""
        if (
            self._stands()
            and output_checksum(self.output, unzipped=False) != self.progress.assembled
        ):
            raise _foreign(self.output)

    def write_metadata(self, facts: Facts) -> None:
        """Write the facts beside the output, if that is their place and they are not there."""
        path = self._table.beside(self.output)
        if path is not None and not (self.progress.whole and path.exists()):
            write_beside(path, facts)

    def _state(self, progress: OutputProgress) -> str:
        return "finished" if progress.whole else f"begun and done as far as line {progress.lines:,}"


def _foreign(path: Path) -> AttlasError:
    return AttlasError(
        f"to write {path}",
        "a file there that attlas stats did not write",
        "choose another name, or take that file away",
    )


# A corpus through a model, window by window, into a table.


_BATCHES = 4  # of a window, about: among so many texts are sorted by length
_SHARE = 16  # tokens of a batch for each line of a window: a model may write as many, or more


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusMeasurement:
    """The settings of a measurement.

    Args:
        tokens: Of a batch, at most.
        layers: Paths or patterns, None = all.
        threshold: Of `count_above`.
        by_token: One row for each query.
        also: Further columns.
    """

    reader: Reader
    tokens: int
    threshold: float
    layers: tuple[str, ...] | None
    by_token: bool
    also: tuple[str, ...]

    def windows(self, texts: Iterable[CorpusText | None]) -> Iterator[TextWindow]:
        """The same windows each time, as long as these settings are the same.

        A window is what a kill undoes at most, so it is a few batches, and of short lines fewer.
        """
        # Tables by token have so many rows that a window is a single batch.
        tokens = self.tokens * (1 if self.by_token else _BATCHES)
        return windows_of(texts, lines=max(1, self.tokens // _SHARE), tokens=tokens)

    def texts(self, window: TextWindow) -> list[CorpusText]:
        """The texts of a window, with what the model itself writes."""
        batches = batches_of(window.texts, self.tokens)
        return [text for batch in batches for text in self.reader.completed(batch)]

    def of(self, texts: Sequence[CorpusText]) -> Iterable[Measured]:
        """The numbers of these texts, line by line; of a single text as they come."""
        # What was written may be longer than what was read, so that these are other batches.
        found = self._of_batches(batches_of(texts, self.tokens))
        if len(texts) < 2:
            return found
        return sorted(
            found, key=lambda measured: measured.line
        )  # stable: layers stay in their order

    def _of_batches(self, batches: Iterable[Sequence[CorpusText]]) -> Iterator[Measured]:
        for batch in batches:
            records = self.reader.map_records(batch, self.layers)
            # A text alone may be long: its maps are read one after the other.
            groups = ([record] for record in records) if len(batch) == 1 else [[*records]]
            for group in groups:
                names = [self.reader.named(one) for one in group] if self.by_token else None
                yield from measure_joined_maps(group, self.threshold, names, self.also)


def measure(
    measuring: CorpusMeasurement,
    corpus: CorpusFile,
    part: StatisticsOutput,
    table: Table,
    facts: Facts,
) -> None:
    """Continue the table from where it is, and write it.

    Raises:
        AttlasError: If the corpus changes meanwhile, and if no line of it has a row; what is done
            of it is then forgotten.
    """
    first_line, start = part.progress.lines, time.monotonic()
    if first_line:
        _print(f"{part.output}: goes on after line {first_line:,} of {corpus.lines:,}")
    remarks = _Remarks(first_line)
    try:
        with Bar(part.output, corpus.lines, first_line) as bar:
            arriving = corpus.stream()
            for _ in islice(arriving, first_line):
                pass
            read = measuring.reader.read
            for window in measuring.windows(read(*line) for line in remarks.on(arriving)):
                texts = measuring.texts(window)
                remarks.add(window.lines, texts)
                rows = frames(measuring.of(texts), by_token=measuring.by_token, also=measuring.also)
                part.add_rows(window.lines, map(table.rows, rows))
                bar.update(part.progress.lines)
        if not part.has_rows:
            raise _NothingReadError(
                f"a line of {facts['corpus']} with a token for the model to read",
                f"{count_noun(corpus.lines, 'line')} without one",
                "check that this is the right text",
            )
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("the same command goes on where it stopped")
        raise
    except (CorpusChangedError, _NothingReadError):
        part.forget()
        raise
    part.assemble(facts)
    remarks.sum_up()
    seconds = time.monotonic() - start
    without = f", {remarks.unread:,} of them without a word," if remarks.unread else ""
    lines = count_noun(corpus.lines - first_line, "line")
    _print(f"{part.output}: {lines}{without} in {seconds:,.1f} s")


class _NothingReadError(DataError):
    """No text of the corpus has a token."""


class _Remarks:
    """What a reader has to know, printed once: the table has it of every line.

    begun: lines that an earlier command has done, and of which it has printed it. unread: lines
    so far of which nothing was read.
    """

    def __init__(self, num_done: int) -> None:
        self._begun = num_done
        self._warned = False
        self._tabs = 0
        self.unread = 0
        self._cut, self._first_cut = 0, 0

    def add(self, lines: int, texts: Sequence[CorpusText]) -> None:
        """Of the first text that is longer than the model reads.

        Args:
            texts: Of so many lines.
        """
        self.unread += lines - len(texts)
        if cut := [text.line for text in texts if not text.finished]:
            self._first_cut = self._first_cut or min(cut)
            self._cut += len(cut)
        longer = [text for text in texts if text.unread]
        if longer and not self._warned:
            self._warned = True
            first = min(longer, key=lambda text: text.line)
            tokens = count_noun(first.unread, "token")
            _print(
                f"line {first.line} is longer than the model can read: {tokens} of it are left "
                "out; of each text, the column unread counts them"
            )

    def on(self, lines: Iterable[CorpusLine]) -> Iterator[CorpusLine]:
        """The same lines; those with a tab are counted."""
        for line in lines:
            self._tabs += "\t" in line[1]
            yield line

    def sum_up(self) -> None:
        """Of lines with a tab, and of texts that the model did not write to their end."""
        after = f", after line {self._begun:,}" if self._begun else ""
        if self._tabs:
            _print(f"{count_noun(self._tabs, 'line')} with a tab{after}: {TAB}")
        if self._cut:
            _print(
                f"{count_noun(self._cut, 'text')} that the model wrote did not end within its "
                f"limit, the first in line {self._first_cut}{after}: finished is false there"
            )


def _print(text: str) -> None:
    print(f"attlas: {text}", file=sys.stderr)


_BY = ("head", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsOptions:
    """The options of the command."""

    model: Path
    corpus: str
    output: Path | None
    target: str | None
    by: str
    threshold: float
    also: tuple[str, ...]
    layers: tuple[str, ...] | None
    max_tokens: int
    num_beams: int | None
    checkpoint: str
    device: str
    settings: tuple[str, ...]


def run_statistics(options: StatisticsOptions) -> None:
    """Write the table, or go on with it.

    Raises:
        AttlasError: For what cannot be read or written, for options that the model has no use for,
            for an output that is not ours or was begun from something else, and if another process
            is at it.
    """
    output, table = _checked(options)
    disable_malloc_trim()
    reader, search = _reader(options)
    with explained(output):
        progress_dir(output).mkdir(parents=True, exist_ok=True)
    with held(progress_dir(output) / "lock") as acquired:
        if not acquired:
            raise AttlasError(
                f"{output} for this process alone",
                "another process that is writing it",
                "wait for it, or choose another output",
            )
        _work(options, output, table, reader, search)


def _checked(options: StatisticsOptions) -> tuple[Path, Table]:
    """Check the options before anything is read."""
    if options.by not in _BY:
        raise AttlasError("--by head or --by token", quoted(options.by), "choose one of them")
    if options.output is None:
        raise AttlasError("an output for the table", "none", "add one: --output stats.csv")
    if unknown := [name for name in options.also if name not in ALSO]:
        raise AttlasError(
            f"--also with {' or '.join(ALSO)}", quoted(unknown[0]), "choose one of them"
        )
    columns = columns_of(by_token=options.by == "token", also=options.also)
    table = table_at(options.output, columns)
    check_replaceable(options.output)
    check_distinct([options.corpus, options.target], [options.output, table.beside(options.output)])
    for name in (options.corpus, options.target):
        if name is not None:
            check_has_words(name)
    return options.output, table


def _work(
    options: StatisticsOptions, output: Path, table: Table, reader: Reader, search: Origin
) -> None:
    with (
        on_disk(options.corpus, progress_dir(output) / "corpus") as source,
        on_disk(options.target or os.devnull, progress_dir(output) / "target") as target_part,
    ):
        names = name_of(options.corpus), name_of(options.target or os.devnull)
        corpus = CorpusFile.of(source, None if options.target is None else target_part, names)
        corpus.check_has_words()
        origin: Origin = {
            "attlas": version("attlas"),
            "torch": str(torch.__version__),
            "format": FORMAT,
            **reader.facts,
            TEXT: corpus.checksum,
            "target": corpus.target_checksum or "none",
            **search,
            "by": options.by,
            "threshold": options.threshold,
            "also": ", ".join(sorted(options.also)) or "none",
            "layers": ", ".join(options.layers or ("all",)),
            "tokens": options.max_tokens,
        }
        facts = {
            "from": _name_as_text(str(options.model)),
            "corpus": _name_as_text(name_of(options.corpus)),
            "lines": corpus.lines,
            **origin,
        }
        part = StatisticsOutput(output, origin, table)
        if part.progress.whole:
            part.write_metadata(facts)
            print(
                f"attlas: {output} is there already, of this model and this corpus",
                file=sys.stderr,
            )
            return
        measuring = CorpusMeasurement(
            reader=reader,
            tokens=options.max_tokens,
            threshold=options.threshold,
            layers=options.layers,
            by_token=options.by == "token",
            also=options.also,
        )
        measure(measuring, corpus, part, table, facts)


def _name_as_text(name: str) -> str:
    """A name of a file as a table can hold it: bytes that are no UTF-8 as they are written."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _reader(options: StatisticsOptions) -> tuple[Reader, Origin]:
    """The model as one that reads, and how it searches, where that matters.

    Raises:
        AttlasError: For a path at which nothing can be looked into, and for options that it has no
            use for.
    """
    searching = {"--num-beams": options.num_beams is not None, "--set": bool(options.settings)}
    if not (options.model / CONFIG).is_file() and HuggingFaceFolder.is_at(options.model):
        check_used(
            {**searching, "--checkpoint": options.checkpoint != BEST},
            "a model of Hugging Face",
            "it has one set of weights, and searches greedily",
        )
        folder = HuggingFaceFolder(options.model, options.device)
        _check_target(options, writes=folder.writes)
        searches = folder.writes and options.target is None
        return HuggingFaceReader(folder), {"decoding.method": "greedy"} if searches else {}
    _check_folder(options.model)
    run, checkpoint = run_at(options.model, options.checkpoint)
    if run.classifies:
        check_used(searching, "a classifier", "it writes no text")
        _check_target(options, writes=False)
        return ClassifierReader(run, checkpoint=checkpoint, device=options.device), {}
    if options.target is not None:
        check_used(searching, "a translation that is given", "--target is read, none is searched")
    assigned = overridden({"decoding": {}}, options.settings).assigned
    names_search = options.num_beams is not None or not assigned.isdisjoint(
        {("decoding",), ("decoding", "method")}
    )
    greedy = [] if names_search else ["decoding.method=greedy"]
    search = decoding_of(run, [*greedy, *options.settings], options.num_beams)
    reader = TranslatorReader(run, search, checkpoint=checkpoint, device=options.device)
    if options.target is not None:
        return reader, {}
    idle = set(idle_settings(search.method))
    used_settings = search.model_dump(exclude=idle, exclude_none=True)
    return reader, {f"decoding.{key}": value for key, value in used_settings.items()}


def _check_target(options: StatisticsOptions, *, writes: bool) -> None:
    if options.target is not None and not writes:
        raise UnsupportedError(
            "--target with a model that writes a text beside the one it reads",
            f"it for {options.model}, which reads one text",
            "leave --target out",
        )


def _check_folder(model: Path) -> None:
    if (model / CONFIG).is_file():
        return
    got = f"no folder at {model}"
    if model.is_dir():
        got = f"the folder {model} with neither {CONFIG} nor config.json in it"
    elif model.exists():
        got = f"{model}, which is no folder"
    raise CheckpointError(
        "the folder of a run that attlas train wrote, or of a Hugging Face model",
        got,
        "check the path; save_pretrained of the model and of its tokenizer writes such a folder; "
        "nothing is downloaded",
    )
