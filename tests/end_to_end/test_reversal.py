"""The first claim of the attention story: a decoder that looks can reverse, a plain one cannot.

The full size is `attlas train reverse`, 20 symbols out of 32; here half as long.
"""

from pathlib import Path

import pytest
import torch

from attlas.inference import Translator
from attlas.training import Outcome, Recipe, evaluate, read_recipe, train

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("reversal")]

LENGTH = 10
SMALLER = [
    f"data.length=[{LENGTH}, {LENGTH}]",
    "data.train=8000",
    "data.symbols=16",
    "data.test=200",
    "batching.max_tokens=512",
    "training.max_steps=250",
    "training.learning_rate=5e-3",
    "training.schedule.total_steps=250",
    "training.validation.every=250",
]


def sequence_accuracy(recipe: Recipe, outcome: Outcome) -> float:
    translator = Translator(outcome.path)
    found = evaluate(
        translator.model, recipe.data.load().test, translator.vocabularies, recipe.decoding
    )
    return found.accuracy


@pytest.fixture(scope="module")
def bahdanau(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Outcome]:
    recipe = read_recipe("reverse", SMALLER)
    return recipe, train(recipe, tmp_path_factory.mktemp("runs") / "bahdanau")


def test_bahdanau_reverses_what_it_has_never_seen(bahdanau: tuple[Recipe, Outcome]) -> None:
    assert sequence_accuracy(*bahdanau) >= 0.99


def test_its_map_is_the_anti_diagonal(bahdanau: tuple[Recipe, Outcome]) -> None:
    recipe, outcome = bahdanau
    translator = Translator(outcome.path)
    peaks = []
    for pair in recipe.data.load().test.pairs[:50]:
        weights = translator(pair.source).trace["decoder.attention"].weights()[0, 0]
        peaks.append(weights[:LENGTH].argmax(-1))
    expected = torch.arange(LENGTH).flip(0).expand(len(peaks), LENGTH)
    # The peak may sit one key beside the symbol: a bidirectional state knows its neighbours.
    beside = (torch.stack(peaks) - expected).abs() <= 1
    exact = torch.stack(peaks) == expected
    assert beside.float().mean() >= 0.98
    assert exact.float().mean() >= 0.9


def test_the_plain_model_does_not(tmp_path: Path) -> None:
    recipe = read_recipe("reverse", [*SMALLER, "model.attention=none"])
    assert sequence_accuracy(recipe, train(recipe, tmp_path / "plain")) <= 0.5
