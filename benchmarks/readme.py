"""The tables of benchmarks in two pages, made from benchmarks/results.json."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agreement import OURS
from curve import BEAM, by, late
from suite import lost

BEGIN, END = "<!-- benchmarks: benchmarks/run.py -->", "<!-- end of benchmarks -->"
CAPTION = (
    "Medians over the blocks; in brackets, how many times as fast the first is, block by block."
)
MEASURE = (
    f"BLEU on test2016, beam {BEAM}: cased, detokenised, 13a; the papers' measure takes lowercased "
    "tokens of Moses (benchmarks/paper_bleu.py)."
)
Result = dict[str, Any]


def with_table(text: str, results: Result, suites: Collection[str]) -> str:
    """A page with the tables of these suites made anew between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"expected the lines {BEGIN!r} and {END!r} in the page; put them in")
    return f"{before}{BEGIN}\n{tables(results, suites)}\n{END}{after}"


def tables(results: Result, suites: Collection[str]) -> str:
    """One table a suite, under them where and when, and at last what is still to be measured."""
    shown = {name: results[name] for name in suites if name in results}
    parts = []
    for name, suite in shown.items():
        if suite["failed"]:
            parts.append(f"{name} failed: {suite['failed']}.")
        if suite["measurements"]:
            parts.append(_layout(suite["measurements"])(suite["measurements"]))
    if shown:
        parts.append(f"{CAPTION} {conditions(shown)}")
    missing = " ".join(name for name in suites if name not in results)
    if missing:
        requested = f'"{missing}"' if " " in missing else missing
        parts.append(f"Not measured yet: `make bench SUITES={requested}`.")
    return "\n\n".join(parts)


def _layout(measurements: list[Result]) -> Callable[[list[Result]], str]:
    if any("moments" in measurement for measurement in measurements):
        return curves
    return long if len(measurements) > 8 else wide


_FEW = 3  # figures that are named one by one; which of more they are, results.json says


def conditions(suites: Mapping[str, Result]) -> str:
    """Where, at which commit and when: once where that is one and the same, else of what."""
    found: dict[str, dict[str, list[str]]] = {}

    def tell(names: list[str], reported: Result) -> None:
        found.setdefault(_where(reported["machine"]), {}).setdefault(_when(reported), []).extend(
            names
        )

    for name, suite in suites.items():
        tell([name], suite)
        apart: dict[tuple[str, str], tuple[Result, list[str]]] = {}
        for measurement in suite["measurements"]:
            for one in measurement["contenders"]:
                if reported := one.get("conditions"):
                    key = _where(reported["machine"]), _when(reported)
                    _, names = apart.setdefault(key, (reported, []))
                    if (label := f"{one['name']} in {measurement['name']}") not in names:
                        names.append(label)
        for reported, names in apart.values():
            few = len(names) <= _FEW
            tell(names if few else [f"{len(names)} other figures of {name}"], reported)
    several = sum(len(whens) for whens in found.values()) > 1
    sentences = []
    for where, whens in found.items():
        reported = [
            f"{' and '.join(names)}: {when}" if several else when for when, names in whens.items()
        ]
        sentences.append("; ".join([where, *reported]) + ".")
    return " ".join(sentences)


def _where(machine: Result) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    where = machine.get("processor") or machine["system"]  # an old run of attlas knows no more
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    return f"{where}{cores}; {packages}"


def _when(reported: Result) -> str:
    commit = reported["machine"].get("commit")
    if commit is None:
        return f"no commit, {reported['date']}"
    changed = " (changed since)" if commit.endswith("+") else ""
    return f"commit {commit}{changed}, {reported['date']}"


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
    return "\n".join([*lines, *_taken(measurements), *_alike(measurements), *_lost(measurements)])


def long(measurements: list[Result]) -> str:
    """Measurements down; the first contender, and the others beside it; memory where measured."""
    lines = [_line([measurements[0]["suite"], "first", "others"]), "|---|---|---|"]
    for one in measurements:
        cells = [
            f"{c['name']}: {_cell(c, one)}{_memory(c)}{_shared(c, one)}" for c in one["contenders"]
        ]
        first, *others = cells
        what = f"{one['name']}, {_threads(one)}, {one['unit']}"
        lines.append(_line([what, first, "<br>".join(others)]))
    return "\n".join([*lines, *_lost(measurements)])


def curves(measurements: list[Result]) -> str:
    """Contenders down, minutes across: how good was the newest by then; for each a table."""
    parts = []
    for one in measurements:
        moments = one["moments"]
        courses = [c for c in one["contenders"] if "points" in c]
        heads = [f"{moment / 60:.3g} min" for moment in moments]
        papers = any("paper_bleu" in c for c in courses)
        last = ["in the end", *(["papers' measure"] if papers else [])]
        lines = [_line([f"{one['name']}, {one['unit']}, {_threads(one)}", *heads, *last])]
        lines.append("|---" * (1 + len(heads) + len(last)) + "|")
        for contender in courses:
            points = contender["points"]
            found = [by(moment, points, moments[0]) for moment in moments]
            cells = ["–" if point is None else f"{point['bleu']:.1f}" for point in found]
            end = f"{points[-1]['bleu']:.1f} after {points[-1]['seconds'] / 60:.3g} min"
            cells.append(f"{end}, late" if late(points, moments) else end)
            if papers:
                cells.append(f"{contender['paper_bleu']:.1f}" if "paper_bleu" in contender else "–")
            coarse = contender.get("numbers", "float32") != "float32"
            name = _titled(contender["name"], [one])
            lines.append(_line([f"{name}, {contender['numbers']}" if coarse else name, *cells]))
        parts.append("\n".join([*lines, *_lost([one])]))
    return "\n\n".join([*parts, MEASURE])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _taken(measurements: list[Result]) -> list[str]:
    """Which of its ways each contender took, where it had several, from left to right."""
    found: dict[str, list[str]] = {}
    for one in measurements:
        for contender in one["contenders"]:
            if contender.get("taken"):
                found.setdefault(contender["name"], []).append(contender["taken"])
    reported = [f"{name}: {'; '.join(ways)}" for name, ways in found.items()]
    return (
        ["", f"The fastest batches, from left to right. {'. '.join(reported)}."] if reported else []
    )


def _alike(measurements: list[Result]) -> list[str]:
    """How many lines each contender writes as ours does, from left to right, where they wrote."""
    shares = [one.get("agreeing", {}) for one in measurements]
    reported = []
    for name in dict.fromkeys(name for one in shares for name in one if name != OURS):
        cells = [f"{one[name]:.1%}" if name in one else "–" for one in shares]
        reported.append(f"{name}: {', '.join(cells)}")
    if not reported:
        return []
    return ["", f"Lines that are those of {OURS}, from left to right. {'; '.join(reported)}."]


def _lost(measurements: list[Result]) -> list[str]:
    """Why contenders have no figures, each reason once."""
    reasons = lost(measurements)
    return ["", "; ".join(reasons) + "."] if reasons else []


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
    if contender is measurement["contenders"][0]:
        return figure
    return f"{figure} ({contender['ratio']:.2f} ×)" if "ratio" in contender else f"{figure} (–)"


def _memory(contender: Result) -> str:
    """At its peak, where that was measured."""
    return f", {contender['peak_mib']:,.0f} MiB" if "peak_mib" in contender else ""


def _shared(contender: Result, measurement: Result) -> str:
    """How many of its lines are ours, where both wrote some."""
    share = measurement.get("agreeing", {}).get(contender["name"])
    ours = contender["name"] == OURS
    return "" if ours or share is None else f", {share:.1%} of its lines those of {OURS}"


def _threads(measurement: Result) -> str:
    count = measurement["threads"]
    return f"{count} thread" if count == 1 else f"{count} threads"
