"""A stream of texts through a classifier."""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path

from attlas.classifying import Classification, TextClassifier
from attlas.cli.drawing import draw
from attlas.cli.given import check_distinct, folder_of
from attlas.cli.output import STANDARD, opened
from attlas.cli.translating import at_hand
from attlas.cli.window import windows
from attlas.data import stream_lines
from attlas.errors import AttlasError
from attlas.figures.saving import suffix_of

_TRACE = ".safetensors"


def check_texts(
    texts: Sequence[str] | None,
    source: str,
    output: str,
    attention: Path | None,
    layer: str | None,
) -> None:
    """Errors: `AttlasError` for texts from two sides, a file where a text should be, an attention
    of several texts or of another kind of file, a layer without a figure, and where a file would be
    written over.
    """
    check_distinct([source], [output, attention])
    if texts and source != STANDARD:
        raise AttlasError("TEXT, or --input, not both", "both", "leave one of them out")
    for text in texts or ():
        if _is_file(text):
            raise AttlasError(
                "texts to classify", f"the name of a file, {text!r}", f"read it: --input {text}"
            )
    if attention:
        folder_of(attention)
        if attention.suffix != _TRACE:
            suffix_of(attention)
    if layer is not None and (attention is None or attention.suffix == _TRACE):
        raise AttlasError(
            "--layer with --attention, which draws a figure",
            "it alone" if attention is None else f"a trace, {attention}, which holds every layer",
            "add --attention map.png, or leave --layer out",
        )


def classify_texts(
    classifier: TextClassifier, texts: Iterable[str], target: str, *, as_json: bool
) -> None:
    """Write one line for each of these texts."""
    with ExitStack() as files:
        lines = opened(target, files)
        for number, found in enumerate(classifier.many(texts), 1):
            _remark(f"text {number}", found)
            lines.write(_line(found, as_json=as_json))


def classify_lines(
    classifier: TextClassifier, source: str, target: str, *, window: int, as_json: bool
) -> None:
    """Write one line for each line of `source`, in order, while they come in.

    What was read before a mistake in the text is classified and written; the mistake is raised
    after it.
    Errors: `AttlasError` where a file cannot be read or written, and where a line is not UTF-8.
    """
    numbers = count(1)
    with ExitStack() as files:
        lines = opened(target, files)
        for texts in windows(stream_lines(source), window, full=at_hand(source)):
            for found in classifier.many(texts, window=len(texts)):
                _remark(f"line {next(numbers)}", found)
                lines.write(_line(found, as_json=as_json))
            lines.flush()


def attention_of(
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

    Errors: `AttlasError` for none or several.
    """
    given = list(texts or islice(stream_lines(source), 2))
    if len(given) != 1:
        raise AttlasError(
            "a single text for --attention",
            "several" if given else "none",
            'name one: attlas classify RUN "a text" --attention map.png',
        )
    found = classifier(given[0])
    if path.suffix == _TRACE:
        found.trace.save(path)
    else:
        draw(found.trace, path, layer=layer, query=None, row=0)
    _remark("text 1", found)
    with ExitStack() as files:
        opened(target, files).write(_line(found, as_json=as_json))


def _line(found: Classification, *, as_json: bool) -> bytes:
    if as_json:
        facts = {
            "label": found.label,
            "probability": found.probability,
            "probabilities": dict(found.probabilities),
        }
        return f"{json.dumps(facts, ensure_ascii=False)}\n".encode()
    return f"{found.label}\t{found.probability:.4f}\n".encode()


def _remark(place: str, found: Classification) -> None:
    if not found.text:
        print(f"attlas: {place}: there is no word in it", file=sys.stderr)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it: a text
        return False
