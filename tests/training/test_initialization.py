"""A training that begins with the weights of another run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import Preparing, Recipe, train
from attlas.training.events import Event
from attlas.training.setup import prepare_run
from support.killed_trainings import differences, recipe, whole
from support.labelled_runs import reviews, tables, write_lines


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates."""
    return train(recipe(6), tmp_path_factory.mktemp("first") / "run").path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    lines = write_lines(folder / "reviews.jsonl", reviews(120))
    return train(Recipe.read(tables(lines), "the test"), folder / "run").path


def beginning(
    run: Path,
    updates: int = 4,
    change: Callable[[dict[str, Any]], None] | None = None,
    **training: Any,
) -> Recipe:
    given = recipe(updates, init_from=str(run), **training).tables()
    if change is not None:
        change(given)
    return Recipe.read(given, "the test")


def of_checkpoint(run: Path, which: str) -> dict[str, torch.Tensor]:
    return dict(Run(run).store.read(which).model)


@pytest.mark.parametrize("which", ["best", "a checkpoint"])
def test_the_first_update_goes_on_from_those_weights(
    first: Path, tmp_path: Path, which: str
) -> None:
    named = Run(first).store.number_of("best")
    path = first if which == "best" else first / "checkpoints" / f"{named}.safetensors"
    reported: list[Event] = []
    still = {"learning_rate": 1e-30, "averaging": {"kind": "none"}, "save_every": 1}
    outcome = train(beginning(path, 1, **still), tmp_path / "run", report=reported.append)
    for name, tensor in of_checkpoint(outcome.path, "last").items():
        torch.testing.assert_close(tensor, of_checkpoint(first, named)[name], rtol=0, atol=1e-12)
    ours, theirs = Run(outcome.path), Run(first)
    assert ours.vocabularies().source.tokens == theirs.vocabularies().source.tokens
    facts = ours.provenance()["initial"]
    assert (facts["run"], facts["checkpoint"]) == (str(first), named)
    said = [event.what for event in reported if isinstance(event, Preparing)]
    assert f"begun with the weights of {first}, checkpoint {named}" in said


def test_other_data_take_the_vocabulary_of_that_run(first: Path, tmp_path: Path) -> None:
    def other(tables: dict[str, Any]) -> None:
        tables["data"] |= {"symbols": 4, "task": "copy"}
        tables["model"]["dropout"] = 0.0

    outcome = train(beginning(first, 2, other), tmp_path / "run")
    found, before = Run(outcome.path).vocabularies(), Run(first).vocabularies()
    assert found.source.tokens == before.source.tokens
    assert len(found.source) == 4 + 6


def test_a_training_that_begins_with_other_weights_goes_on_to_the_same_bits(
    first: Path, tmp_path: Path
) -> None:
    undisturbed = whole(tmp_path / "undisturbed", beginning(first, 9))
    # Killed before its first checkpoint, and after one, when the other run may be gone.
    prepare_run(beginning(first, 9), tmp_path / "killed")
    assert differences(whole(tmp_path / "killed", beginning(first, 9)), undisturbed) == []
    moved = tmp_path / "moved"
    shutil.copytree(first, moved)
    train(beginning(moved, 4), tmp_path / "stopped")
    shutil.rmtree(moved)
    assert differences(whole(tmp_path / "stopped", beginning(moved, 9)), undisturbed) == []
    fresh = whole(tmp_path / "fresh", recipe(9))
    assert differences(fresh, undisturbed) != []


def test_a_run_does_not_go_on_with_other_weights_to_begin_with(first: Path, tmp_path: Path) -> None:
    train(beginning(first, 2), tmp_path / "run")
    with pytest.raises(AttlasError, match=r"training\.init_from = '' instead of "):
        train(recipe(4), tmp_path / "run")


@pytest.mark.parametrize(
    ("table", "setting", "value", "said"),
    [
        ("model", "hidden_dim", 9, r"model\.hidden_dim = 9 instead of 8"),
        ("model", "attention", "general", r"model\.attention = 'general' instead of 'additive'"),
        ("vocabulary", "size", 20, r"vocabulary\.size = 20 instead of 16"),
        ("vocabulary", "normalization", "nfc", r"vocabulary\.normalization = 'nfc' instead of"),
    ],
)
def test_another_architecture_or_vocabulary_is_an_error_that_names_what_differs(
    first: Path, tmp_path: Path, table: str, setting: str, value: object, said: str
) -> None:
    def changed(tables: dict[str, Any]) -> None:
        tables[table][setting] = value

    with pytest.raises(AttlasError, match=rf"the architecture and the vocabulary of .*{said}"):
        train(beginning(first, 2, changed), tmp_path / "run")


def test_weights_that_are_not_there_any_more_are_an_error(first: Path, tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match="no folder at"):
        train(beginning(tmp_path / "nowhere"), tmp_path / "run")
    with pytest.raises(AttlasError, match="a checkpoint '00000099' of"):
        train(beginning(first / "checkpoints" / "00000099.safetensors"), tmp_path / "run")
    moved = tmp_path / "moved"
    shutil.copytree(first, moved)
    prepare_run(beginning(moved), tmp_path / "begun")
    shutil.rmtree(moved)
    with pytest.raises(AttlasError, match="no folder at"):
        train(beginning(moved), tmp_path / "begun")


def test_a_classifier_begins_with_another_where_its_labels_are_known(
    classifier: Path, first: Path, tmp_path: Path
) -> None:
    def requested(labels: tuple[str, str], run: Path) -> Recipe:
        entries = [{"text": f"a film {n}", "label": labels[n % 2]} for n in range(80)]
        lines = write_lines(tmp_path / f"{labels[1]}.jsonl", entries)
        return Recipe.read(tables(lines, init_from=str(run), max_steps=2), "the test")

    outcome = train(requested(("neg", "pos"), classifier), tmp_path / "run")
    found = Run(outcome.path).labelled_vocabularies()
    before = Run(classifier).labelled_vocabularies()
    assert found.text.encode("great awful film") == before.text.encode("great awful film")
    assert found.labels == before.labels
    with pytest.raises(AttlasError, match=r"with the labels neg, pos, .* with 'other'; train with"):
        train(requested(("neg", "other"), classifier), tmp_path / "other")
    with pytest.raises(AttlasError, match=r"a run to begin with that classifies, .* translates"):
        train(requested(("neg", "pos"), first), tmp_path / "third")


def test_a_moving_average_begins_with_those_weights(first: Path, tmp_path: Path) -> None:
    still = {"learning_rate": 1e-30, "averaging": {"kind": "ema"}, "save_every": 1}
    outcome = train(beginning(first, 2, **still), tmp_path / "run")
    averaged = of_checkpoint(outcome.path, "averaged")
    for name, tensor in of_checkpoint(first, "best").items():
        torch.testing.assert_close(averaged[name], tensor, rtol=0, atol=1e-6)
