"""The goals of the explorer beside what `explorer_speed.py` measured, as a table for the page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from readme import conditions

HERE = Path(__file__).resolve().parent
RECORD = HERE / "explorer.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- explorer: benchmarks/explorer_speed.py -->", "<!-- end of explorer -->"

Record = dict[str, Any]


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.2f} s"


def _ms(ms: float) -> str:
    return f"{ms:.1f} ms" if ms < 100 else f"{ms:,.0f} ms"


def _kb(size: float) -> str:
    return f"{size / 1000:,.1f} kB" if size < 100_000 else f"{size / 1000:,.0f} kB"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _a_cell(number: float) -> str:
    return f"{number:.2f} B"


def _rate(number: float) -> str:
    return f"{number:.0f} a second"


def _weight(number: float) -> str:
    return f"{number:.1g}"


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and what it should be: at most `limit`, or at least, or (None) nothing is asked."""

    what: str
    figure: str
    limit: float | None
    write: Callable[[float], str]
    at_least: bool = False

    def row(self, figures: dict[str, list[float]]) -> str:
        """The line of the table: the figure's median, and its spread."""
        sign = "≥" if self.at_least else "≤"
        if self.figure not in figures:
            limit = "–" if self.limit is None else f"{sign} {self.write(self.limit)}"
            return f"| {self.what} | {limit} | not measured | |"
        values = figures[self.figure]
        middle = median(values)
        spread = ""
        if self.write(min(values)) != self.write(max(values)):
            spread = f" ({self.write(min(values))} to {self.write(max(values))})"
        if self.limit is None:
            return f"| {self.what} | – | {self.write(middle)}{spread} | |"
        met = middle >= self.limit if self.at_least else middle <= self.limit
        verdict = "met" if met else "**missed**"
        return (
            f"| {self.what} | {sign} {self.write(self.limit)} | {self.write(middle)}{spread} | "
            f"{verdict} |"
        )


GOALS = (
    Goal("144 heads × 512 tokens: first picture of all heads", "512.first.total", 1_000, _seconds),
    Goal("of it, the server's answers waited for", "512.first.server", None, _ms),
    Goal("of it, the browser", "512.first.browser", 250, _ms),
    Goal("bytes until then, the page and its script included", "512.first.bytes", 500_000, _kb),
    Goal("the map of one head at full precision", "512.exact.total", 2_000, _seconds),
    Goal("first picture on the first visit, while the server loads PyTorch",
         "512.after_start.total", None, _seconds),
    Goal("bytes a weight, all heads of a layer with a byte each (deflated)",
         "512.tiles.rough_bytes", 0.55, _a_cell),
    Goal("bytes a weight, the head on screen", "512.tiles.near_bytes", None, _a_cell),
    Goal("largest error of a weight, the head on screen", "512.tiles.near_error", 1e-5, _weight),
    Goal("144 heads × 1,024: first picture of all heads", "1024.first.total", 1_500, _seconds),
    Goal("zooming in its map, frames", "1024.frames.zoom", 50, _rate, at_least=True),
    Goal("panning in its map, frames", "1024.frames.pan", 50, _rate, at_least=True),
    Goal("hover at 512: main thread for each event, layout and painting included",
         "512.hover.main", 4, _ms),
    Goal("of it, the page's script", "512.hover.script", None, _ms),
    Goal("hover at 512: event to frame, 95 % within", "512.hover.frame_p95", 20, _ms),
    Goal("another head at 512: drawn", "512.head.exact_drawn", 16, _ms),
    Goal("another head at 512: on screen", "512.head.exact", None, _ms),
    Goal("another layer at 512: drawn", "512.layer.exact_drawn", 100, _ms),
    Goal("another layer at 512: on screen", "512.layer.exact", None, _ms),
    Goal("DOM nodes at 512 tokens", "512.nodes.all", 1_500, _count),
    Goal("DOM nodes at 1,024 tokens", "1024.nodes.all", 1_500, _count),
    Goal("DOM nodes at 16,384 tokens, 500 of them in view", "16384.nodes.all", 1_500, _count),
    Goal("script, gzipped", "script.gzipped", 60_000, _kb),
    Goal("requests to another server", "foreign.requests", 0, _count),
    Goal("1 head × 131,072: first picture, a sample that says so",
         "131072.first.total", 2_000, _seconds),
    Goal("opened again, once it was read: the largest weights of all of it",
         "131072.reopened.total", 1_000, _seconds),
    Goal("a step of the zoom there: something new on screen", "131072.zoom.shown", 250, _ms),
    Goal("Doubt: an output of the run `demo` with other weights", "doubt.answer", 300, _ms),
    Goal("`attlas look` of a trace: listening", "look.listening", 2_000, _seconds),
)  # fmt: skip


def reported(record: Record) -> str:
    """Both tables, and where and when they were measured."""
    figures = record["figures"]
    rows = [goal.row(figures) for goal in GOALS]
    lines = ["| what | goal | measured | |", "|---|---|---|---|", *rows]
    if record["peers"]:
        lines += ["", *_beside(record["peers"])]
    lines += [
        "",
        "Medians of five; in brackets, the least and the most. "
        f"Load {record['load']:.1f} before; {record['browser']} without a GPU; " + _where(record),
    ]
    if model := record.get("model"):
        lines += ["", *_beside(model["peers"]), "", f"{model['name']}; {_where(model)}"]
    return "\n".join(lines)


def _where(record: Record) -> str:
    """The machine, the commit and the date."""
    suite = {"date": record["date"], "machine": record["machine"], "measurements": []}
    return conditions({"explorer": suite})


def _beside(peers: list[Record]) -> list[str]:
    """The explorer and its peers with the same maps."""
    maps = f"{peers[0]['heads']} heads × {peers[0]['tokens']} tokens, as one file"
    lines = [
        f"| {maps} | bytes of the file | DOM nodes | until drawn |",
        "|---|---|---|---|",
    ]
    for one in peers:
        name = f"{one['name']} ({one['version']})" if one.get("version") else one["name"]
        if "lost" in one:
            lines.append(f"| {name} | does not run: {one['lost']} | | |")
            continue
        drawn = _seconds(1000 * median(one["seconds"]))
        lines.append(f"| {name} | {_kb(one['bytes'])} | {_count(one['nodes'])} | {drawn} |")
    return lines


def with_goals(text: str, record: Record) -> str:
    """A page with the tables made anew between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"expected the lines {BEGIN!r} and {END!r} in the page; put them in")
    return f"{before}{BEGIN}\n{reported(record)}\n{END}{after}"
