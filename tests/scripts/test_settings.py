"""docs/reference/settings.md, and the script that writes it."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attlas.training import Recipe, read_recipe
from attlas.training.recipe import shipped_recipes

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "settings.py"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_page_is_what_the_source_says(settings: dict[str, Any]) -> None:
    assert settings["PAGE"].read_text(encoding="utf-8") == settings["page"](shipped_recipes())


def test_a_span_of_code_stands_as_it_is_and_what_is_no_tag_looks_like_none(
    settings: dict[str, Any],
) -> None:
    assert settings["_escaped"]("a <b> `<br />` c < d") == "a &lt;b> `<br />` c &lt; d"
    page = settings["page"]([])
    assert "`<br />`" in page
    assert "e+0" not in page


@pytest.mark.parametrize("name", ["base", "demo", "imdb", "multi30k", "reverse"])
def test_every_setting_of_a_shipped_recipe_is_on_the_page(
    settings: dict[str, Any], name: str
) -> None:
    text = settings["PAGE"].read_text(encoding="utf-8")

    def sections(where: str, kind: object) -> list[str]:
        """Those of a table; of a kind of it, where it has kinds."""
        heads = ("The recipe",) if not where else (f"[{where}]", f'[{where}], kind = "{kind}"')
        return [part for part in text.split("\n## ") if part.startswith(heads)]

    def check(table: dict[str, Any], where: str) -> None:
        for key, value in table.items():
            inner = f"{where}.{key}" if where else key
            if isinstance(value, dict):
                check(value, inner)
            elif key != "kind":
                found = "".join(sections(where, table.get("kind")))
                own = f"| `{key}` |" in found or sections(inner, None)  # a table left out
                assert own or "\nAs [" in found, inner

    check(read_recipe(name).tables(), "")


def test_a_default_on_the_page_is_the_one_that_a_recipe_gets(settings: dict[str, Any]) -> None:
    bare = Recipe.read(
        tomllib.loads(
            '[data]\nkind = "toy"\n[model]\nkind = "transformer"\n[training]\nmax_epochs = 1'
        ),
        "the test",
    )
    rows = [
        line.split(" | ") for line in settings["page"]([]).splitlines() if line.startswith("| `")
    ]
    defaults = {(key.strip("| `"), default) for key, default, *_ in rows}
    assert ("length_penalty", f"`{bare.decoding.length_penalty}`") in defaults
    assert ("ffn_dim", f"`{bare.model.model_dump()['ffn_dim']}`") in defaults
    assert ("max_grad_norm", f"`{bare.training.max_grad_norm}`") in defaults
