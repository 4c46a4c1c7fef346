"""The tables of benchmarks in the READMEs, made from benchmarks/results.json."""

from collections.abc import Collection, Sequence
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
    by_suite: dict[str, list[Result]] = {suite: [] for suite in suites}
    for one in results["measurements"]:
        if one["suite"] in by_suite:
            by_suite[one["suite"]].append(one)
    layouts = [long if len(some) > 8 else wide for some in by_suite.values()]
    parts = [layout(some) for layout, some in zip(layouts, by_suite.values(), strict=True) if some]
    failed = results["failed"]
    parts += [f"{suite} failed: {failed[suite]}." for suite in suites if suite in failed]
    machine = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return "\n\n".join(
        [
            *parts,
            "Medians over the blocks; in brackets, how many times as fast the first is, block by "
            f"block. {machine['processor']}, {machine['cores']} cores; {packages}; "
            f"{results['date']}.",
        ]
    )


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
