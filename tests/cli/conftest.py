"""A run that is small enough to be trained for the tests."""

from pathlib import Path

import pytest

RECIPE = """
[data]
kind = "toy"
task = "reverse"
length = [1, 6]
symbols = 8
train = 300
valid = 20
test = 30

[vocabulary]
kind = "words"
size = 64

[model]
kind = "recurrent"
attention = "{attention}"
embedding = 8
hidden = 8
encoder_hidden = 8

[training]
updates = 3

[decoding]
method = "beam"
beam = 2
max_length_constant = 5
max_length_factor = 1.0
"""


def trained(folder: Path, attention: str) -> Path:
    from attlas.training import read_recipe, train

    recipe = folder / f"{attention}.toml"
    recipe.write_text(RECIPE.format(attention=attention), encoding="utf-8")
    return train(read_recipe(recipe), folder / attention).path


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE.format(attention="additive"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs"), "additive")


@pytest.fixture(scope="session")
def blind_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs"), "none")
