"""A classifier that has to look: whether "not" stands before the telling word or elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from attlas import TextClassifier
from attlas.training import Outcome, Recipe, train
from support.labelled_runs import reviews, tables, write_lines


def outcome_of(folder: Path, epochs: int = 8, **model: Any) -> Outcome:
    lines = write_lines(folder / "reviews.jsonl", reviews(2000, negated=True))
    begun = tables(lines, max_epochs=epochs, max_steps=None, learning_rate=3e-3)
    begun["data"]["held_back"] = 300
    begun["model"] |= {"embed_dim": 32, "ffn_dim": 64, "layers": 2, "word_dropout": 0.0, **model}
    return train(Recipe.read(begun, "the test"), folder / "run")


@pytest.mark.slow
def test_self_attention_learns_which_word_is_negated(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, patterns=["window(1)"])
    assert outcome.best is not None
    assert outcome.best >= 0.95
    classifier = TextClassifier(outcome.path)
    unseen = reviews(300, seed=99, negated=True)
    given = [found.label for found in classifier.stream(entry["text"] for entry in unseen)]
    right = sum(label == entry["label"] for label, entry in zip(given, unseen, strict=True))
    assert right / len(unseen) >= 0.93


@pytest.mark.slow
def test_without_looking_at_a_neighbour_it_is_a_matter_of_chance(tmp_path: Path) -> None:
    blind = outcome_of(tmp_path, 4, patterns=["window(0)"], positions="none", pooling="mean")
    assert blind.best is not None
    assert blind.best < 0.7
