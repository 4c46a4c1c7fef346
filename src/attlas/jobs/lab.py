"""The work of `attlas lab`."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attlas._text import count_noun
from attlas.errors import AttlasError
from attlas.lab.experiment import Experiment, Scale
from attlas.lab.ledger import Entry, all_experiments, entry_of, find_experiment, judged
from attlas.lab.pictures import write_figures
from attlas.lab.report import effect_of, scale_of, write_pages
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


def run_named(
    names: Sequence[str], scale: Scale, seeds: int | None, folder: Path, jobs: int | None = None
) -> None:
    """Run experiments by name, and print their verdicts.

    Args:
        jobs: How many run at the same time, each in a process of its own with one thread; None: one
            for each core, 8 at most. One experiment alone runs in this process.

    Raises:
        AttlasError: For an unknown name, for missing data, and for an experiment that fails.
    """
    experiments: list[Experiment] = []
    for name in names:
        selected_experiments = all_experiments() if name == "all" else [find_experiment(name)]
        experiments += [
            experiment for experiment in selected_experiments if experiment not in experiments
        ]
    for experiment in experiments.copy():
        reason = missing_data(experiment)
        if reason and "all" in names:
            _tell(f"{experiment.name}: left out; it {reason}")
            experiments.remove(experiment)
    together = [experiment for experiment in experiments if not experiment.alone]
    jobs = min(jobs or min(os.cpu_count() or 1, _MOST_JOBS), len(together))
    if jobs > 1:
        _run_together(together, scale, seeds, folder, jobs)
    entries = []
    for experiment in experiments:
        report = _silent if jobs > 1 and not experiment.alone else _tell  # it is measured
        results = list(run(experiment, scale, folder, seeds=seeds, report=report))
        entries.append(judged(experiment, scale, results))
    print_verdicts(entries)
    if scale == "quick":
        for line in differences_from_full(entries):
            _tell(line)
    if sys.stdout.isatty():  # a person reads, not a pipe
        out = shlex.quote(str(folder))
        print(f"\npages with plots and maps: attlas lab report --out {out} --html pages")


_MOST_JOBS = 8
_POLL = 0.1  # seconds


def _run_together(
    experiments: Sequence[Experiment], scale: Scale, seeds: int | None, folder: Path, jobs: int
) -> None:
    """Run each in a process of its own, so many at the same time.

    Ctrl-C ends them in order: a training keeps its checkpoint, and goes on later.
    """
    options = [f"--{scale}", "--out", str(folder), "--jobs", "1"]
    options += [] if seeds is None else ["--seeds", str(seeds)]
    waiting, failed = [experiment.name for experiment in experiments], list[str]()
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                running[name] = subprocess.Popen(
                    [sys.executable, "-m", "attlas", "lab", "run", name, *options],
                    stdout=subprocess.DEVNULL,  # verdicts are printed when all have ended
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
            time.sleep(_POLL)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                failure = running.pop(name).returncode
                failed += [name] if failure else []
                ended = len(experiments) - len(waiting) - len(running)
                outcome = "failed" if failure else "is measured"
                _tell(f"{name} {outcome}; {ended} of {len(experiments)} experiments have ended")
    finally:
        for process in running.values():
            with suppress(OSError):
                process.send_signal(signal.SIGINT)
        for process in running.values():
            process.wait()
    if failed:
        raise AttlasError(
            "experiments that end",
            f"a failure of {', '.join(failed)}",
            "see what is printed above"
            + ("; the others are measured" if len(failed) < len(experiments) else ""),
        )


def _silent(line: str) -> None:
    """Report nothing."""


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
            f" ({scale_of(entry)})" if entry.scale else "",
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


def differences_from_full(entries: Sequence[Entry]) -> list[str]:
    """What a reader of quick verdicts should know: which claims have another one at full size.

    Only the results that come with attlas are read, so the lines are the same in each folder.
    """
    pairs = [
        (claim.text, quick, full)
        for entry in entries
        if (shipped := entry_of(entry.experiment)).scale == "full"
        for (claim, quick), (_, full) in zip(entry.verdicts, shipped.verdicts, strict=True)
        if "not judged" not in (quick.outcome, full.outcome)
    ]
    not_judged = {
        entry.experiment.name: sum(one.outcome == "not judged" for _, one in entry.verdicts)
        for entry in entries
    }
    names = [name for name, count in not_judged.items() if count]
    lines = [""]
    if names:
        lines += [
            f"not judged at quick sizes: {count_noun(sum(not_judged.values()), 'claim')}; "
            f"attlas lab list has the verdicts at full size, and attlas lab run {names[0]} --full "
            "measures them anew"
        ]
    if not pairs:
        return lines if names else []
    other = [
        f"  {full.outcome} (full), {quick.outcome} (quick): {text}"
        for text, quick, full in pairs
        if quick.outcome != full.outcome
    ]
    return [
        *lines,
        "quick sizes are small, so a verdict may differ from that at full size",
        f"judged at both sizes: {count_noun(len(pairs), 'claim')}; with another verdict: "
        f"{len(other) or 'none'}",
        *other,
    ]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def draw_figures(folder: Path, format: str, seed: int) -> None:
    """Draw the figures of the lab, and print their paths."""
    for path in write_figures(folder, format, seed, _tell):
        print(path)
