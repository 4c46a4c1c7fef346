"""A stream of lines through a translator."""

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from attlas.cli.remarks import remarks
from attlas.data import stream_lines
from attlas.decoding import Translation, Translator
from attlas.errors import AttlasError
from attlas.recording.tap import taps

STANDARD = "-"
_WINDOW = 512  # lines; sorting more of them by length hardly makes it faster


def translate_lines(
    translator: Translator,
    source: str,
    target: str,
    *,
    alignments: Path | None = None,
    numbered: bool = False,
    window: int | None = None,
) -> None:
    """Write the translations of `source` to `target`, in order, while they come in.

    numbered: the n-best format instead of one line for each line. window: how many lines are read
    before they are translated; None = one on a terminal, else 512. What was read before a mistake
    in the text is translated and written; the mistake is raised after it.

    Errors: `AttlasError` where a file cannot be read or written or would be written over, where
    a line is not UTF-8, and for alignments of a model without attention.
    """
    if alignments and not taps(translator.model):
        raise AttlasError(
            "a model with attention, whose weights give the alignments",
            "a run without",
            "leave out --alignments, or train with model.attention",
        )
    _check_distinct([Path(p) for p in (source, target, alignments) if p and str(p) != STANDARD])
    interactive = source == STANDARD and sys.stdin.isatty()
    size = window or (1 if interactive else _WINDOW)
    mistakes: list[AttlasError] = []
    found = translator.many(_until_mistake(stream_lines(source), mistakes), window=size)
    with ExitStack() as files:
        lines = _opened(target, files)
        links = _opened(str(alignments), files) if alignments else None
        for number, translation in enumerate(found):
            _remark(number + 1, translation)
            lines.writelines(_written(number, translation) if numbered else [_line(translation)])
            if links:
                links.write(f"{translation.pharaoh}\n".encode())
            if (number + 1) % size == 0:
                _flush(lines, links)
        _flush(lines, links)
    if mistakes:
        raise mistakes[0]


def _until_mistake(lines: Iterator[str], mistakes: list[AttlasError]) -> Iterator[str]:
    try:
        yield from lines
    except AttlasError as mistake:
        mistakes.append(mistake)


def _flush(*files: IO[bytes] | io.BufferedIOBase | None) -> None:
    for file in files:
        if file:
            file.flush()


def _line(translation: Translation) -> bytes:
    return f"{translation.text}\n".encode()


def _written(number: int, best: Translation) -> Iterator[bytes]:
    for one in (best, *best.alternatives):
        yield f"{number} ||| {one.text} ||| {one.score:.6f}\n".encode()


def _remark(number: int, translation: Translation) -> None:
    for remark in remarks(translation):
        print(f"attlas: line {number}: {remark}", file=sys.stderr)


def _check_distinct(paths: Iterable[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise AttlasError(
                "different files to read and to write", f"{path} twice", "write to another file"
            )
        seen.add(path.resolve())


def _opened(path: str, files: ExitStack) -> IO[bytes] | io.BufferedIOBase:
    if path == STANDARD:
        return sys.stdout.buffer
    try:
        return files.enter_context(Path(path).open("wb"))
    except OSError as error:
        raise AttlasError(
            f"to write {path}", error.strerror or str(error), "choose a folder that exists"
        ) from None
