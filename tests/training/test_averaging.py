"""Averages of weights are arithmetic."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.training.averaging import MovingAveraging, mean_weights, update_average

Rows = st.lists(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=4, max_size=4), min_size=1, max_size=6
)


@given(Rows)
def test_the_mean_of_weights_is_the_arithmetic_mean(rows: list[list[float]]) -> None:
    found = mean_weights([{"w": torch.tensor(row).reshape(2, 2)} for row in rows])["w"]
    expected = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    assert found.dtype == torch.float32
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_what_is_not_a_float_is_that_of_the_last() -> None:
    many = [{"n": torch.tensor(i), "w": torch.tensor(float(i))} for i in (1, 2, 6)]
    assert {k: v.item() for k, v in mean_weights(many).items()} == {"n": 6, "w": 3.0}


def test_averaging_changes_none_of_what_it_averages() -> None:
    many = [{"w": torch.ones(2, dtype=torch.double)}, {"w": torch.zeros(2, dtype=torch.double)}]
    mean_weights(many)
    assert many[0]["w"].tolist() == [1, 1]


def test_a_moving_average_follows_its_formula() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = {"weight": torch.tensor([[0.0]])}
    settings = MovingAveraging(decay=0.9)
    expected = 0.0
    for update, weight in enumerate([1.0, 2.0, 4.0], 1):
        with torch.no_grad():
            model.weight.fill_(weight)
        update_average(average, model, settings.share(update))
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * weight
    assert average["weight"].item() == pytest.approx(expected)
    assert settings.share(10**6) == pytest.approx(0.1)
