"""What no model can read is the caller's error, and the same one in every model."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.models import (
    ClassifierConfig,
    RecurrentConfig,
    SequenceToSequence,
    TransformerConfig,
    build,
    build_classifier,
)

CONFIGS: dict[str, TransformerConfig | RecurrentConfig] = {
    "transformer": TransformerConfig(width=8, heads=2, feedforward=8),
    "bahdanau": RecurrentConfig(embedding=8, hidden=8, encoder_hidden=8),
    "input feeding": RecurrentConfig(
        embedding=8, hidden=8, encoder_hidden=8, wiring="luong", input_feeding=True
    ),
    "plain": RecurrentConfig(embedding=8, hidden=8, encoder_hidden=8, attention="none"),
}
WRONG = [
    (torch.ones(3, 5, dtype=torch.long), "int64 of shape (3, 5)"),  # a tokenizer's attention mask
    (torch.ones(3, 5), "float32 of shape (3, 5)"),
    (torch.ones(3, 4, dtype=torch.bool), "bool of shape (3, 4)"),
]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def translator(request: pytest.FixtureRequest) -> SequenceToSequence[Any]:
    return build(request.param, 11, 13).double()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
@pytest.mark.parametrize("told", [True, False])
def test_an_empty_batch_and_an_empty_source_are_no_source(
    translator: SequenceToSequence[Any], shape: tuple[int, int], told: bool
) -> None:
    source = torch.zeros(shape, dtype=torch.long)
    real = torch.ones(shape, dtype=torch.bool) if told else None
    with pytest.raises(AttlasError) as caught:
        translator.encode(source, real)
    assert str(caught.value) == (
        "wanted a source of at least one row and one slot; "
        f"got {shape[0]} row(s) and {shape[1]} slot(s); "
        "pass what there is to read; an empty sentence is its end token alone"
    )


@pytest.mark.parametrize(("real", "came"), WRONG, ids=[came for _, came in WRONG])
def test_a_mask_that_is_not_one_bool_for_each_slot_is_named(
    translator: SequenceToSequence[Any], source: Tensor, real: Tensor, came: str
) -> None:
    classifier = build_classifier(ClassifierConfig(width=8, heads=2, feedforward=8), 11, 3)
    for model, read in ((translator, "encode"), (classifier, "forward")):
        with pytest.raises(AttlasError) as caught:
            inspect.unwrap(getattr(type(model), read))(model, source, real)
        assert str(caught.value) == (
            f"wanted real of bool and shape (3, 5), True = a token; got {came}; "
            "compare the ids with that of padding, or a mask of numbers with 0"
        )


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_a_classifier_wants_something_to_read(shape: tuple[int, int]) -> None:
    classifier = build_classifier(ClassifierConfig(width=8, heads=2, feedforward=8), 11, 3)
    with pytest.raises(AttlasError, match="a source of at least one row and one slot"):
        classifier(torch.zeros(*shape, dtype=torch.long))


@pytest.mark.parametrize("rows", [1, 2, 4, 6])
def test_there_is_one_target_and_one_token_for_each_row(
    translator: SequenceToSequence[Any], source: Tensor, real: Tensor, rows: int
) -> None:
    state = translator.encode(source, real)
    target = torch.full((rows, 4), 2)
    advice = "pass as many as the state has rows"
    with pytest.raises(AttlasError) as caught:
        translator.features(target, state)
    assert str(caught.value) == f"wanted one target for each of 3 rows; got {rows}; {advice}"
    with pytest.raises(AttlasError) as caught:
        translator.step(target[:, 0], state)
    assert str(caught.value) == f"wanted one token for each of 3 rows; got {rows}; {advice}"
    whole = inspect.unwrap(type(translator).forward)
    with pytest.raises(AttlasError, match="one target for each of 3 rows"):
        whole(translator, source, real, target)


def test_rows_that_share_a_source_may_have_a_target_each(
    translator: SequenceToSequence[Any], source: Tensor, real: Tensor, target: Tensor
) -> None:
    translator.eval()
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    targets = target[[0, 1, 2, 0, 1, 2]]
    found = translator.features(targets, translator.encode(source, real).select(rows))
    wanted = translator.features(targets, translator.encode(source[rows], real[rows]))
    torch.testing.assert_close(found, wanted)
