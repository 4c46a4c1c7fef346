"""A trace, drawn into a file."""

import sys
import warnings
from pathlib import Path
from shlex import quote

from matplotlib.figure import Figure

from attlas.errors import AttlasError, join_names, quoted
from attlas.figures import HeadMap, MissingGlyphs, UnmatchedTokens, bars, maps_of, plot_trace, save
from attlas.inference import Translator
from attlas.inference.translator import translation_remarks
from attlas.jobs.inputs import names_a_trace, trace_at
from attlas.recording import Trace


def trace_on_disk(path: Path, text: str | None) -> Trace:
    """A trace that was saved; it holds its own text."""
    if text is not None:
        raise AttlasError(
            "no text beside a trace, which holds its own",
            quoted(text),
            "leave it out, or name the folder of a run",
        )
    return trace_at(path)


def check_text(subject: Path, text: str | None) -> None:
    """That there is a word in the text that comes beside a run.

    Errors: `AttlasError` for an empty text, also beside a trace, which holds its own.
    """
    if text is not None and not text.strip():
        advice = f'write a sentence: attlas figure {quote(str(subject))} "a text"'
        if names_a_trace(subject):
            advice = "leave it out: a trace holds its own text"
        raise AttlasError("a text to translate", "an empty one", advice)


def trace_of_run(translator: Translator, text: str) -> Trace:
    """The trace of a translation; text and translation are told on the standard error."""
    translation = translator(text)
    print(f"{text} → {translation.text}", file=sys.stderr)
    for remark in translation_remarks(translation.cut, translation.finished):
        print(f"attlas: {remark}", file=sys.stderr)
    if translation.trace is None:
        raise AttlasError("a translation to look into", translation.blank, "try another")
    return translation.trace


def draw(trace: Trace, path: Path, *, layer: str | None, query: int | None, row: int) -> None:
    """All maps of a batch row, or those of a layer; or the bars of one query of the only map."""
    with warnings.catch_warnings(record=True) as told:
        for category in (MissingGlyphs, UnmatchedTokens):
            warnings.simplefilter("always", category)
        if query is not None:
            drawn = _bars(maps_of(trace, row, layer=layer), query)
        else:
            drawn = plot_trace(trace, layer=layer, row=row)
        save(drawn, path)
    for message in dict.fromkeys(str(warning.message) for warning in told):
        print(f"attlas: {message}", file=sys.stderr)


def _bars(maps: dict[str, HeadMap], query: int) -> Figure:
    if len(maps) != 1:
        raise AttlasError(
            "one map to take a query of",
            f"{len(maps)}: {join_names(maps)}" if maps else "none",
            "choose one with --layer",
        )
    (map_,) = maps.values()
    keys, queries = map_.axes
    if query >= len(map_.target):
        token = "query" if queries == "query" else f"{queries} token"
        raise AttlasError(
            f"a {token} from 0 to {len(map_.target) - 1}", str(query), "count them in the map"
        )
    return bars(map_.rows(query, query + 1), map_.source, map_.target[query], axis=keys)
