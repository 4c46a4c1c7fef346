"""`attlas evaluate` of files says how many of their texts the model was trained on."""

from pathlib import Path

import pytest

from attlas.jobs import overlap
from attlas.runs import Run
from attlas.training import read_recipe, train
from support.command_line import called

RECIPE = """
[data]
kind = "files"
train = "train.tsv"
held_back = 4

[vocabulary]
kind = "words"
size = 64

[model]
kind = "recurrent"
embed_dim = 8
hidden_dim = 8
encoder_hidden_dim = 8

[training]
max_steps = 2
"""
LABELLED = """
[data]
kind = "labelled"
train = "train.jsonl"
held_back = 4

[vocabulary]
kind = "words"
size = 64

[model]
kind = "classifier"
embed_dim = 8
num_heads = 2
ffn_dim = 8
layers = 1

[training]
max_steps = 2
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    lines = "".join(f"red {n} cat\trote {n} Katze\n" for n in range(30))
    (folder / "train.tsv").write_text(lines, encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return train(read_recipe(folder / "recipe.toml"), folder / "run").path


def evaluated(run: Path, sources: list[str]) -> str:
    source, reference = run.parent / "test.en", run.parent / "test.de"
    source.write_text("".join(f"{text}\n" for text in sources), encoding="utf-8")
    reference.write_text("ein Hund\n" * len(sources), encoding="utf-8")
    code, _, error = called("evaluate", run, "--source", source, "--reference", reference)
    assert code == 0
    return error


def held_back(run: Path) -> list[str]:
    """A text of each part: one that was trained on, and one that was held back."""
    texts = overlap.training_texts(Run(run))
    every = [f"red {n} cat" for n in range(30)]
    assert len(texts) == 26
    return [
        next(text for text in every if text in texts),
        next(text for text in every if text not in texts),
    ]


def test_texts_of_the_training_are_counted_whatever_their_spaces(run: Path) -> None:
    trained, held = held_back(run)
    spaced = f" {trained.replace(' ', '  ')}"
    error = evaluated(run, [trained, spaced, held, "a new text"])
    assert f"2 of 4 texts are in the training data of {run}" in error
    assert "in the training data" not in evaluated(run, [held, "a new text"])


def test_a_run_whose_training_data_is_gone_or_too_large_is_scored_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, _ = held_back(run)
    with monkeypatch.context() as limited:
        limited.setattr(overlap, "MOST", 25)
        assert "in the training data" not in evaluated(run, [trained])
    data = run.parent / "train.tsv"
    away = data.rename(data.with_suffix(".away"))
    try:
        assert "in the training data" not in evaluated(run, [trained])
    finally:
        away.rename(data)


def test_labelled_texts_of_the_training_are_counted_too(tmp_path: Path) -> None:
    lines = [f'{{"text": "film {n}", "label": "{"good" if n % 2 else "bad"}"}}' for n in range(30)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(LABELLED, encoding="utf-8")
    run = train(read_recipe(tmp_path / "recipe.toml"), tmp_path / "run").path
    code, _, error = called("evaluate", run, "--source", tmp_path / "train.jsonl")
    assert code == 0
    assert f"26 of 30 texts are in the training data of {run}" in error
