"""Runs that are small enough to be trained for the tests."""

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
embed_dim = 8
hidden_dim = 8
encoder_hidden_dim = 8

[training]
max_steps = 3

[decoding]
method = "beam"
num_beams = 2
max_len_b = 5
max_len_a = 1.0
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
def labelling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.labelled_runs import trained as trained_classifier

    return trained_classifier(tmp_path_factory.mktemp("classifier"), max_steps=60)


@pytest.fixture(scope="session")
def blind_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs"), "none")


@pytest.fixture(scope="session")
def two_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of two texts and two layers, each weight of which is another number."""
    import torch

    from attlas.recording import DenseAttentionMap, Trace

    of_encoder = [[[0.41, 0.59], [0.52, 0.48]], [[0.43, 0.57], [0.54, 0.46]]]
    of_decoder = [[[0.11, 0.89], [0.72, 0.28]], [[0.13, 0.87], [0.74, 0.26]]]
    trace = Trace()
    trace.record("encoder.attention", DenseAttentionMap(torch.tensor(of_encoder)[:, None]))
    trace.record("decoder.attention", DenseAttentionMap(torch.tensor(of_decoder)[:, None]))
    trace.set_kind("encoder.attention", cross_attention=False)
    trace.set_kind("decoder.attention", cross_attention=True)
    trace.label([["ein", "Hund"], ["zwei", "Katzen"]], [["a", "dog"], ["two", "cats"]])
    path = tmp_path_factory.mktemp("traces") / "two.safetensors"
    trace.save(path)
    return path


@pytest.fixture
def lines() -> str:
    """What is given on the standard input."""
    return "1 2 3\t3 2 1\n4 5\t5 4\n6 7\t7 6\n" * 20


@pytest.fixture
def piped(tmp_path: Path, lines: str) -> Path:
    """A run whose training data came from the standard input."""
    from typer.testing import CliRunner

    from attlas.cli.main import app

    (tmp_path / "valid.tsv").write_text("1 2\t2 1\n" * 4, encoding="utf-8")
    files = '[data]\nkind = "files"\ntrain = "-"\nvalid = "valid.tsv"\n'
    rest = RECIPE.format(attention="additive").partition("[vocabulary]")
    recipe = tmp_path / "piped.toml"
    recipe.write_text(files + "".join(rest[1:]), encoding="utf-8")
    folder = tmp_path / "piped"
    result = CliRunner().invoke(app, ["train", str(recipe), "--out", str(folder)], input=lines)
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every reading of a file that is to be translated."""
    from attlas.jobs import translate_files as translating_files

    found: list[Path] = []
    real = translating_files.stream_lines
    monkeypatch.setattr(
        translating_files, "stream_lines", lambda path: (found.append(path), real(path))[1]
    )
    return found
