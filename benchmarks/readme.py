"""The tables of benchmarks in the READMEs, made from benchmarks/results.json."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

BEGIN, END = "<!-- benchmarks: benchmarks/run.py -->", "<!-- end of benchmarks -->"
Result = dict[str, Any]


def with_table(text: str, results: Result, suites: Collection[str]) -> str:
    """A page with the tables of these suites made anew between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"wanted the lines {BEGIN!r} and {END!r} in the page; put them in")
    return f"{before}{BEGIN}\n{tables(results, suites)}\n{END}{after}"


def tables(results: Result, suites: Collection[str]) -> str:
    """One table a suite, and under them where and when."""
    shown = {name: results[name] for name in suites if name in results}
    parts, conditions = [], dict[str, list[str]]()
    for name, suite in shown.items():
        if suite["failed"]:
            parts.append(f"{name} failed: {suite['failed']}.")
        if suite["measurements"]:
            parts.append(_layout(suite["measurements"])(suite["measurements"]))
        conditions.setdefault(_conditions(suite), []).append(name)
    if len(conditions) > 1:
        told = [f"{' and '.join(names)}: {where}" for where, names in conditions.items()]
    else:
        told = list(conditions)
    return "\n\n".join(
        [
            *parts,
            "Medians over the blocks; in brackets, how many times as fast the first is, block by "
            f"block. {' '.join(told)}",
        ]
    )


def _layout(measurements: list[Result]) -> Callable[[list[Result]], str]:
    if any("points" in one for measurement in measurements for one in measurement["contenders"]):
        return curves
    return long if len(measurements) > 8 else wide


def _conditions(suite: Result) -> str:
    machine = suite["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return f"{machine['processor']}, {machine['cores']} cores; {packages}; {suite['date']}."


def wide(measurements: list[Result]) -> str:
    """Contenders down, measurements across."""
    units = dict.fromkeys(one["unit"] for one in measurements)
    heads = [f"{one['name']}, {_threads(one)}" for one in measurements]
    lines = [_line([f"{measurements[0]['suite']}, {', '.join(units)}", *heads])]
    lines.append("|---" * (len(heads) + 1) + "|")
    for name in dict.fromkeys(c["name"] for one in measurements for c in one["contenders"]):
        cells = []
        for one in measurements:
            found = next((c for c in one["contenders"] if c["name"] == name), None)
            cells.append("–" if found is None else _cell(found, one))
        lines.append(_line([_titled(name, measurements), *cells]))
    return "\n".join([*lines, *_lost(measurements)])


def long(measurements: list[Result]) -> str:
    """Measurements down; the first contender, and the others beside it."""
    lines = [_line([measurements[0]["suite"], "first", "others"]), "|---|---|---|"]
    for one in measurements:
        first, *others = [f"{c['name']}: {_cell(c, one)}" for c in one["contenders"]]
        what = f"{one['name']}, {_threads(one)}, {one['unit']}"
        lines.append(_line([what, first, "<br>".join(others)]))
    return "\n".join([*lines, *_lost(measurements)])


def curves(measurements: list[Result]) -> str:
    """Contenders down, minutes across; for each measurement a table."""
    parts = []
    for one in measurements:
        courses = {c["name"]: c["points"] for c in one["contenders"] if "points" in c}
        longest = max(courses.values(), key=len)
        heads = [f"{point['seconds'] / 60:.0f} min" for point in longest]
        lines = [_line([f"{one['name']}, {one['unit']}, {_threads(one)}", *heads])]
        lines.append("|---" * (len(heads) + 1) + "|")
        for name, points in courses.items():
            found = [f"{point['bleu']:.1f}" for point in points]
            missing = ["–"] * (len(heads) - len(found))
            lines.append(_line([_titled(name, measurements), *found, *missing]))
        parts.append("\n".join([*lines, *_lost([one])]))
    return "\n\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _lost(measurements: list[Result]) -> list[str]:
    """Why contenders have no figures, each reason once."""
    reasons = [
        f"{c['name']}: {c['lost']}"
        for one in measurements
        for c in one["contenders"]
        if "lost" in c
    ]
    return ["", "; ".join(dict.fromkeys(reasons)) + "."] if reasons else []


def _titled(name: str, measurements: list[Result]) -> str:
    """With the version that was measured, where that is known and not attlas's own."""
    found = (c for one in measurements for c in one["contenders"] if c["name"] == name)
    versions = sorted({c["version"] for c in found if c.get("version")})
    return f"{name} ({', '.join(versions)})" if versions and "attlas" not in name else name


def _cell(contender: Result, measurement: Result) -> str:
    if "lost" in contender:
        return "does not run"
    median = contender["median"]
    figure = f"{median:,.0f}" if median >= 100 else f"{median:.3g}"
    first = contender is measurement["contenders"][0]
    return figure if first else f"{figure} ({contender['ratio']:.2f} ×)"


def _threads(measurement: Result) -> str:
    count = measurement["threads"]
    return f"{count} thread" if count == 1 else f"{count} threads"
