"""The page of a watch file: heads × steps, the alarms, and the last reading, while it grows."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from attlas._files import parse_json
from attlas._text import count_noun
from attlas.errors import AttlasError, DataError, quoted
from attlas.explorer.messages import MissingError, json_no_store, no_store
from attlas.explorer.site import guarded

_FILES = Path(__file__).parent / "history_page"
_DEFAULT = "max_logit"
_SHOWN_ALARMS = 50
_LONGEST_LINE = 1 << 26  # bytes of a reading

Record = Mapping[str, Any]

_MEANING: Mapping[str, str] = {
    "queries": "how many queries of tokens were read",
    "visible": "how many keys a query may see, on average",
    "max_logit": "the largest input of the softmax; very large ones make training unstable",
    "entropy": "how spread the weights of a query are, in nats; 0: all on one key",
    "entropy_p10": "the entropy that a tenth of the queries are below",
    "entropy_p50": "the median of the entropy over queries",
    "entropy_p90": "the entropy that nine tenths of the queries are below",
    "normalized_entropy": "entropy ÷ log of the visible keys; 0: all on one key, 1: even",
    "effective_keys": "exp(entropy): as many keys as an even head would look at",
    "first_share": "the mean weight of the first token; a large one is a sink",
    "self_share": "the mean weight of the query's own token",
    "received_share": "what the most-looked-at key of a text gets of all its queries",
    "distance": "how far a query looks, in keys, on average",
    "mask_diagonal": "the k of a causal mask, as of torch.tril; 0 is causal, 1 sees the next token",
    "context_error": "how far what a head has read is from exact attention, in roundings",
    "nonfinite": "how many queries have weights that are NaN or infinite",
}


class WatchFile:
    """A watch file, of which each request reads what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._growing: Any = None

    def records(self) -> Sequence[Record]:
        """Its readings.

        Raises:
            DataError: If it is gone, or no watch file.
        """
        from attlas.monitoring.history import GrowingHistory  # it imports torch

        with self._lock:
            if not self.path.is_file():
                raise _gone(self.path)
            if self._growing is None:
                self._growing = GrowingHistory(self.path)
            return list(self._growing.records())


def check_watch_file(path: Path) -> None:
    """Check that a file is there which may hold readings; an empty one may get some.

    Raises:
        DataError: For anything else.
    """
    if not path.is_file():
        raise _gone(path)
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE)
    if first.endswith(b"\n"):
        try:
            record = parse_json(first)
        except ValueError:
            record = None
        if not (isinstance(record, dict) and {"step", "heads", "alarms"} <= record.keys()):
            raise DataError(
                f"readings of attlas.watch in {path}",
                quoted(first.decode(errors="replace").strip()),
                "name a watch.jsonl, such as runs/demo/watch.jsonl",
            )


def _gone(path: Path) -> DataError:
    return DataError(
        "a watch file that is there",
        f"no file {path}",
        "name what `path=` of attlas.watch named, or the watch.jsonl of a run",
    )


def history_site(path: Path, hosts: Collection[str] = (), *, token: str | None = None) -> Starlette:
    """The web application of a watch file.

    / is the page, /heads.svg the picture, and /api/step the number of readings and the last step,
    by which the page knows that there are more. `statistic` and `layer` are in the address.

    Args:
        hosts, token: See `site.guarded`.
    """
    file = WatchFile(path)

    def page(request: Request) -> Response:
        return no_store(HTMLResponse(_page(file, _chosen(request))))

    def picture(request: Request) -> Response:
        chosen = _chosen(request)
        records = file.records()
        if not records:
            raise MissingError("a reading", f"none in {path.name} so far", "wait for the first")
        from attlas.figures import plot_history
        from attlas.figures.saving import image_of

        figure = plot_history(records, chosen["statistic"], layer=chosen.get("layer"))
        return no_store(Response(image_of(figure, ".svg"), media_type="image/svg+xml"))

    def step(request: Request) -> Response:
        records = file.records()
        last = records[-1]["step"] if records else 0
        return json_no_store({"readings": len(records), "step": last})

    routes = [
        Route("/", page),
        Route("/heads.svg", picture),
        Route("/api/step", step),
        Mount("/files", StaticFiles(directory=_FILES)),
    ]
    return guarded(routes, hosts, token=token)


def _chosen(request: Request) -> dict[str, str]:
    """The statistic, and the layer where one was chosen."""
    from attlas.monitoring.statistics import FIGURES

    statistic = request.query_params.get("statistic", _DEFAULT)
    if statistic not in FIGURES:
        raise AttlasError(
            f"a statistic among {', '.join(FIGURES)}", quoted(statistic), "choose one of these"
        )
    layer = request.query_params.get("layer")
    return {"statistic": statistic} | ({"layer": layer} if layer else {})


# The page. What the file says is text: layers and messages are escaped.


def _page(file: WatchFile, chosen: dict[str, str]) -> str:
    name = escape(file.path.name)
    try:
        content = _content(file.records(), chosen)
    except DataError as error:
        content = f'<p class="problem" role="alert">{escape(str(error))}</p>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{name} · attlas</title><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="files/history.css">'
        '<script type="module" src="files/history.js"></script></head><body>'
        f"<header><h1>{name}</h1>"
        '<p id="state" role="status">This page follows the file.</p></header>'
        f"<main>{content}</main></body></html>\n"
    )


def _content(records: Sequence[Record], chosen: dict[str, str]) -> str:
    if not records:
        return '<p data-readings="0">There is no reading so far.</p>'
    last = records[-1]
    statistic, layer = chosen["statistic"], chosen.get("layer")
    heads = [h for h in last["heads"] if layer is None or h["layer"].startswith(layer)]
    begun = [(record["step"], alarm) for record in records for alarm in record["alarms"]]
    where = "all layers" if layer is None else f"layers that begin with {escape(layer)}"
    picture = (
        f'<figure><img src="heads.svg?{escape(urlencode({**chosen, "step": last["step"]}))}" '
        f'alt="{statistic} of {len(heads)} heads at {len(records):,} steps; the numbers of the '
        f'last step are in the table below"><figcaption>Each row is a head, of {where}; each '
        "column is a reading. A red circle: an alarm begins there, of whatever kind."
        "</figcaption></figure>"
        if any(_known(record, statistic, layer) for record in records)
        else f"<p>No reading has {statistic} of {where}.</p>"
    )
    return (
        f'<p data-readings="{len(records)}" data-step="{last["step"]}">'
        f"{count_noun(len(records), 'reading')}, the last at step {last['step']:,}.</p>"
        f"{_summary(begun)}{_choices(last, chosen)}"
        f"<p><b>{statistic}</b>: {_MEANING[statistic]}.</p>{picture}"
        f"{_alarms(begun)}{_table(last['step'], heads, statistic)}"
    )


def _summary(begun: Sequence[tuple[int, Record]]) -> str:
    """What went wrong first, and how often each kind of alarm began."""
    if not begun:
        return "<p>No alarm so far.</p>"
    step, first = begun[0]
    kinds = Counter(alarm["kind"] for _, alarm in begun)
    counts = ", ".join(f"{escape(kind)} {count:,}" for kind, count in kinds.most_common())
    message = escape(str(first.get("message", f"step {step}: {first['kind']}")))
    return (
        f'<p class="problem">The first alarm: {message}.</p>'
        f"<p>{count_noun(len(begun), 'alarm')} so far: {counts}.</p>"
    )


def _known(record: Record, statistic: str, layer: str | None) -> bool:
    return any(
        head.get(statistic) is not None
        for head in record["heads"]
        if layer is None or head["layer"].startswith(layer)
    )


def _choices(last: Record, chosen: dict[str, str]) -> str:
    from attlas.monitoring.statistics import FIGURES

    layers = list(dict.fromkeys(head["layer"] for head in last["heads"]))
    rest = {name: value for name, value in chosen.items() if name != "layer"}
    all_layers = _link("all layers", rest, is_current="layer" not in chosen)
    of_layers = [
        _link(layer, {**rest, "layer": layer}, is_current=chosen.get("layer") == layer)
        for layer in layers
    ]
    of_statistics = [
        _link(name, {**chosen, "statistic": name}, is_current=chosen["statistic"] == name)
        for name in FIGURES
    ]
    return (
        f'<nav aria-label="Statistic"><h2>Statistic</h2>{" ".join(of_statistics)}</nav>'
        f'<nav aria-label="Layer"><h2>Layer</h2>{all_layers} {" ".join(of_layers)}</nav>'
    )


def _link(text: str, query: dict[str, str], *, is_current: bool) -> str:
    current = ' aria-current="true"' if is_current else ""
    return f'<a href="?{escape(urlencode(query))}"{current}>{escape(text)}</a>'


def _alarms(begun: Sequence[tuple[int, Record]]) -> str:
    from attlas.monitoring.alarms import ADVICE

    if not begun:
        return "<h2>Alarms</h2><p>None.</p>"
    rows = "".join(
        f'<tr><td>{step:,}</td><th scope="row">{escape(alarm["kind"])}</th>'
        f"<td>{escape(alarm['layer'])} · {_number(alarm.get('head'))}</td>"
        f"<td>{_number(alarm.get('figure'))}</td><td>{_number(alarm.get('threshold'))}</td></tr>"
        for step, alarm in begun[: -_SHOWN_ALARMS - 1 : -1]
    )
    kinds = dict.fromkeys(alarm["kind"] for _, alarm in begun)
    advice = "".join(
        f"<dt>{escape(kind)}</dt><dd>{escape(ADVICE[kind])}.</dd>"
        for kind in kinds
        if kind in ADVICE
    )
    more = len(begun) - _SHOWN_ALARMS
    rest = f"<p>{more:,} earlier ones are in the file.</p>" if more > 0 else ""
    titles = ("step", "alarm", "layer · head", "figure", "threshold")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return (
        f"<h2>Alarms: {len(begun):,}, the last first</h2>"
        '<div class="scrolled" tabindex="0" role="region" aria-label="Alarms"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{rest}"
        f"<dl>{advice}</dl>"
    )


def _table(step: int, heads: Sequence[Record], statistic: str) -> str:
    from attlas.monitoring.statistics import FIGURES

    columns = [name for name in FIGURES if any(head.get(name) is not None for head in heads)]
    titles = "".join(
        f'<th scope="col"{_chosen_column(name == statistic)}>{name}</th>' for name in columns
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(head["layer"])} · {head["head"]}</th>'
        + "".join(
            f"<td{_chosen_column(name == statistic)}>{_number(head.get(name))}</td>"
            for name in columns
        )
        + "</tr>"
        for head in heads
    )
    return (
        f"<h2>Step {step:,}</h2>"
        '<div class="scrolled" tabindex="0" role="region" aria-label="The last reading"><table>'
        f'<thead><tr><th scope="col">layer · head</th>{titles}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _chosen_column(is_chosen: bool) -> str:
    return ' class="chosen"' if is_chosen else ""


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else "–"
