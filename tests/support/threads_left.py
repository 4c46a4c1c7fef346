"""Trains in one of several processes, and prints which threads of gloo are left at its end.

Arguments: the recipe, the folder, how the model is spread, and the update at which the first
process raises an error (0: at none).
"""

import sys
from pathlib import Path

from attlas.errors import AttlasError
from attlas.training import read_recipe, train
from attlas.training.events import Trained


def gloo_threads() -> list[str]:
    """The names of those threads of this process that are gloo's."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


def main(recipe: str, folder: str, distribution: str, failing: int) -> None:
    seen = []

    def report(event: object) -> None:
        if isinstance(event, Trained):
            seen.append(len(gloo_threads()))
            if event.update == failing:
                raise ValueError("raised by the report")

    ended = "finished"
    try:
        train(read_recipe(recipe, [f"training.distribution={distribution}"]), folder, report=report)
    except (AttlasError, ValueError) as error:
        ended = f"ended by {type(error).__name__}"
    # In one write: the lines of several processes would else be mixed.
    sys.stdout.write(f"{ended}; threads at work {max(seen, default=0)}; left {gloo_threads()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
