"""Translate a stream of lines."""

import os
import stat
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TextIO

from attlas._output import STANDARD, Bar, Output, open_output
from attlas._text import count_noun
from attlas.data import stream_lines
from attlas.errors import AttlasError, UnsupportedError
from attlas.inference import Translation, Translator
from attlas.inference.translator import CUT, NOTHING_KNOWN, UNFINISHED, translation_remarks
from attlas.jobs.inputs import check_distinct
from attlas.recording.hooks import attention_hooks

# Windows: lines that have arrived, to be translated together.


def windows(lines: Iterator[str], max_lines: int, *, full: bool) -> Iterator[list[str]]:
    """Yield the lines in order, between 1 and `max_lines` at a time.

    A window ends when no further line has arrived. A program that writes one line and waits
    therefore gets its answer.

    Args:
        full: Whether each window but the last has `max_lines` lines. This suits a file, which
            never makes anyone wait: its windows are the same each time.
    """
    arrived: Queue[str | Exception | None] = Queue(max_lines)
    stopped = Event()

    def put(item: str | Exception | None) -> None:
        while not stopped.is_set():  # a bounded wait: what comes after the last window is not taken
            try:
                arrived.put(item, timeout=0.2)
            except Full:
                continue
            return

    def read(_standard_input: TextIO) -> None:
        try:
            for line in lines:
                put(line)
                if stopped.is_set():
                    return
        except Exception as mistake:  # raised again where the lines are taken
            put(mistake)
        else:
            put(None)

    # A thread, because a read of a pipe waits, and only the reader knows whether it does. Nothing
    # wakes it at the end of the program. It therefore holds the standard input, which Python would
    # otherwise close then, and abort because it is being read.
    Thread(target=read, args=(sys.stdin,), daemon=True).start()
    try:
        item: str | Exception | None = ""
        while isinstance(item, str):
            window: list[str] = []
            while len(window) < max_lines:
                try:
                    item = arrived.get(block=full or not window)
                except Empty:
                    break
                if not isinstance(item, str):
                    break
                window.append(item)
            if window:
                yield window
        if item is not None:
            raise item
    finally:
        stopped.set()


_WINDOW = 1024  # lines: fewer cost a tenth of the speed, more are long in coming out
_LINES_LISTED, _WINDOWS_LISTED = 4, 5  # by themselves
_LONG = 8  # times as many tokens as any text of the training: each step takes so many times longer


def translate_lines(
    translator: Translator,
    source: str,
    target: str,
    *,
    alignments: Path | None = None,
    numbered: bool = False,
    window: int = _WINDOW,
    trained_length: int | None = None,
) -> None:
    """Write the translations of `source` to `target`, in order, while they come in.

    Args:
        numbered: The n-best format instead of one line for each line.
        window: How many lines are translated together at most; fewer where no more have come in.
        trained_length: Tokens of the longest text of the training. A line that is many times
            longer is reported before it is translated.

    Lines before an invalid text are translated and written. Then the error is raised.
    """
    if alignments and not attention_hooks(translator.model):
        raise UnsupportedError(
            "a model with attention, whose weights give the alignments",
            "a run without",
            "leave out --alignments, or train with model.attention",
        )
    check_distinct([source], [target, alignments])
    arriving = windows(stream_lines(source), window, full=at_hand(source))
    num_done, remarks = 0, Remarks(at_once=not at_hand(source))
    with ExitStack() as files:
        files.callback(remarks.end)
        lines = open_output(target, files)
        links = open_output(alignments, files) if alignments else None
        try:
            for texts in arriving:
                translations = translate_window(translator, texts, num_done, "", trained_length)
                remarks.add(num_done + 1, [*map(remarks_on, texts, translations)])
                for number, translation in enumerate(translations, num_done):
                    lines.writelines(
                        n_best_lines(number, translation) if numbered else [line_of(translation)]
                    )
                    if links:
                        links.write(f"{translation.pharaoh}\n".encode())
                _flush(lines, links)
                num_done += len(texts)
        except (KeyboardInterrupt, AttlasError) as stopped:
            if num_done and target != STANDARD:
                stopped.add_note(
                    f"{target} holds what came of the first {count_noun(num_done, 'line')}, or a "
                    "few more; FILES --into FOLDER would continue there"
                )
            raise


def at_hand(source: str) -> bool:
    """Return True if it is a file on disk, which never makes its reader wait."""
    try:
        status = os.fstat(sys.stdin.fileno()) if source == STANDARD else os.stat(source)
    except (OSError, ValueError):  # no file at all: the reader reports it
        return False
    return stat.S_ISREG(status.st_mode)


def _flush(*files: Output | None) -> None:
    for file in files:
        if file:
            file.flush()


def line_of(translation: Translation) -> bytes:
    """Its text, which is one line."""
    return f"{translation.text}\n".encode()


def n_best_lines(number: int, best: Translation) -> Iterator[bytes]:
    """The n-best list of one line, numbered from 0, best first."""
    for translation in (best, *best.alternatives):
        yield f"{number} ||| {translation.text} ||| {translation.score:.6f}\n".encode()


def translate_window(
    translator: Translator,
    texts: Sequence[str],
    num_done: int,
    location: str,
    trained_length: int | None,
    bar: Bar | None = None,
) -> list[Translation]:
    """Translate these lines together. Say on the standard error what takes long.

    Args:
        num_done: How many lines came before these.
        location: What stands before "line" and its number.
        trained_length: Tokens of the longest text of the training. A line that is many times
            longer is reported before it is translated.
        bar: Shows the progress; None = a bar of these lines alone.
    """
    _warn_long(f"{location}line", texts, num_done, translator, trained_length)
    first, last = num_done + 1, num_done + len(texts)
    lines = f"line {first:,}" if len(texts) == 1 else f"lines {first:,} to {last:,}"
    with ExitStack() as shown:
        if bar is None:
            bar = shown.enter_context(Bar(f"translating {lines}", len(texts)))
        shown.enter_context(bar.counting(lambda: translator.num_ended))
        return list(translator.stream(texts, window=len(texts)))


def _warn_long(
    location: str,
    texts: Sequence[str],
    num_done: int,
    translator: Translator,
    trained_length: int | None,
) -> None:
    cut = translator.config.max_source_length or translator.model.max_positions
    if cut or not trained_length:
        return
    max_length = _LONG * trained_length
    for number, text in enumerate(texts, num_done + 1):
        if len(text.encode()) < max_length:  # no token is shorter than a byte
            continue
        tokens = len(translator.vocabularies.source.encode(text))
        if tokens > max_length:
            print(
                f"attlas: {location} {number}: {count_noun(tokens, 'token')}, where training had "
                f"at most {trained_length:,}. This takes long, and the lines around it wait. To "
                "read only the first tokens of each line, add --set "
                f"decoding.max_source_length={trained_length}",
                file=sys.stderr,
            )


class Remarks:
    """Remarks about lines, printed on the standard error.

    A few lines get a remark each; more get one sentence with their number.

    Args:
        at_once: Print window by window, for a reader who sees the output arrive. After some windows
            with remarks, lines are only counted, and `end` reports them. Otherwise `end` reports
            all.
    """

    def __init__(self, location: str = "", unit: str = "line", *, at_once: bool = True) -> None:
        """`location` precedes the number of a line; `unit` is the word for a line."""
        self._place, self._unit, self._at_once = location, unit, at_once
        self._windows, self._untold = Counter[str](), Counter[str]()
        self._first = defaultdict[str, dict[int, str]](dict)

    def add(self, first: int, lines: Sequence[Mapping[str, str]]) -> None:
        """Of a window of lines, whose first has this number: what there is to say of each, by the
        sentence that says it of several.
        """
        for kind in dict.fromkeys(kind for line in lines for kind in line):
            numbers = {n: line[kind] for n, line in enumerate(lines, first) if kind in line}
            self._windows[kind] += self._at_once
            if self._at_once and self._windows[kind] <= _WINDOWS_LISTED:
                self._print_lines_of(kind, numbers, len(numbers))
                continue
            self._untold[kind] += len(numbers)
            if not self._at_once:
                num_free = _LINES_LISTED - len(self._first[kind])
                self._first[kind] |= dict(islice(numbers.items(), num_free))

    def end(self) -> None:
        """Of the lines that were only counted."""
        for kind, count in self._untold.items():
            if self._at_once:
                self._print(f"{count_noun(count, f'further {self._unit}')}: {kind}")
            else:
                self._print_lines_of(kind, self._first[kind], count)

    def _print_lines_of(self, kind: str, counts: Mapping[int, str], count: int) -> None:
        if count > _LINES_LISTED:
            line_numbers = ", ".join(map(str, islice(counts, _LINES_LISTED)))
            self._print(f"{count_noun(count, self._unit)} ({line_numbers}, …): {kind}")
            return
        for number, sentence in counts.items():
            self._print(f"{self._unit} {number}: {sentence}")

    def _print(self, text: str) -> None:
        print(f"attlas: {self._place}{text}", file=sys.stderr)


TAB = (
    "A tab is part of the text, which is read as one text. If lines are pairs, `cut -f1` keeps the "
    "sources."
)


def remarks_on(text: str, translation: Translation) -> dict[str, str]:
    """What there is to say of a text and its translation: of several, and of this one."""
    notes = {
        NOTHING_KNOWN: translation_remarks(0, True, translation.known),
        CUT: translation_remarks(translation.cut, True, True),
        UNFINISHED: translation_remarks(0, translation.finished, True),
    }
    found = {kind: sentence for kind, sentences in notes.items() for sentence in sentences}
    return {TAB: TAB, **found} if "\t" in text else found
