"""The work of `attlas lab`."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attlas._text import count_noun
from attlas.lab.experiment import Experiment, Scale
from attlas.lab.ledger import Entry, all_experiments, entry_of, find_experiment, judged
from attlas.lab.pictures import write_figures
from attlas.lab.report import effect_of, write_pages
from attlas.lab.runner import missing_data, run

STYLES = {
    "holds": "green",
    "does not hold": "red",
    "depends": "yellow",
    "undecided": "yellow",
    "not judged": "dim",
}


def list_entries(folder: Path) -> None:
    """Print every experiment with its claims and verdicts."""
    print_verdicts([entry_of(experiment, folder) for experiment in all_experiments()])


def run_named(names: Sequence[str], scale: Scale, seeds: int | None, folder: Path) -> None:
    """Run experiments by name, and print their verdicts."""
    experiments: list[Experiment] = []
    for name in names:
        selected_experiments = all_experiments() if name == "all" else [find_experiment(name)]
        experiments += [
            experiment for experiment in selected_experiments if experiment not in experiments
        ]
    entries = []
    for experiment in experiments:
        reason = missing_data(experiment)
        if reason and "all" in names:
            _tell(f"{experiment.name}: left out; it {reason}")
            continue
        results = list(run(experiment, scale, folder, seeds=seeds, report=_tell))
        entries.append(judged(experiment, scale, results))
    print_verdicts(entries)


def write_report(folder: Path, html: Path | None, markdown: Path | None) -> None:
    """Print the verdict table, or write pages."""
    entries = [entry_of(experiment, folder) for experiment in all_experiments()]
    for path, suffix in ((html, ".html"), (markdown, ".md")):
        if path is not None:
            page_paths = write_pages(entries, path, suffix)
            print(f"wrote {count_noun(len(page_paths), 'page')} into {path}")
    if html is None and markdown is None:
        print_verdicts(entries)


def print_verdicts(entries: Iterable[Entry]) -> None:
    """Print one row for each claim; beside a terminal, a line for each row."""
    rows = [
        (
            entry.experiment.name,
            judgement.outcome,
            f" ({entry.scale})" if entry.scale else "",
            effect_of(judgement),
            claim.text,
        )
        for entry in entries
        for claim, judgement in entry.verdicts
    ]
    columns = ("experiment", "verdict", "effect", "claim")
    console = Console()
    if not console.is_terminal:
        lines = [columns, *((name, f"{v}{scale}", *rest) for name, v, scale, *rest in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
        for line in lines:
            cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name == "experiment")
    for name, outcome, scale, *rest in rows:
        table.add_row(name, f"[{STYLES[outcome]}]{outcome}[/]{scale}", *rest)
    console.print(table)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def draw_figures(folder: Path, format: str, seed: int) -> None:
    """Draw the figures of the lab, and print their paths."""
    for path in write_figures(folder, format, seed):
        print(path)
