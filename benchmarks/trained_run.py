"""A run of attlas that began before it was asked for here: is it the same, and where was it?"""

import datetime
import os
from pathlib import Path
from typing import Any

from attlas.data import Splits
from attlas.errors import AttlasError
from attlas.runs import CONFIG, METRICS, Run
from attlas.training import Recipe
from attlas.training.events import Started
from attlas.training.recipe import check_same

ENDS = ("max_epochs", "max_steps", "max_minutes")


def begun(path: Path, expected: Recipe, splits: Splits, threads: int) -> Recipe:
    """The recipe with which a run began, where it is the one that is wanted, to the same end.

    Errors: `AttlasError` where the run is of another recipe, of other data or with other threads.
    """
    run = Run(path)
    recipe = Recipe.read(run.config, str(path / CONFIG))
    check_same(recipe, expected, path)
    came = {name: getattr(recipe.training, name) for name in ENDS}
    ends = {name: getattr(expected.training, name) for name in ENDS}
    its = recipe.training.threads or os.cpu_count()
    data = run.provenance()["data"]["train"]["sha256"]
    for what, one, other in (
        ("that ends as the recipe does", ends, came),
        ("with so many threads", threads, its),
        ("of the training data with this checksum", splits.train.checksum, data),
    ):
        if one != other:
            raise AttlasError(
                f"a run {what}: {_words(one)}", f"{_words(other)} in {path}", "name another run"
            )
    return recipe


def conditions(path: Path) -> dict[str, Any]:
    """When a run was trained to its end, and where, as far as it knows."""
    known = Run(path).provenance()
    ended = datetime.datetime.fromtimestamp((path / METRICS).stat().st_mtime, datetime.UTC)
    commit = known["commit"]
    return {
        "date": ended.date().isoformat(),
        "machine": {
            "processor": known.get("processor"),
            "system": known["machine"].partition("-")[0],  # without its release
            "packages": {"attlas": known["attlas"], "torch": known["torch"]},
            "commit": commit and commit[:7] + "+" * commit.endswith("+"),
        },
    }


def numbers(path: Path) -> str:
    """In which a run was computed: "float32", which is also what those of before it was told had,
    or "bfloat16"."""
    begun = (event for event in Run(path).events() if event["event"] == Started.kind)
    return str(next(begun).get("numbers", "float32"))


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {one}" for key, one in value.items() if one is not None)
    return str(value)
