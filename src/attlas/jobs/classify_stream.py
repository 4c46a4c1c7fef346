"""Classify a stream of texts."""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from shlex import quote

from attlas._output import STANDARD, check_replaceable, check_writable, open_output, write_lines
from attlas.data import stream_lines
from attlas.errors import AttlasError, quoted, unwritable
from attlas.figures.saving import figure_suffix
from attlas.inference import Classification, TextClassifier
from attlas.inference.classifier import classification_remarks
from attlas.jobs.drawing import draw
from attlas.jobs.inputs import check_distinct
from attlas.jobs.translate_stream import Remarks, at_hand, windows

_TRACE = ".safetensors"
_TABLES = (".jsonl", ".json", ".csv", ".tsv")


def check_texts(
    texts: Sequence[str] | None,
    source: str,
    output: str,
    attention: Path | None,
    layer: str | None,
) -> None:
    """Raise `AttlasError` for texts from two sides, a file or folder if a text should be, an
    attention in another kind of file, a layer without a figure, and where a file would be written
    over or cannot be written.
    """
    check_distinct([source], [output, attention])
    check_writable(output)
    if attention and is_folder(attention):
        _check_new(attention)
    else:
        check_replaceable(attention)
    if texts and source != STANDARD:
        raise AttlasError("TEXT, or --input, not both", "both", "leave one of them out")
    for text in texts or ():
        if kind := _on_disk(text):
            raise AttlasError(
                "texts to classify",
                f"the name of a {kind}, {quoted(text, 1000)}",
                f"read it: --input {quote(text)}"
                if kind == "file"
                else f"to classify that very word, write: echo {quote(text)} | attlas classify …",
            )
    traces = attention is not None and (attention.suffix == _TRACE or is_folder(attention))
    if attention and not traces:
        _check_figure(attention)
    if layer is not None and (attention is None or traces):
        got = f"{attention}: a trace holds every layer" if attention else "it alone"
        raise AttlasError(
            "--layer with --attention, which draws a figure",
            got,
            "add --attention map.png, or leave --layer out",
        )


def is_folder(attention: Path) -> bool:
    """Return True if the attention of each text goes into a file of its own: the name has no
    ending.
    """
    return not attention.suffix


def classify_texts(
    classifier: TextClassifier,
    texts: Iterable[str],
    target: str,
    *,
    window: int,
    as_json: bool,
    traces: Path | None = None,
) -> None:
    """Write one line for each of these texts, and the trace of the n-th as `traces`/n.safetensors.

    Raises:
        AttlasError: If a file cannot be written.
    """
    with ExitStack() as files:
        remarks = Remarks(unit="text", at_once=False)
        files.callback(remarks.end)
        lines = open_output(target, files)
        for number, classification in enumerate(classifier.stream(texts, window=window), 1):
            remarks.add(number, [classification_remarks(classification)])
            lines.write(_answer(classification, number, traces, as_json=as_json))


def classify_lines(
    classifier: TextClassifier,
    source: str,
    target: str,
    *,
    window: int,
    as_json: bool,
    traces: Path | None = None,
) -> None:
    """Write one line for each line of `source`, in order, while they come in; and the trace of line
    n as `traces`/n.safetensors.

    What was read before a mistake in the text is classified and written; the mistake is raised
    after it.

    Raises:
        AttlasError: If a file cannot be read or written, and if a line is not UTF-8.
    """
    num_done = 0
    if Path(source.removesuffix(".gz")).suffix.lower() in _TABLES:
        note = f"each line of {source} is one text, with everything that is written in it"
        print(f"attlas: {note}; attlas evaluate --source reads labelled texts", file=sys.stderr)
    with ExitStack() as files:
        remarks = Remarks(at_once=not at_hand(source))
        files.callback(remarks.end)
        lines = open_output(target, files)
        for texts in windows(stream_lines(source), window, full=at_hand(source)):
            classifications = list(classifier.stream(texts, window=len(texts)))
            remarks.add(num_done + 1, [*map(classification_remarks, classifications)])
            for number, classification in enumerate(classifications, num_done + 1):
                lines.write(_answer(classification, number, traces, as_json=as_json))
            lines.flush()
            num_done += len(classifications)


def classify_with_trace(
    classifier: TextClassifier,
    texts: Sequence[str] | None,
    source: str,
    path: Path,
    layer: str | None,
    target: str,
    *,
    as_json: bool,
) -> None:
    """Classify a single text, and keep where the model looked.

    Raises:
        AttlasError: For none or several.
    """
    first_texts = list(texts or islice(stream_lines(source), 2))
    if len(first_texts) != 1:
        raise AttlasError(
            "a single text for --attention",
            "several" if first_texts else "none",
            'name one: attlas classify RUN "a text" --attention map.png; for several name a folder',
        )
    classification = classifier(first_texts[0])
    if path.suffix == _TRACE:
        classification.trace.save(path)
    else:
        draw(classification.trace, path, layer=layer, row=0)
    remarks = Remarks(unit="text")
    remarks.add(1, [classification_remarks(classification)])
    write_lines(target, [_line(classification, as_json=as_json)])


def _answer(
    classification: Classification, number: int, traces: Path | None, *, as_json: bool
) -> bytes:
    """The line of one of many, once its trace is kept."""
    if traces:
        _keep(classification, traces, number)
    return _line(classification, as_json=as_json)


def _line(classification: Classification, *, as_json: bool) -> bytes:
    if as_json:
        facts = {
            "label": classification.label,
            "probability": classification.probability,
            "probabilities": dict(classification.probabilities),
            "unread": classification.unread,
            "known": classification.known,
        }
        return f"{json.dumps(facts, ensure_ascii=False)}\n".encode()
    return f"{classification.label}\t{classification.probability:.4f}\n".encode()


def _keep(classification: Classification, traces: Path, number: int) -> None:
    try:
        traces.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(traces, error) from None
    classification.trace.save(traces / f"{number}{_TRACE}")


def _check_new(folder: Path) -> None:
    if not folder.exists():
        check_writable(folder)
    elif not folder.is_dir() or any(folder.iterdir()):
        raise AttlasError(
            "a file that ends in .png, .svg, .pdf or .safetensors, or a new folder for a trace of "
            "each text",
            f"{folder}, which is there already",
            "choose another name",
        )


def _check_figure(path: Path) -> None:
    try:
        figure_suffix(path)
    except AttlasError as error:
        raise AttlasError(f"{error.expected} or {_TRACE}", error.got, error.hint) from None


def _on_disk(text: str) -> str:
    """ "file" or "folder", if there is one of this name; else ""."""
    try:
        path = Path(text)
        return "file" if path.is_file() else "folder" if text and path.is_dir() else ""
    except (OSError, ValueError):  # too long for a name, or with a NUL in it: a text
        return ""
