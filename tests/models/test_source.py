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
    "transformer": TransformerConfig(embed_dim=8, num_heads=2, ffn_dim=8),
    "bahdanau": RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8),
    "input feeding": RecurrentConfig(
        embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, decoder="luong", input_feeding=True
    ),
    "plain": RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, attention="none"),
}
WRONG = [
    (torch.ones(3, 5, dtype=torch.half), "float16 of shape (3, 5)"),
    (torch.ones(3, 5), "float32 of shape (3, 5)"),
    (torch.ones(3, 4, dtype=torch.bool), "bool of shape (3, 4)"),
]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def translator(request: pytest.FixtureRequest) -> SequenceToSequence[Any]:
    return build(request.param, 11, 13).double()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
@pytest.mark.parametrize("reported", [True, False])
def test_an_empty_batch_and_an_empty_source_are_no_source(
    translator: SequenceToSequence[Any], shape: tuple[int, int], reported: bool
) -> None:
    source = torch.zeros(shape, dtype=torch.long)
    token_mask = torch.ones(shape, dtype=torch.bool) if reported else None
    with pytest.raises(AttlasError) as caught:
        translator.encode(source, token_mask)
    assert str(caught.value) == (
        "expected a source of at least one row and one position; "
        f"got {shape[0]} row(s) and {shape[1]} position(s); "
        "pass what there is to read; an empty sentence is its end token alone"
    )


@pytest.mark.parametrize(("token_mask", "came"), WRONG, ids=[came for _, came in WRONG])
def test_a_mask_that_is_not_one_bool_for_each_slot_is_named(
    translator: SequenceToSequence[Any], source: Tensor, token_mask: Tensor, came: str
) -> None:
    classifier = build_classifier(ClassifierConfig(embed_dim=8, num_heads=2, ffn_dim=8), 11, 3)
    for model, read in ((translator, "encode"), (classifier, "forward")):
        with pytest.raises(AttlasError) as caught:
            inspect.unwrap(getattr(type(model), read))(model, source, token_mask)
        assert str(caught.value) == (
            f"expected token_mask of bool and shape (3, 5), True = a token; got {came}; "
            "compare the ids with that of padding: ids != padding"
        )


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_a_classifier_wants_something_to_read(shape: tuple[int, int]) -> None:
    classifier = build_classifier(ClassifierConfig(embed_dim=8, num_heads=2, ffn_dim=8), 11, 3)
    with pytest.raises(AttlasError, match="a source of at least one row and one position"):
        classifier(torch.zeros(*shape, dtype=torch.long))


@pytest.mark.parametrize("rows", [1, 2, 4, 6])
def test_there_is_one_target_and_one_token_for_each_row(
    translator: SequenceToSequence[Any], source: Tensor, token_mask: Tensor, rows: int
) -> None:
    state = translator.encode(source, token_mask)
    target = torch.full((rows, 4), 2)
    advice = "pass as many as the state has rows"
    with pytest.raises(AttlasError) as caught:
        translator.decode(target, state)
    assert str(caught.value) == f"expected one target for each of 3 rows; got {rows}; {advice}"
    with pytest.raises(AttlasError) as caught:
        translator.step(target[:, 0], state)
    assert str(caught.value) == f"expected one token for each of 3 rows; got {rows}; {advice}"
    whole = inspect.unwrap(type(translator).forward)
    with pytest.raises(AttlasError, match=f"3 rows of source and {rows} of target"):
        whole(translator, source, target, token_mask=token_mask)


def test_rows_that_share_a_source_may_have_a_target_each(
    translator: SequenceToSequence[Any], source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    translator.eval()
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    targets = target[[0, 1, 2, 0, 1, 2]]
    found = translator.decode(targets, translator.encode(source, token_mask).select(rows))
    expected = translator.decode(targets, translator.encode(source[rows], token_mask[rows]))
    torch.testing.assert_close(found, expected)
