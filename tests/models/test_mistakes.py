"""Mistakes with models, their settings and patterns, and the sentence that each gets."""

import copy
import pickle

import pytest
import torch

from attlas.errors import AttlasError
from attlas.models import (
    Classifier,
    ClassifierConfig,
    RecurrentConfig,
    RecurrentModel,
    Transformer,
    TransformerConfig,
    build,
)
from attlas.patterns import causal, everywhere


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (
            lambda: Transformer(TransformerConfig(), 100, 100),
            r"parts of a Transformer; got its settings, a TransformerConfig; let attlas.models",
        ),
        (
            lambda: RecurrentModel(config=RecurrentConfig()),
            r"parts of a RecurrentModel; got its settings, a RecurrentConfig; let attlas.models",
        ),
        (
            lambda: Classifier(ClassifierConfig(), 3),
            r"parts of a Classifier; .*; let .*.build_classifier\(config, size, labels\)",
        ),
    ],
)
def test_settings_in_place_of_the_parts_of_a_model_are_sent_to_what_builds_it(make, reported):
    with pytest.raises(AttlasError, match=reported):
        make()


def test_a_model_is_copied_and_pickled_as_any_module():
    model = build(TransformerConfig(embed_dim=8, num_heads=2), 9, 9).eval()
    ids = torch.tensor([[4, 5, 3]])
    expected = model(ids, ids)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(again(ids, ids), expected)


@pytest.mark.parametrize("given", [(), (5,)])
@pytest.mark.parametrize("pattern", [causal, everywhere])
def test_a_pattern_that_is_called_as_a_function_is_to_be_passed_itself(pattern, given):
    call = type(pattern).__call__
    call = getattr(call, "__wrapped__", call)
    reported = (
        rf"{pattern} itself, without parentheses; got {pattern}\(.*write pattern={pattern}; its"
    )
    with pytest.raises(AttlasError, match=reported):
        call(pattern, *given)
    assert pattern.mask(2, 3).tolist() == [
        [True, True, pattern == everywhere],
        [True, True, True],
    ]


@pytest.mark.parametrize(
    ("written", "name"), [("bahdanau", "additive"), ("Bahdanau", "additive"), ("luong", "general")]
)
def test_the_author_of_a_mechanism_is_answered_with_its_name(written, name):
    reported = f"write attention = '{name}'; decoder = '{written.lower()}' names the decoder"
    with pytest.raises(AttlasError, match=reported):
        RecurrentConfig(attention=written)
    with pytest.raises(AttlasError, match=reported):
        RecurrentConfig.read({"attention": written}, "mine.toml")
    assert RecurrentConfig(attention=name, decoder=written.lower()).attention == name


@pytest.mark.parametrize(
    ("setting", "written", "near"),
    [("attention", "addtive", "additive"), ("cell", "GRU", "gru"), ("decoder", "Luong", "luong")],
)
def test_a_choice_that_is_written_nearly_right_is_answered_with_what_was_meant(
    setting, written, near
):
    with pytest.raises(AttlasError, match=rf"got '{written}'; did you mean '{near}'\?"):
        RecurrentConfig.read({setting: written}, "mine.toml")
    with pytest.raises(AttlasError, match="got 'zzz'; correct that value"):
        RecurrentConfig.read({setting: "zzz"}, "mine.toml")
