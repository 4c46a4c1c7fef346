"""A validation measures what a user will get."""

from pathlib import Path

import pytest
import torch

from attlas.data import Corpus, FilterReport, Pair
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.training import evaluate
from attlas.training.setup import prepare_run
from support.killed_trainings import recipe


@pytest.mark.parametrize("longest", [0, 2])
def test_a_validation_translates_as_every_translator_does(tmp_path: Path, longest: int) -> None:
    task = prepare_run(recipe(1), tmp_path)
    torch.manual_seed(0)
    model, vocabularies = task.build(), task.vocabularies
    texts = [*task.splits.valid.sources, "", " ", "a word that nobody knows"]
    pairs = tuple(Pair(text, text) for text in texts)
    corpus = Corpus("some", pairs, tuple(range(len(pairs))), FilterReport("some", 1, 1))
    config = DecodingConfig(method="greedy", max_source_length=longest)
    model.train()
    found = evaluate(model, corpus, vocabularies, config)
    assert model.training  # as it came
    alone = list(map(Translator.of(model, vocabularies, config), texts))
    assert found.translations == tuple(one.text for one in alone)
    assert any(one.cut for one in alone) == bool(longest)
    right = [a.finished and a.text == b.strip() for a, b in zip(alone, texts, strict=True)]
    assert found.accuracy == sum(right) / len(texts) > 0  # what is empty is translated by nothing
