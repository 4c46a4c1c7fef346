"""`attlas train copy`, `reverse` and `sort`: sequences of symbols of any length."""

import tomllib
from pathlib import Path

import pytest

from attlas.training import read_recipe
from support.command_line import called

QUICK = ("training.max_steps=1", "data.train=60", "data.valid=5", "data.test=5")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("given", "lengths"), [("7", [7, 7]), ("3:9", [3, 9])])
def test_the_length_of_a_toy_is_an_option(given: str, lengths: list[int]) -> None:
    settings = [word for setting in QUICK for word in ("--set", setting)]
    code, _, error = called("train", "reverse", "--length", given, *settings)
    assert code == 0, error
    recipe = tomllib.loads(Path("runs/reverse/config.toml").read_text(encoding="utf-8"))
    assert recipe["data"]["length"] == lengths
    sources = read_recipe("runs/reverse/config.toml").data.load().train.sources
    found = {len(source.split()) for source in sources}
    assert min(found) >= lengths[0]
    assert max(found) <= lengths[1]


@pytest.mark.parametrize("given", ["0", "9:3", "5-40", "5:", "many", "-1", "5:6:7"])
def test_what_is_no_length_is_refused(given: str) -> None:
    code, _, error = called("train", "reverse", f"--length={given}")
    assert code == 2
    assert "--length 5:40" in error


def test_a_recipe_without_sequences_has_no_length() -> None:
    code, _, error = called("train", "demo", "--length", "5")
    assert code == 2
    assert "length" in error


def test_a_length_beside_pairs_is_refused() -> None:
    Path("my.tsv").write_text("a\tb\n" * 50, encoding="utf-8")
    code, _, error = called("train", "--pairs", "my.tsv", "--length", "5")
    assert code == 2
    assert "--length" in error


@pytest.mark.parametrize("name", ["copy", "sort"])
def test_the_recipe_of_a_toy_does_what_its_name_says(name: str) -> None:
    pairs = read_recipe(name).data.corpus("test").pairs
    for pair in pairs:
        symbols = pair.source.split()
        expected = symbols if name == "copy" else [str(n) for n in sorted(map(int, symbols))]
        assert pair.target.split() == expected
    assert {len(pair.source.split()) for pair in pairs} == set(range(5, 21))
