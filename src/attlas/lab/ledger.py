"""The ledger: every experiment, and what its results say."""

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from math import nan
from pathlib import Path

from attlas.errors import ConfigError, DataError, quoted
from attlas.lab import experiments
from attlas.lab.examples import KeptExample, examples_of
from attlas.lab.experiment import Claim, Experiment, Scale
from attlas.lab.results import SHIPPED, SeedResult, results_of, table_of
from attlas.lab.verdict import Judgement

SCALES: tuple[Scale, ...] = ("full", "quick")


@dataclass(frozen=True)
class Entry:
    """An experiment with the results that there are.

    Args:
        scale: That of the results: "full" where it was run, else "quick"; None without results.
        results: One for each seed.
        verdicts: A claim with its judgement, in the order of the experiment.
        examples: The maps of its page.
    """

    experiment: Experiment
    scale: Scale | None
    results: tuple[SeedResult, ...]
    verdicts: tuple[tuple[Claim, Judgement], ...]
    examples: tuple[KeptExample, ...] = ()


def all_experiments() -> list[Experiment]:
    """Every experiment of `attlas.lab.experiments`, by the order of the file names."""
    found: list[Experiment] = []
    for module in pkgutil.iter_modules(experiments.__path__):
        found += import_module(f"{experiments.__name__}.{module.name}").EXPERIMENTS
    return found


def find_experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ConfigError: If there is none.
    """
    experiments = {experiment.name: experiment for experiment in all_experiments()}
    if name not in experiments:
        close = get_close_matches(name, experiments, 3)
        raise ConfigError(
            "the name of an experiment, as `attlas lab list` prints them",
            quoted(name),
            f"did you mean {' or '.join(close)}?" if close else "choose one of that list",
        )
    return experiments[name]


def judged(experiment: Experiment, scale: Scale, results: Sequence[SeedResult]) -> Entry:
    """Apply the rule of each claim to the results of one scale."""
    table = table_of(results, experiment.deterministic)
    verdicts: list[tuple[Claim, Judgement]] = []
    for claim in experiment.claims:
        if scale not in claim.judged_at:
            reason = "the rule is about the sizes of the other scale"
            verdicts.append((claim, Judgement("not judged", nan, nan, nan, reason)))
            continue
        try:
            verdicts.append((claim, claim.rule.judge(table)))
        except DataError as error:  # a result of an older version lacks a measurement
            verdicts.append((claim, Judgement("not judged", nan, nan, nan, str(error))))
    return Entry(experiment, scale, tuple(results), tuple(verdicts))


def entry_of(experiment: Experiment, folder: Path | None = None) -> Entry:
    """The experiment with its results: those in `folder`, or else those that come with attlas."""
    folders = [folder, SHIPPED] if folder is not None else [SHIPPED]
    for result_folder in folders:
        for scale in SCALES:
            results = results_of(experiment.name, scale, [result_folder])
            if results:
                examples = examples_of(experiment.name, scale, [result_folder])
                return replace(judged(experiment, scale, results), examples=tuple(examples))
    reason = "not run yet"
    unknown = Judgement("not judged", nan, nan, nan, reason)
    return Entry(experiment, None, (), tuple((claim, unknown) for claim in experiment.claims))
