"""Training with a part of the data held back, and what is told of the data at the start."""

from pathlib import Path
from typing import Any

import pytest

from attlas.config import read_toml
from attlas.data import FilesData
from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import Event, Recipe, read_recipe, train
from attlas.training.events import Started
from attlas.training.setup import prepare_run
from support.killed_trainings import differences, whole
from support.killed_trainings import recipe as toy
from support.labelled_runs import reviews, tables, write_lines


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    pairs = [(f"{n % 7} {n % 11} {n % 5}", f"{n % 5} {n % 11} {n % 7}") for n in range(100)]
    path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    return path


def recipe(table: Path, updates: int, **data: Any) -> Recipe:
    begun = toy(updates).tables()
    begun["data"] = {"kind": "files", "train": str(table), "held_back": 0.2, **data}
    return Recipe.read(begun, "the test")


def test_a_run_with_pairs_held_back_says_so_and_goes_on_to_the_same_bits(
    table: Path, tmp_path: Path
) -> None:
    undisturbed = whole(tmp_path / "undisturbed", recipe(table, 9))
    reported: list[Event] = []
    train(recipe(table, 4), tmp_path / "stopped", report=reported.append)
    (started,) = (event for event in reported if isinstance(event, Started))
    assert any("20 pairs held back" in note for note in started.notes)
    assert started.pairs == 80
    assert differences(whole(tmp_path / "stopped", recipe(table, 9)), undisturbed) == []
    run = Run(tmp_path / "stopped")
    facts, valid = run.provenance()["data"], recipe(table, 1).data.corpus("valid")
    assert facts["train"]["name"] == f"{table} without the part held back"
    assert facts["valid"] == {
        "name": f"{table}, held back (seed 1)", "pairs": 20, "sha256": valid.checksum,
    }  # fmt: skip
    again = Recipe.read(read_toml(run.path / "config.toml"), "config.toml")
    assert again.data.corpus("valid").checksum == valid.checksum


def test_a_run_does_not_go_on_with_another_part_held_back(table: Path, tmp_path: Path) -> None:
    train(recipe(table, 2), tmp_path / "run")
    for other in ({"seed": 2}, {"held_back": 19}):
        with pytest.raises(AttlasError, match=r"the train data with which .* began"):
            train(recipe(table, 4, **other), tmp_path / "run")


def test_a_shipped_recipe_takes_one_table_without_a_file_more(table: Path) -> None:
    one = ["data.valid=", "data.test=", f"data.train={table}", "data.held_back=10"]
    data = read_recipe("multi30k", one).data
    assert isinstance(data, FilesData)
    splits = data.load()
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (90, 10, 0)


def test_a_training_of_a_classifier_begins_with_its_labels(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "reviews.jsonl", reviews(200))
    task = prepare_run(Recipe.read(tables(lines), "the test"), tmp_path / "run")
    labels = task.splits.train.labels
    counts = {label: labels.count(label) for label in ("neg", "pos")}
    first, second = sorted(counts, key=lambda label: (-counts[label], label))
    reported = f"labels: {first} ({counts[first]}), {second} ({counts[second]})"
    assert reported in task.notes(task.batches(0))
