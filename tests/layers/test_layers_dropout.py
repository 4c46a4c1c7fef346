"""Dropout with a faster source of random numbers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.layers import Dropout


@given(
    p=st.floats(0.0, 0.95),
    shape=st.lists(st.integers(0, 7), min_size=0, max_size=4),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_everything_is_dropped_or_scaled_up(p: float, shape: list[int], dtype) -> None:
    x = torch.randn(shape, dtype=torch.float64).to(dtype) + 10
    y = Dropout(p)(x)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    kept = y != 0
    torch.testing.assert_close(
        y[kept].double(),
        (x[kept] / (1 - p)).double(),
        rtol=2e-2 if dtype == torch.bfloat16 else 1e-3,
        atol=0,
    )


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_part_that_is_dropped_is_p_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    count = 1_000_001  # not a multiple of the four numbers in a word
    y = Dropout(p)(torch.ones(count))
    # Five standard deviations of a binomial share.
    assert abs(float((y == 0).double().mean()) - p) < 5 * (p * (1 - p) / count) ** 0.5
    assert abs(float(y.double().mean()) - 1) < 5 * (p / (1 - p) / count) ** 0.5


def test_places_are_dropped_independently() -> None:
    torch.manual_seed(1)
    y = (Dropout(0.5)(torch.ones(4000, 64)) != 0).double() - 0.5
    correlations = (y.T @ y) / (4000 / 4)
    assert (correlations - torch.eye(64)).abs().max() < 0.1
    rows = (y[1:] * y[:-1]).sum(1).mean() / 16
    assert abs(float(rows)) < 0.02


def test_torchs_seed_rules_it_and_every_call_differs() -> None:
    x, dropout = torch.ones(100), Dropout(0.5)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    torch.manual_seed(7)
    assert torch.equal(first, dropout(x))
    assert torch.equal(second, dropout(x))


def test_the_gradient_falls_where_the_value_did() -> None:
    x = torch.randn(50, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x, y)


def test_evaluation_and_zero_change_nothing_and_one_drops_all() -> None:
    x = torch.randn(5)
    assert Dropout(0.7).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert not Dropout(1.0)(x).any()


def test_a_share_beyond_one_is_the_callers_error() -> None:
    with pytest.raises(AttlasError, match=r"a dropout from 0 to 1; got 1\.5"):
        Dropout(1.5)
