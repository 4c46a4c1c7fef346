"""Write the keys of the lab's results anew, after a change of code that leaves its numbers alone.

    ATTLAS_LAB_DATA=DATA python scripts/lab_keys.py NAME… --reason "names were changed"

A result whose key fits is left as it is. The others are not measured again. So their facts tell
the commit and the reason, and the page of the experiment prints them. Metrics that have got another
name, and those that are not measured any more, are named here, too.
"""

import argparse
from dataclasses import replace

from attlas.lab.data import checksum_of
from attlas.lab.experiment import Experiment
from attlas.lab.ledger import SCALES, find_experiment
from attlas.lab.results import SHIPPED, SeedResult, key_of, results_of, with_new_key, write_result
from attlas.lab.runner import missing_data
from attlas.training.setup import code_version


def main() -> None:
    """Rewrite the keys of the named experiments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--reason", required=True, help="why the numbers are the same")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--drop", action="append", default=[], metavar="METRIC")
    arguments = parser.parse_args()
    names = dict(one.split("=", 1) for one in arguments.rename)
    for name in arguments.names:
        experiment = find_experiment(name)
        if reason := missing_data(experiment):
            parser.error(f"{name} {reason}")
        for result in shipped(experiment):
            key = key_of(experiment, result.scale, result.seed)
            kept = tuple(
                replace(m, metric=names.get(m.metric, m.metric))
                for m in result.measurements
                if m.metric not in arguments.drop
            )
            if (key, kept) == (result.key, result.measurements):
                continue
            commit = code_version()["commit"]
            data = {name: checksum_of(name) for name in experiment.needs}
            fresh = with_new_key(
                replace(result, measurements=kept, facts={**result.facts, "data": data}),
                key,
                f"{commit[:8]}{'+' * commit.endswith('+')}",
                arguments.reason,
            )
            print(write_result(fresh, SHIPPED))


def shipped(experiment: Experiment) -> list[SeedResult]:
    """The results that come with attlas, of both scales."""
    return [one for scale in SCALES for one in results_of(experiment.name, scale, [SHIPPED])]


if __name__ == "__main__":
    main()
