"""Draw a trace into a file."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from matplotlib.figure import Figure

from attlas._text import count_noun
from attlas.errors import AttlasError, DataError, join_names, quoted
from attlas.figures import (
    HeadMap,
    MissingGlyphs,
    SampledMaps,
    UnmatchedTokens,
    bars,
    maps_of,
    plot_architecture,
    plot_history,
    plot_statistics,
    plot_trace,
    save,
)
from attlas.figures.scale import check_format, ramp_of
from attlas.inference import TextClassifier, Translator
from attlas.jobs.inputs import names_a_trace, trace_at
from attlas.jobs.translate_stream import remarks_on
from attlas.monitoring import read_history
from attlas.recording import Trace
from attlas.runs import CONFIG, Run
from attlas.training import Recipe


def trace_on_disk(path: Path, text: str | None) -> Trace:
    """A trace that was saved; it holds its own text."""
    if text is not None:
        raise AttlasError(
            "no text with a trace, which has its own",
            quoted(text),
            "leave it out, or name the folder of a run",
        )
    return trace_at(path)


def check_text(subject: Path, text: str | None) -> None:
    """Check that there is a word in the text that comes beside a run.

    Raises:
        AttlasError: For an empty text, also beside a trace, which holds its own.
    """
    if text is not None and not text.strip():
        advice = f'write a sentence: attlas figure {quote(str(subject))} "a text"'
        if names_a_trace(subject):
            advice = "leave it out: a trace holds its own text"
        raise AttlasError("a text to read", "an empty one", advice)


def trace_of_run(translator: Translator, text: str) -> Trace:
    """The trace of a translation; text and translation are printed on the standard error."""
    translation = translator(text)
    print(f"{text} → {translation.text}", file=sys.stderr)
    for remark in remarks_on(text, translation).values():
        print(f"attlas: {remark}", file=sys.stderr)
    if translation.trace is None:
        raise DataError("a translation that has attention", translation.blank, "try another")
    return translation.trace


MANY = 12  # maps in a figure


def trace_of_classifier(classifier: TextClassifier, text: str) -> Trace:
    """The trace of a classification; text and label are printed on the standard error."""
    found = classifier(text)
    print(f"{text} → {found.label} ({found.probability:.1%})", file=sys.stderr)
    if not found.known:
        print("attlas: none of its words is in the vocabulary", file=sys.stderr)
    return found.trace


@dataclass(frozen=True, slots=True)
class Style:
    """How a trace is drawn: `heatmaps`, the bars of one query, or the statistics of one map.

    Args:
        cmap, fmt, vmin, vmax, exact: As of `attlas.figures.heatmap`.
    """

    query: int | None = None
    statistics: bool = False
    cmap: str | None = None
    fmt: str | None = None
    vmin: float | None = None
    vmax: float | None = None
    exact: bool = False

    def check(self) -> None:
        """Check the style before the work.

        Raises:
            AttlasError: For an unknown colormap or format, for limits without numbers between them,
                and for options without effect.
        """
        ramp_of(self.cmap)
        check_format(self.fmt)
        if self.vmin is not None and self.vmax is not None and self.vmin >= self.vmax:
            raise AttlasError(
                "--vmin below --vmax", f"{self.vmin:g} and {self.vmax:g}", "exchange them"
            )
        of_maps: dict[str, object] = {
            "--cmap": self.cmap, "--vmin": self.vmin, "--vmax": self.vmax,
            "--exact": self.exact or None,
        }  # fmt: skip
        idle = dict[str, object]()
        if self.query is not None:
            idle = {**of_maps, "--statistics": self.statistics or None}
        elif self.statistics:
            idle = {**of_maps, "--fmt": self.fmt}
        other_option = "--statistics" if self.query is None else "--query"
        for name, value in idle.items():
            if value is not None:
                raise AttlasError(
                    f"no {name} beside {other_option}",
                    name if value is True else f"{name} {value}",
                    "leave one out",
                )


def draw(
    trace: Trace,
    path: Path,
    *,
    layer: str | None,
    row: int,
    head: int | None = None,
    style: Style | None = None,
) -> None:
    """All maps of a batch row, or those of a layer or head; or what the style says of the only one.

    Raises:
        AttlasError: As `plot_trace`, and for several maps where one is to be chosen.
    """
    style = Style() if style is None else style
    with warnings.catch_warnings(record=True) as caught:
        for category in (MissingGlyphs, SampledMaps, UnmatchedTokens):
            warnings.simplefilter("always", category)
        if style.query is not None:
            figure = _bars(maps_of(trace, row, layer=layer, head=head), style.query, style.fmt)
        elif style.statistics:
            maps = maps_of(trace, row, layer=layer, head=head)
            figure = plot_statistics(_only(maps, "one map to measure"))
        else:
            figure = plot_trace(
                trace,
                layer=layer,
                head=head,
                row=row,
                cmap=style.cmap,
                fmt=style.fmt,
                vmin=style.vmin,
                vmax=style.vmax,
                exact=style.exact,
            )
        save(figure, path)
        if style.query is None and not style.statistics:
            _advise_on_many(list(maps_of(trace, row, layer=layer, head=head)), path)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"attlas: {message}", file=sys.stderr)


def _advise_on_many(names: list[str], path: Path) -> None:
    """Say how fewer maps are drawn, where a figure has so many that each is small."""
    if len(names) > MANY:
        layer = quote(names[-1].split(", ")[0])
        print(
            f"attlas: {len(names)} maps are in {path}; draw fewer with --layer {layer} or --head 0",
            file=sys.stderr,
        )


def draw_history(
    path: Path,
    output: Path,
    statistic: str | None,
    layer: str | None,
    others: Mapping[str, object],
) -> None:
    """Draw a watch file as heads × steps.

    Args:
        others: Options that such a figure does not have; None = not given.

    Raises:
        AttlasError: As `read_history` and `plot_history`, and for other options.
    """
    _refuse_others("a watch file with --statistic, --layer and --output alone", others)
    records = read_history(path)
    save(plot_history(records, statistic or "max_logit", layer=layer), output)


def draw_architecture(
    run: Run, output: Path, checkpoint: str, others: Mapping[str, object]
) -> None:
    """Draw the parts of a run's model.

    Args:
        others: Options that such a figure does not have; None = not given.

    Raises:
        AttlasError: As `Run.model`, and for other options.
    """
    _refuse_others("a run with --architecture, --checkpoint and --output alone", others)
    model = run.classifier(checkpoint) if run.classifies else run.model(checkpoint)
    config = Recipe.read(run.config, str(run.path / CONFIG)).model
    size = count_noun(sum(parameter.numel() for parameter in model.parameters()), "parameter")
    save(plot_architecture(model, config, title=f"{run.path.name} · {size}"), output)


def _refuse_others(expected: str, others: Mapping[str, object]) -> None:
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise AttlasError(expected, join_names(given), "leave these out")


def _only(maps: dict[str, HeadMap], expected: str) -> HeadMap:
    if len(maps) != 1:
        raise AttlasError(
            expected,
            f"{len(maps)}: {join_names(maps)}" if maps else "none",
            "choose one with --layer",
        )
    (map_,) = maps.values()
    return map_


def _bars(maps: dict[str, HeadMap], query: int, fmt: str | None) -> Figure:
    map_ = _only(maps, "one map to take a query of")
    keys, queries = map_.axes
    if query >= len(map_.target):
        token = "query" if queries == "query" else f"{queries} token"
        raise AttlasError(
            f"a {token} from 0 to {len(map_.target) - 1}", str(query), "count them in the map"
        )
    return bars(map_.rows(query, query + 1), map_.source, map_.target[query], axis=keys, fmt=fmt)
