"""`run(experiment, scale, folder)`: measure what is not measured yet."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attlas._files import locked
from attlas.errors import DataError
from attlas.lab.data import ORIGINS, VARIABLE, data_folder
from attlas.lab.examples import keep_examples
from attlas.lab.experiment import Context, Experiment, Measurement, Scale
from attlas.lab.results import SeedResult, key_of, path_of, provenance_of, read, write_result


def missing_data(experiment: Experiment) -> str:
    """Why an experiment cannot be run here; "" where it can."""
    names = [name for name in experiment.needs if data_folder(name) is None]
    return "; ".join(f"needs a folder {name} under ${VARIABLE} ({ORIGINS[name]})" for name in names)


def run(
    experiment: Experiment,
    scale: Scale,
    folder: Path,
    *,
    seeds: int | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[SeedResult]:
    """Measure an experiment, seed by seed, and write each result as soon as it is there.

    A seed whose result has the same key is read instead. The examples are those of the first seed,
    and are written before its result. An interrupted experiment goes on: its
    trainings continue in its folder.

    Args:
        seeds: How many seeds; None: as the experiment says.
        report: Called with a line about what is being done.

    Raises:
        DataError: If data is missing, or another process runs the same experiment.
    """
    if reason := missing_data(experiment):
        raise DataError(
            f"the data of the experiment {experiment.name}",
            f"none: it {reason}",
            f"get it, and name the folder above it, as with export {VARIABLE}=data; or leave the "
            "experiment out",
        )
    scale_folder = folder / experiment.name / scale
    scale_folder.mkdir(parents=True, exist_ok=True)
    with locked(scale_folder):
        for seed in range(1, (seeds or experiment.seeds[scale]) + 1):
            key = key_of(experiment, scale, seed)
            path = path_of(folder, experiment.name, scale, seed)
            seed_folder = scale_folder / f"seed-{seed}-{key[:8]}"
            context = Context(experiment.settings[scale], seed, seed_folder, report)
            if path.is_file() and (previous_result := read(path)).key == key:
                report(f"{experiment.name}, seed {seed}: already measured")
                if seed == 1:
                    keep_examples(experiment, scale, context, folder)
                yield previous_result
                continue
            report(f"{experiment.name}, seed {seed}")
            seed_folder.mkdir(exist_ok=True)
            start = time.monotonic()
            measurements = tuple(experiment.measure(context))
            check_conditions(experiment, measurements)
            facts = provenance_of(time.monotonic() - start, experiment, scale)
            if seed == 1:
                keep_examples(experiment, scale, context, folder)
            result = SeedResult(experiment.name, scale, seed, key, measurements, facts)
            write_result(result, folder)
            yield result


def check_conditions(experiment: Experiment, measurements: tuple[Measurement, ...]) -> None:
    """Refuse two numbers of the same metric under the same condition."""
    conditions = set[tuple[str, tuple[tuple[str, object], ...]]]()
    for measurement in measurements:
        key = (measurement.metric, tuple(sorted(measurement.condition.items())))
        if key in conditions:
            raise DataError(
                f"one number for each metric and condition in the experiment {experiment.name}",
                f"two of {measurement.metric!r} under {dict(measurement.condition)}",
                "tell them apart by their condition",
            )
        conditions.add(key)
