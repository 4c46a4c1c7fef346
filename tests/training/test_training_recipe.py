"""Recipes: where they are found, what their paths mean, what they refuse."""

from pathlib import Path
from typing import Any

import pytest

from attlas.config import read_toml, write_toml
from attlas.data import FilesData
from attlas.errors import AttlasError
from attlas.training import Recipe, read_recipe
from attlas.training.recipe import check_same

TABLES: dict[str, Any] = {
    "data": {"kind": "files", "train": "train.tsv", "valid": ["v.en", "/there/v.de"]},
    "model": {"kind": "recurrent"},
    "training": {"epochs": 1},
}


def written(folder: Path, **tables: Any) -> Path:
    path = folder / "my.toml"
    path.write_text(write_toml({**TABLES, **tables}))
    return path


@pytest.mark.parametrize("name", ["demo", "multi30k", "reverse"])
def test_a_shipped_recipe_is_found_by_its_name_with_and_without_its_ending(name: str) -> None:
    assert read_recipe(name) == read_recipe(f"{name}.toml")


def test_a_shipped_recipe_takes_its_paths_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = read_recipe("multi30k").data
    assert isinstance(data, FilesData)
    assert {Path(path).parent.parent for path in data.train} == {tmp_path}


def test_a_recipe_file_takes_its_paths_from_its_own_folder(tmp_path: Path) -> None:
    data = read_recipe(written(tmp_path)).data
    assert isinstance(data, FilesData)
    assert data.train == (str(tmp_path / "train.tsv"),)
    assert data.valid == (str(tmp_path / "v.en"), "/there/v.de")


def test_a_file_goes_before_a_shipped_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, seed=77).rename(tmp_path / "demo.toml")
    monkeypatch.chdir(tmp_path)
    assert read_recipe("demo.toml").seed == 77
    assert read_recipe("demo").seed != 77


def test_assignments_are_put_in(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path), ["training.rate=0.5", "data.train=other.tsv"])
    assert recipe.training.rate == 0.5
    assert isinstance(recipe.data, FilesData)
    assert recipe.data.train == (str(tmp_path / "other.tsv"),)


@pytest.mark.parametrize("name", ["nonsense", "nonsense.toml", "folder/demo.toml"])
def test_an_unknown_recipe_is_an_error_that_lists_those_there_are(name: str) -> None:
    with pytest.raises(AttlasError, match=r"use one of: demo, multi30k, reverse"):
        read_recipe(name)


def test_an_unknown_setting_names_the_recipe_and_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"my\.toml; got `training\.raet`; did you mean `rate`"):
        read_recipe(written(tmp_path), ["training.raet=1"])


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({}, "an end of the training: epochs, updates or minutes"),
        ({"epochs": 0}, "greater than or equal to 1"),
        ({"epochs": 1, "rate": float("inf")}, "finite"),
        ({"epochs": 1, "averaging": {"kind": "last", "count": 9}}, "keep of at least 9"),
        (
            {"epochs": 1, "validation": {"criterion": "bleu", "translate": False}},
            "translations to choose by bleu",
        ),
        ({"epochs": 1, "feeding": {"p": 0.5}}, r"training\.feeding\.kind"),
    ],
)
def test_settings_that_make_no_sense_are_errors(training: dict[str, Any], message: str) -> None:
    with pytest.raises(AttlasError, match=message):
        Recipe.read({**TABLES, "training": training}, "the test")


def test_a_recipe_written_is_the_recipe_read(tmp_path: Path) -> None:
    for name in ("demo", "multi30k", "reverse"):
        recipe = read_recipe(name)
        (tmp_path / "config.toml").write_text(write_toml(recipe.tables()))
        assert Recipe.read(read_toml(tmp_path / "config.toml"), "there") == recipe


FREE = [
    "training.epochs=9",
    "training.minutes=1",
    "training.updates=5",
    "training.keep=1",
    "training.device=cpu",
    "training.threads=1",
    "training.validation.patience=2",
    "decoding.beam=2",
    "data.train=moved.tsv",
]
FIXED = [
    "seed=2",
    "training.rate=1",
    "training.schedule.kind=inverse-square-root",
    "training.validation.every=5",
    "model.hidden=3",
    "batching.tokens=500",
    "vocabulary.size=500",
]


@pytest.mark.parametrize("assignment", FREE)
def test_limits_and_places_may_change_when_a_run_goes_on(tmp_path: Path, assignment: str) -> None:
    path = written(tmp_path)
    check_same(read_recipe(path), read_recipe(path, [assignment]), tmp_path)


@pytest.mark.parametrize("assignment", FIXED)
def test_what_decides_the_weights_may_not(tmp_path: Path, assignment: str) -> None:
    path = written(tmp_path)
    with pytest.raises(AttlasError, match=assignment.partition("=")[0]):
        check_same(read_recipe(path), read_recipe(path, [assignment]), tmp_path)
