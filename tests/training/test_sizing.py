"""The rules that choose a recipe's settings by the size of the data."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from attlas.errors import AttlasError
from attlas.training import Recipe
from attlas.training.sizing import (
    FEWEST_PAIRS,
    FEWEST_TEXTS,
    SET_BY_USER,
    DataSize,
    as_tables,
    choice_rows,
    choose,
    warnings_of,
)

SIZES = [FEWEST_PAIRS, 300, 999, 1_000, 3_000, 9_999, 10_000, 30_000, 300_000, 3_000_000]


def pairs(examples: int, **others: Any) -> DataSize:
    return DataSize(examples, **{"length": 39.0, "longest": 200, "alphabet": 90, **others})


def texts(**labels: int) -> DataSize:
    return DataSize(sum(labels.values()), 60.0, 400, 80, labels)


def settings(size: DataSize, **given: Any) -> dict[str, Any]:
    given = {name.replace("__", "."): value for name, value in given.items()}
    return {choice.setting: choice.value for choice in choose(size, given)}


def recipe_of(size: DataSize) -> Recipe:
    kind = "labelled" if size.labels else "files"
    tables = as_tables(choose(size))
    return Recipe.read({**tables, "data": {"kind": kind, "train": "a", **tables["data"]}}, "here")


@pytest.mark.parametrize("examples", SIZES)
@pytest.mark.parametrize("length", [5.0, 39.0, 4_000.0])
def test_the_choices_for_pairs_of_any_size_are_a_recipe_without_a_misfit(
    examples: int, length: float
) -> None:
    recipe = recipe_of(pairs(examples, length=length))
    training = recipe.training
    assert training.max_steps is not None
    assert training.schedule.misfit(training.max_steps) is None
    assert training.schedule.warmup < training.max_steps
    assert 0 < recipe.data.model_dump()["held_back"] <= examples / 10


@pytest.mark.parametrize("examples", [FEWEST_TEXTS, 300, 3_000, 25_000, 300_000])
@pytest.mark.parametrize("longest", [20, 900, 20_000, 2_000_000])
def test_the_choices_for_texts_of_any_size_are_a_recipe_without_a_misfit(
    examples: int, longest: int
) -> None:
    half = examples // 2
    size = DataSize(examples, longest / 3, longest, 80, {"a": half, "b": examples - half})
    recipe = recipe_of(size)
    assert recipe.classifies
    assert recipe.training.schedule.misfit(recipe.training.max_steps) is None


def test_ten_times_the_pairs_never_get_a_smaller_model_or_vocabulary_nor_more_dropout() -> None:
    found = [settings(pairs(examples)) for examples in SIZES]
    for name in ("vocabulary.size", "batching.max_tokens", "model.embed_dim", "data.held_back"):
        assert [one[name] for one in found] == sorted(one[name] for one in found), name
    dropouts = [one["model.dropout"] for one in found]
    assert dropouts == sorted(dropouts, reverse=True)


def test_each_pair_is_read_about_as_often_as_the_reason_says() -> None:
    size = pairs(3_000)
    (steps,) = (choice for choice in choose(size) if choice.setting == "training.max_steps")
    # 39 characters are about 14 tokens; 1,024 tokens, nine tenths of them used, hold 64 pairs.
    passes = steps.value * 64 / 3_000
    (said,) = re.findall(r"read about (\d+) times", steps.why)
    assert int(said) == pytest.approx(passes, rel=0.05)


def test_the_vocabulary_has_room_for_every_character() -> None:
    chinese = settings(pairs(300, alphabet=2_500))
    assert chinese["vocabulary.size"] > 260 + 2_500


@pytest.mark.parametrize(
    ("others", "setting", "value"),
    [
        ({"common": 0.02}, "vocabulary.shared", False),
        ({"common": 0.98}, "vocabulary.shared", True),
        ({"bleu_tokenizer": "zh"}, "training.validation.bleu_tokenizer", "zh"),
        ({"decomposed": True}, "vocabulary.normalization", "nfc"),
    ],
)
def test_the_languages_decide_where_the_size_does_not(
    others: dict[str, Any], setting: str, value: object
) -> None:
    assert settings(pairs(3_000, **others))[setting] == value


def test_what_is_set_is_kept_and_later_rules_go_by_it() -> None:
    found = settings(pairs(3_000), training__max_steps=600, model__embed_dim=32)
    assert found["training.max_steps"] == 600
    assert found["training.schedule.total_steps"] == 600
    assert found["training.schedule.warmup"] == 50
    assert found["model.ffn_dim"] == 96
    whys = {one.setting: one.why for one in choose(pairs(3_000), {"model.embed_dim": 32})}
    assert whys["model.embed_dim"] == SET_BY_USER
    assert whys["model.ffn_dim"] != SET_BY_USER


def test_epochs_take_the_place_of_updates() -> None:
    few, many = (settings(pairs(3_000), training__max_epochs=epochs) for epochs in (5, 50))
    assert "training.max_steps" not in few
    ratio = many["training.schedule.total_steps"] / few["training.schedule.total_steps"]
    assert math.isclose(ratio, 10, rel_tol=0.05)


def test_a_validation_file_takes_the_place_of_pairs_held_back() -> None:
    assert "data.held_back" not in settings(pairs(3_000), data__valid="valid.tsv")


def test_another_optimizer_gets_another_learning_rate() -> None:
    of_muon = settings(pairs(3_000))["training.learning_rate"]
    of_adam = settings(pairs(3_000), training__optimizer__kind="adam")
    assert of_adam["training.learning_rate"] < of_muon


def test_rare_labels_are_weighted_and_judged_alike() -> None:
    even, uneven = settings(texts(a=300, b=280)), settings(texts(a=900, b=40))
    assert even["training.validation.criterion"] == "accuracy"
    assert "training.class_weights" not in even
    assert uneven["training.validation.criterion"] == "macro_f1"
    assert uneven["training.class_weights"] == "balanced"


def test_a_label_that_is_too_rare_to_be_learned_does_not_outweigh_the_others() -> None:
    stray = settings(texts(neg=300, pos=290, NA=1))
    assert "training.class_weights" not in stray
    assert stray["training.validation.criterion"] == "accuracy"
    both = settings(texts(neg=900, pos=100, NA=1, odd=3))
    weights = both["training.class_weights"]
    assert weights == {"neg": 0.5556, "pos": 5.0}  # total / (labels · texts), as of "balanced"
    assert both["training.validation.criterion"] == "macro_f1"
    assert [w.split(" has ")[0] for w in warnings_of(texts(neg=900, pos=100, NA=1, odd=3))] == [
        "the label 'NA'", "the label 'odd'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "expected", "got"),
    [
        (pairs(10), "at least 50 pairs to train on", "got 10 pairs;"),
        (texts(a=5, b=5), "at least 20 texts to train on", "got 10 texts;"),
        (texts(a=500), "texts with two labels or more", "the label 'a' alone"),
    ],
)
def test_too_little_is_an_error(size: DataSize, expected: str, got: str) -> None:
    with pytest.raises(AttlasError, match=expected) as caught:
        choose(size)
    assert got in str(caught.value)


def test_of_too_few_pairs_the_user_hears_before_the_training() -> None:
    (few,) = warnings_of(pairs(300))
    assert few.startswith("300 pairs are too few to learn to translate")
    assert warnings_of(pairs(30_000)) == []
    (rare,) = warnings_of(texts(a=500, b=4))
    assert "the label 'b' has 4 texts" in rare


def test_every_choice_has_a_value_and_a_reason_in_words() -> None:
    for size in (pairs(3_000), pairs(300, common=0.0), texts(a=200, b=300)):
        for setting, value, why in choice_rows(choose(size)):
            assert setting.count(".") >= 1
            assert value
            assert 5 < len(why) <= 70, (setting, why)


def test_a_longer_text_is_never_planned_as_a_shorter_training() -> None:
    short, long = (settings(replace(pairs(3_000), length=chars)) for chars in (20.0, 200.0))
    assert long["training.max_steps"] > short["training.max_steps"]
