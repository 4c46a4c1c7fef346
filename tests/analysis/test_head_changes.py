"""Other weights of one head of one text, several at a time, against one at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.analysis.faithfulness.experiment import distribution
from attlas.analysis.faithfulness.head_changes import (
    HeadTarget,
    made_uniform,
    outputs_with,
    shuffled,
    switched_off,
    unchanged,
    weight_set,
)
from attlas.errors import AttlasError
from attlas.recording import intervene, permuted, uniform, without

CHANGES = [unchanged, made_uniform, switched_off, shuffled(3), weight_set(1, 2, 0.25)]


class Twice(nn.Module):
    """One attention layer that is called twice, over a text of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.text = nn.Parameter(torch.randn(1, 4, 8))
        self.double().eval()

    def forward(self, copies: int = 1) -> torch.Tensor:
        x = self.text.expand(copies, -1, -1)
        for _ in range(2):
            x = x + self.attention(x, x, x)[0]
        logits: torch.Tensor = x[:, -1]
        return logits


@pytest.mark.parametrize("most_copies", [1, 2, 5])
@pytest.mark.parametrize("call", [0, 1])
def test_a_batch_of_changes_gives_what_each_gives_alone(call: int, most_copies: int) -> None:
    model = Twice()
    head_map = HeadTarget("attention", 1, 4 * call, 4)
    found = outputs_with(model, model, head_map, CHANGES, most_copies=most_copies)

    def alone(change) -> torch.Tensor:  # type: ignore[no-untyped-def]
        calls = iter(range(2))

        def one(weights, allowed, layer):  # type: ignore[no-untyped-def]
            if next(calls) != call:
                return weights
            return torch.cat([weights[:, :1], change(weights, allowed, layer)[:, 1:]], 1)

        with torch.no_grad(), intervene(model, one):
            return distribution(model())[0]

    def edited(weights, allowed, layer):  # type: ignore[no-untyped-def]
        weights = weights.clone()
        row = weights[0, 1, 1].tolist()
        weights[0, 1, 1] = torch.tensor(
            [0.25 if key == 2 else 0.75 * w / (1 - row[2]) for key, w in enumerate(row)]
        )
        return weights

    expected = [lambda weights, allowed, layer: weights, uniform, without(1), permuted(3), edited]
    for got, change in zip(found, expected, strict=True):
        torch.testing.assert_close(got, alone(change))


@given(st.integers(0, 999), st.integers(2, 5), st.floats(0, 1))
def test_a_row_keeps_its_sum_and_the_rest_its_proportions(
    seed: int, keys: int, share: float
) -> None:
    torch.manual_seed(seed)
    weights = torch.rand(1, 1, 2, keys).double()
    seen = torch.ones_like(weights, dtype=torch.bool)
    found = weight_set(1, 0, share)(weights, seen, 0)
    torch.testing.assert_close(found[:, :, 0], weights[:, :, 0])
    row, before = found[0, 0, 1], weights[0, 0, 1]
    torch.testing.assert_close(row.sum(), before.sum())
    torch.testing.assert_close(row[0], share * before.sum())
    torch.testing.assert_close(row[1:] * before[1:].sum(), before[1:] * row[1:].sum())


def test_where_the_rest_has_no_weight_its_keys_get_equal_parts() -> None:
    weights = torch.tensor([[[[1.0, 0.0, 0.0, 0.0]]]])
    seen = torch.tensor([[[[True, True, True, False]]]])
    found = weight_set(0, 0, 0.5)(weights, seen, 0)
    torch.testing.assert_close(found, torch.tensor([[[[0.5, 0.25, 0.25, 0.0]]]]))


@pytest.mark.parametrize(
    ("key", "seen", "said"),
    [
        (2, [True, True, False], "a key that query 0 sees"),
        (3, [True, True, True], "a key that query 0 sees"),
        (0, [True, False, False], "sees several keys"),
    ],
)
def test_a_weight_that_cannot_be_set_says_why(key: int, seen: list[bool], said: str) -> None:
    weights = torch.tensor([[[[0.5, 0.5, 0.0]]]])
    with pytest.raises(AttlasError, match=said):
        weight_set(0, key, 0.5)(weights, torch.tensor([[[seen]]]), 0)
    with pytest.raises(AttlasError, match="a share of the row"):
        weight_set(0, 0, 1.5)


def test_a_row_is_a_target_of_the_call_that_computes_it() -> None:
    model = Twice()
    target = HeadTarget("attention", 0, 4, 4).target(model, model, 2)
    assert (target.call, target.queries) == (1, 2)
    whole = HeadTarget("attention", None, 4, 4).target(model, model, None)
    assert (whole.call, whole.queries) == (1, range(4))
    with pytest.raises(AttlasError, match="a query from 0 to 3"):
        HeadTarget("attention", 0, 4, 4).target(model, model, 9)
