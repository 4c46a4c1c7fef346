"""`attlas inspect RECIPE`: every setting with its meaning, as a recipe again."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from attlas.config import explanations
from attlas.training import read_recipe
from attlas.training.recipe import shipped_recipes
from support.command_line import called


def names(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in table.items():
        yield f"{before}{key}"
        if isinstance(value, dict):
            yield from names(value, f"{before}{key}.")


@pytest.mark.parametrize("name", shipped_recipes())
def test_what_is_printed_is_the_same_recipe_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, error = called("inspect", name)
    assert (code, error) == (0, "")
    Path("my.toml").write_text(out, encoding="utf-8")
    assert read_recipe("my.toml") == read_recipe(name)
    again = called("inspect", "my.toml")
    assert again == (0, out, "")


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_setting_has_a_line_of_meaning(name: str) -> None:
    recipe = read_recipe(name)
    meanings = explanations(recipe)
    out = called("inspect", name)[1]
    joined = " ".join(re.sub(r"^# ", "", line) for line in out.splitlines())
    for setting in names(tomllib.loads(out)):
        assert meanings[setting] in joined, setting
    for setting, value in recipe.training:
        if value is None:
            assert f"# {setting} = …" in out


def test_a_setting_that_is_changed_is_printed_as_it_is_then() -> None:
    code, out, _ = called("inspect", "tiny", "--set", "model.dropout=0.25")
    assert code == 0
    assert tomllib.loads(out)["model"]["dropout"] == 0.25
    assert "dropout = 0.25  # Of embeddings and of what each sublayer adds." in out
