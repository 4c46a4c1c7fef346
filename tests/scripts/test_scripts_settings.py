"""docs/settings.md, and the script that writes it."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attlas.training import Recipe, read_recipe

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "settings.py"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_page_is_what_the_source_says(settings: dict[str, Any]) -> None:
    assert settings["PAGE"].read_text(encoding="utf-8") == settings["page"](settings["shipped"]())


@pytest.mark.parametrize("name", ["base", "demo", "imdb", "multi30k", "reverse"])
def test_every_setting_of_a_shipped_recipe_is_on_the_page(
    settings: dict[str, Any], name: str
) -> None:
    text = settings["PAGE"].read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}

    def check(table: dict[str, Any], where: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                check(value, f"{where}.{key}" if where else key)
            elif key != "kind":
                heads = [f"[{where}]", f"[{where}], kind = {_quoted(table.get('kind'))}"]
                found = [
                    part
                    for head, part in sections.items()
                    if any(head == h or head == f"{h}, the default" for h in heads)
                    or (not where and head == "The recipe")
                ]
                assert any(f"| `{key}` |" in part or "\nAs [" in part for part in found), (
                    f"{where}.{key}"
                )

    check(read_recipe(name).tables(), "")


def _quoted(kind: object) -> str:
    return f'"{kind}"'


def test_a_default_on_the_page_is_the_one_that_a_recipe_gets(settings: dict[str, Any]) -> None:
    bare = Recipe.read(
        tomllib.loads(
            '[data]\nkind = "toy"\n[model]\nkind = "transformer"\n[training]\nepochs = 1'
        ),
        "the test",
    )
    rows = [
        line.split(" | ") for line in settings["page"]([]).splitlines() if line.startswith("| `")
    ]
    defaults = {(key.strip("| `"), default) for key, default, _ in rows}
    assert ("length_penalty", f"`{bare.decoding.length_penalty}`") in defaults
    assert ("feedforward", f"`{bare.model.model_dump()['feedforward']}`") in defaults
    assert ("clip", f"`{bare.training.clip}`") in defaults
