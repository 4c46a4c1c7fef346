"""Pages of the ledger: the verdict table, and a page for each experiment."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attlas._files import write_durably
from attlas._text import count_noun
from attlas.figures import save
from attlas.figures.fonts import BASE
from attlas.lab.data import ORIGINS, VARIABLE
from attlas.lab.examples import KeptExample, write_page, write_picture
from attlas.lab.experiment import Claim, Experiment, Plot, Published
from attlas.lab.ledger import Entry
from attlas.lab.results import REWRITTEN, SeedResult
from attlas.lab.sources import is_teaching_text
from attlas.lab.verdict import (
    All,
    Judgement,
    Outcome,
    Provided,
    Rule,
    condition_text,
    fits,
    interval_of,
    with_interval,
)


@dataclass(frozen=True)
class Heading:
    """A heading of level 1 to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Cells:
    """A table; cells are plain text, those of `links` lead to a page."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A picture beside the page."""

    file: str
    text: str


@dataclass(frozen=True)
class LiveMap:
    """A map beside the page, as a page of its own and as a picture."""

    page: str
    file: str
    text: str


@dataclass(frozen=True)
class PageList:
    """The pages below this one, for the navigation of a site. HTML has links instead."""

    pages: tuple[str, ...]


Block = Heading | Paragraph | Cells | Picture | LiveMap | PageList


# What the pages say.


TALLIES: dict[Outcome, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "depends": "depend on the condition",
    "undecided": "are undecided",
    "not judged": "are not judged",
}


def overview(entries: Sequence[Entry]) -> list[Block]:
    """The verdict table."""
    rows = list[tuple[str, ...]]()
    claims = [claim for entry in entries for claim, _ in entry.verdicts]
    for entry in entries:
        for claim, judgement in entry.verdicts:
            rows.append(
                (
                    entry.experiment.name,
                    claim.text,
                    str(claim.source),
                    judgement.outcome,
                    effect_of(judgement),
                    published_text(claim),
                    f"{scale_of(entry)}, {len(entry.results)}",
                )
            )
    rows.sort(key=lambda row: row[3] == "not judged")
    outcomes = [row[3] for row in rows]
    tally = ", ".join(f"{outcomes.count(name)} {words}" for name, words in TALLIES.items())
    return [
        Heading(1, "The lab: claims about attention, run and judged"),
        Paragraph(
            "Each row is a claim as it is taught. Its rule was written before the run."
            f"{_but(claims)} The effect is the mean over seeds with its 95 % interval. That of a "
            "share, such as an accuracy, is cut at 0 and 1. A verdict changes where the interval "
            "of new seeds, sizes or data lies on the other side of the bound."
        ),
        Paragraph(f"{len(rows)} claims: {tally}{_waiting(entries)}."),
        Paragraph(
            "A claim holds, or does not hold, where the whole interval is on one side of the "
            "bound. “Depends”: some parts of its rule hold, and others do not. “Undecided”: the "
            "bound is within the interval, or no part fails and some are undecided. “Not judged”: "
            "the models have not learnt the task, nothing is left to gain, or the rule is about "
            "other sizes."
        ),
        Paragraph(_about_sizes(entries)),
        Paragraph(
            "A result is bound to its code by a key. It is a hash of the code that measures, its "
            "settings, its seed, the bytes of its data files, and the versions of attlas and "
            "torch. Some keys were written anew, without a new measurement, after changes of the "
            "code that leave its numbers alone, such as other names. Their pages tell when and "
            "why. The commit on a page is that of the working tree at the time. A + behind it "
            "says that files differed from it. It may not be in the history, which was rearranged "
            "later."
        ),
        Paragraph(
            "Claims beside a figure of a paper that was read at its source: "
            f"{sum(map(_beside_a_paper, claims))}. Beside one at second hand: "
            f"{sum(map(_at_second_hand, claims))}. Beside a figure that the text itself prints: "
            f"{sum(map(_beside_the_text, claims))}."
        ),
        Cells(
            ("experiment", "claim", "taught in", "verdict", "effect", "published", "scale, seeds"),
            tuple(rows),
            tuple(row[0] for row in rows),
        ),
        PageList(tuple(entry.experiment.name for entry in entries)),
    ]


def _but(claims: Sequence[Claim]) -> str:
    revised = sum(bool(claim.revised) for claim in claims)
    added = sum(bool(claim.added) for claim in claims)
    parts = [f"{count_noun(revised, 'rule')} were changed afterwards"] if revised else []
    parts += [f"{count_noun(added, 'claim')} were added afterwards"] if added else []
    return f" But {' and '.join(parts)}: their pages say how." if parts else ""


def _waiting(entries: Sequence[Entry]) -> str:
    """How many claims are not judged because nothing was run."""
    waiting = sum(len(entry.verdicts) for entry in entries if not entry.results)
    return f", of which {waiting} wait for a run" if waiting else ""


def _about_sizes(entries: Sequence[Entry]) -> str:
    small = sum(measured_small(entry) for entry in entries)
    return (
        "The last column tells the sizes and how many seeds were run. “full” are the sizes of the "
        "report. “small sizes” is said of "
        f"{small} of {sum(bool(entry.results) for entry in entries)} experiments: they were "
        "measured with sizes of seconds to minutes, under the name quick, and larger ones were "
        "not run. A number that no seed can change is called deterministic, and has no interval."
    )


def scale_of(entry: Entry) -> str:
    """The sizes of the results in a word."""
    return "small sizes" if measured_small(entry) else entry.scale or "–"


def measured_small(entry: Entry) -> bool:
    """Return True where the full results were measured under the name quick."""
    commands = [str(result.facts["command"]) for result in entry.results]
    return entry.scale == "full" and any(re.search(r"--quick\b", one) for one in commands)


def _beside_a_paper(claim: Claim) -> bool:
    return any(
        p.measured and p.source.read and not is_teaching_text(p.source) for p in claim.published
    )


def _at_second_hand(claim: Claim) -> bool:
    figures = [p for p in claim.published if p.measured]
    return bool(figures) and not any(p.source.read for p in figures)


def _beside_the_text(claim: Claim) -> bool:
    """Return True if its only figures that were read are those of texts that teach it."""
    read = [p for p in claim.published if p.measured and p.source.read]
    return bool(read) and not _beside_a_paper(claim)


def known_by(published: Published) -> str:
    """How a figure is known, and whether it is a result."""
    known = "read at its source" if published.source.read else "second hand"
    return known if published.measured else f"{known}; not measured there"


def published_text(claim: Claim) -> str:
    """The published figures of a claim; what they are stands on the page of its experiment."""
    groups = groupby(claim.published, known_by)
    found = [f"{', '.join(map(str, figures))} ({known})" for known, figures in groups]
    return "; ".join(found) or "–"


def effect_of(judgement: Judgement) -> str:
    """The effect with its interval; of a rule with parts, how many of them hold."""
    if len(judgement.parts) == 1:
        return effect_of(judgement.parts[0])
    if judgement.parts:
        holding = sum(part.outcome == "holds" for part in judgement.parts)
        return f"{holding} of {len(judgement.parts)} parts hold"
    if isnan(judgement.effect):
        return "–"
    return with_interval(judgement.effect, judgement.low, judgement.high, judgement.deterministic)


def what_would_change(claim: Claim, judgement: Judgement) -> str:
    """What would change our mind; where a claim does not hold, `claim.change` was found."""
    if judgement.outcome == "depends":
        return (
            "What would change our mind: new seeds, sizes or data with which every part of the "
            "rule holds, or none."
        )
    if judgement.outcome != "does not hold":
        return f"What would change our mind: {claim.change}"
    return (
        f"What speaks against the claim: {claim.change} What would change our mind: new seeds, "
        "sizes or data with an interval on the other side of the bound."
    )


def experiment_page(entry: Entry) -> list[Block]:
    """The page of one experiment."""
    experiment = entry.experiment
    blocks: list[Block] = [Heading(1, experiment.title), Paragraph(experiment.method)]
    for claim, judgement in entry.verdicts:
        blocks += [
            Heading(2, f"{judgement.outcome.capitalize()}: {claim.text}"),
            Paragraph(f"Taught in: {claim.source}."),
            *why_not_judged(entry, judgement),
            rule_table(claim.rule, judgement),
            Paragraph(_when_written(claim)),
            Paragraph(what_would_change(claim, judgement)),
        ]
        if claim.published:
            blocks.append(
                Cells(
                    ("published", "value", "source", "known"),
                    tuple((p.what, str(p), p.source.cited, known_by(p)) for p in claim.published),
                )
            )
    if entry.results:
        blocks += [
            *(Picture(picture_name(entry, i), caption(p)) for i, p in enumerate(experiment.plots)),
            *([Heading(2, "Maps")] if entry.examples else []),
            *(
                LiveMap(example_name(entry, one, ".html"), example_name(entry, one), one.caption)
                for one in entry.examples
            ),
            Heading(2, "Measurements"),
            measurements(entry.results, experiment.deterministic),
            *sizes(experiment),
            *other_name(entry),
            Heading(2, "How to run it again"),
            Paragraph(f"attlas lab run {experiment.name} --{entry.scale}"),
            *data_read(entry),
            Paragraph(made_on(entry.results)),
            *rewritten_keys(entry.results),
        ]
    return blocks


def _when_written(claim: Claim) -> str:
    if claim.added:
        return f"The claim and its rule were written after the run: {claim.added}"
    if claim.revised:
        return f"The rule was changed after numbers were known: {claim.revised}"
    return "The rule was written before the run."


def why_not_judged(entry: Entry, judgement: Judgement) -> list[Block]:
    """The reason where there are results that do not decide about a claim."""
    if not entry.results or judgement.outcome != "not judged":
        return []
    return [Paragraph(f"Not judged at this size: {judgement.reason}.")]


def rule_table(rule: Rule, judgement: Judgement) -> Cells:
    """Each part of a rule with what was measured."""
    rows = list[tuple[str, str, str]]()
    found = iter(judgement.provided)
    while isinstance(rule, Provided):
        rows.append((f"provided that {rule.condition_text()}", next(found, "–"), ""))
        rule = rule.rule
    rules = rule.rules if isinstance(rule, All) else (rule,)
    parts = judgement.parts or (judgement,) * len(rules)
    rows += [
        (str(part), _measured_for(part, judged), judged.outcome)
        for part, judged in zip(rules, parts, strict=True)
    ]
    return Cells(("rule", "effect (95 % interval)", "verdict"), tuple(rows))


def _measured_for(part: Rule, judgement: Judgement) -> str:
    """The effect; of a part whose condition is not met, what was measured for the condition."""
    if isinstance(part, Provided) and judgement.outcome == "not judged":
        return ", ".join(judgement.provided) or "–"
    return effect_of(judgement)


def measurements(results: Sequence[SeedResult], deterministic: Sequence[str] = ()) -> Cells:
    """Every metric and condition with its mean over seeds and the interval.

    Metrics that no seed can change have no interval.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for result in results:
        for m in result.measurements:
            under = condition_text(m.condition)
            values.setdefault((m.metric, under), []).append(m.value)
    rows = []
    for (metric, under), numbers in values.items():
        low, high = interval_of(metric, numbers)
        mean = sum(numbers) / len(numbers)
        fixed = metric in deterministic
        mean = numbers[0] if fixed else mean
        rows.append((metric, under, with_interval(mean, low, high, fixed)))
    return Cells(("metric", "condition", "mean (95 % interval)"), tuple(rows))


def sizes(experiment: Experiment) -> list[Block]:
    """The settings of both scales."""
    full, quick = experiment.settings["full"], experiment.settings["quick"]
    rows = [("seeds", str(experiment.seeds["full"]), str(experiment.seeds["quick"]))]
    rows += [
        (name, *(_as_text(one.get(name, "–")) for one in (full, quick)))  # type: ignore[misc]
        for name in {**full, **quick}
    ]
    return [Heading(2, "Sizes"), Cells(("setting", "full", "quick"), tuple(rows))]


def other_name(entry: Entry) -> list[Block]:
    """What full results were called when they were measured, where that is another name."""
    if not measured_small(entry):
        return []
    place = "commit" if len(_commits(entry.results)) == 1 else "commits"
    return [
        Paragraph(
            f"Measured under the name quick, at the {place} below, with the sizes listed above as "
            "full. The name full was then kept for larger sizes, which were planned first and "
            "never run."
        )
    ]


def _as_text(setting: Any) -> str:
    """A setting without the marks of Python."""
    if isinstance(setting, Mapping):
        return "; ".join(f"{name}: {_as_text(value)}" for name, value in setting.items())
    if isinstance(setting, Sequence) and not isinstance(setting, str):
        return ", ".join(map(_as_text, setting))
    return str(setting)


def data_read(entry: Entry) -> list[Block]:
    """The data that an experiment reads: where it comes from, and its checksum."""
    checksums = {
        (name, str(value))
        for result in entry.results
        for name, value in result.facts.get("data", {}).items()
    }
    if not checksums:
        return []
    rows = tuple((name, ORIGINS[name], value) for name, value in sorted(checksums))
    return [
        Paragraph(
            f"The data is read from subfolders of the folder that {VARIABLE} names. The checksum "
            "of one is that of what find . -type f | LC_ALL=C sort | xargs sha256sum prints in it."
        ),
        Cells(("folder", "from", "SHA-256"), rows),
    ]


def made_on(results: Sequence[SeedResult]) -> str:
    """The machine and the versions of the results."""
    first = results[0].facts
    seconds = sum(float(result.facts["seconds"]) for result in results)
    return (
        f"{len(results)} seeds in {seconds:,.0f} s on {first['processor']}, "
        f"{first['cores']} cores; "
        f"attlas {first['attlas']} at {', '.join(_commits(results))}, torch {first['torch']}."
    )


def rewritten_keys(results: Sequence[SeedResult]) -> list[Block]:
    """The keys that were written anew without a new measurement."""
    found = {
        (one["commit"], one["reason"]): None
        for result in results
        for one in result.facts.get(REWRITTEN, [])
    }
    if not found:
        return []
    reasons = " ".join(f"At {commit}: {reason}." for commit, reason in found)
    return [Paragraph(f"Keys were written anew without a new measurement. {reasons}")]


def _commits(results: Sequence[SeedResult]) -> list[str]:
    """The first digits of each commit, with the + where files differed from it."""
    commits = dict.fromkeys(str(result.facts["commit"]) for result in results)
    return [commit[:8] + "+" * commit.endswith("+") for commit in commits]


def caption(plot: Plot) -> str:
    """What a plot shows."""
    lines = f"; lines: {plot.by}" if plot.by else ""
    where = f"; {condition_text(plot.where)}" if plot.where else ""
    return f"{plot.metric} by {plot.x}{lines}{where}"


def picture_name(entry: Entry, index: int) -> str:
    """The file name of a plot."""
    return f"{entry.experiment.name}-{index + 1}.svg"


def example_name(entry: Entry, example: KeptExample, suffix: str = ".png") -> str:
    """The file name of an example's page or picture."""
    return f"{entry.experiment.name}-{example.name}{suffix}"


def draw_plot(plot: Plot, results: Sequence[SeedResult]) -> Figure:
    """Means over seeds as lines, their 95 % intervals as bands."""
    series: dict[str, dict[float, list[float]]] = {}
    for result in results:
        for m in result.measurements:
            if m.metric == plot.metric and plot.x in m.condition and fits(m.condition, plot.where):
                name = str(m.condition.get(plot.by, "")) if plot.by else ""
                point = float(m.condition[plot.x])
                series.setdefault(name, {}).setdefault(point, []).append(m.value)
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name, points in series.items():
        x_values = sorted(points)
        means = [sum(points[x]) / len(points[x]) for x in x_values]
        bands = [interval_of(plot.metric, points[x]) for x in x_values]
        (line,) = axes.plot(x_values, means, marker="o", markersize=3, label=name)
        if all(len(points[x]) > 1 for x in x_values):
            low, high = zip(*bands, strict=True)
            axes.fill_between(x_values, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
    if plot.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    axes.set_xlabel(plot.x)
    axes.set_ylabel(plot.metric)
    if len(series) > 1:
        axes.legend(title=plot.by, frameon=False)
    for text in [axes.xaxis.label, axes.yaxis.label]:
        text.set_fontfamily(BASE)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


# How they are written.


_FRAME = "width: 100%; height: 44rem; border: 1px solid #ccc"


def as_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown."""
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"{'#' * level} {text}")
            case Paragraph(text):
                parts.append(text)
            case Picture(file, text):
                parts.append(f"![{text}]({file})")
            case LiveMap(page, file, text):
                # A site shows the frame; where there is none, the picture is left.
                frame = html.escape(text)
                parts.append(
                    f"{text}\n\n![{text}]({file})\n\n"
                    f'<iframe src="{page}" title="{frame}" loading="lazy" '
                    f'style="{_FRAME}"></iframe>'
                )
            case PageList(pages):
                page_list = "\n".join(pages)
                parts.append(f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{page_list}\n```")
            case Cells(head, rows, links):
                cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
                for row, link in zip(cells, links, strict=False):
                    row[0] = f"[{row[0]}]({link}.md)"
                lines = [list(head), ["---"] * len(head), *cells]
                parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts) + "\n"


_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fffdf8; }
table { border-collapse: collapse; font-size: 0.9rem; } td, th { text-align: left;
       vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid #ddd; }
img { max-width: 100%; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1a18; }
       td, th { border-color: #444; } img { background: #fff; } }
"""


def as_html(blocks: Sequence[Block], title: str) -> str:
    """The blocks as one HTML page."""
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"<h{level}>{html.escape(text)}</h{level}>")
            case Paragraph(text):
                parts.append(f"<p>{html.escape(text)}</p>")
            case Picture(file, text):
                parts.append(f'<img src="{html.escape(file)}" alt="{html.escape(text)}">')
            case LiveMap(page, _, text):
                parts.append(
                    f'<p>{html.escape(text)} (<a href="{html.escape(page)}">alone</a>)</p>'
                    f'<iframe src="{html.escape(page)}" title="{html.escape(text)}" '
                    f'loading="lazy" style="{_FRAME}"></iframe>'
                )
            case PageList():
                pass
            case Cells(head, rows, links):
                parts.append(_html_table(head, rows, links))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>\n" + "\n".join(parts) + "\n"
    )


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]], links: Sequence[str]) -> str:
    html_rows = ["<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"]
    for index, row in enumerate(rows):
        cells = [html.escape(cell) for cell in row]
        if index < len(links):
            cells[0] = f'<a href="{html.escape(links[index])}.html">{cells[0]}</a>'
        html_rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(html_rows)}</table>"


def write_pages(entries: Sequence[Entry], folder: Path, suffix: str) -> list[Path]:
    """Write index and pages into a folder, as ".md" or ".html", with their pictures.

    Live maps come with ".html"; a site of the ".md" gets them from `write_live_maps`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    pages = {"index": overview(entries)}
    pages |= {entry.experiment.name: experiment_page(entry) for entry in entries}
    for name, blocks in pages.items():
        text = as_markdown(blocks) if suffix == ".md" else as_html(blocks, name)
        write_durably(folder / f"{name}{suffix}", text.encode())
        paths.append(folder / f"{name}{suffix}")
    for entry in entries:
        if entry.results:
            for index, plot in enumerate(entry.experiment.plots):
                save(draw_plot(plot, entry.results), folder / picture_name(entry, index))
        for example in entry.examples:
            opened = example.open()
            if suffix == ".html":  # its maps need no picture, and no font that has their letters
                write_page(opened, folder / example_name(entry, example, ".html"))
            else:
                write_picture(opened, folder / example_name(entry, example))
    return paths


def write_live_maps(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """Write the pages of all examples into a folder, for a site whose pages frame them."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for entry in entries:
        for example in entry.examples:
            path = folder / example_name(entry, example, ".html")
            write_page(example.open(), path)
            paths.append(path)
    return paths
