"""Dropout with a faster source of random numbers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.ops.dropout import Dropout, WordDropout, dropout_generator


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


def test_on_another_device_than_a_cpu_it_is_torchs_own(monkeypatch) -> None:
    requested = []
    torchs = torch.nn.functional.dropout

    def heard(x, p):
        requested.append((x, p))
        return torchs(x, p)

    monkeypatch.setattr(torch.nn.functional, "dropout", heard)
    x = torch.empty(3, 4, device="meta")
    assert Dropout(0.3)(x).shape == (3, 4)
    ((given_, p),) = requested
    assert given_ is x  # so that no mask of numbers is made and kept
    assert p == 0.3
    assert Dropout(0.3).eval()(x) is x
    assert Dropout(0.0)(x) is x


@given(
    p=st.floats(0.0, 0.95),
    shape=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_words_are_dropped_whole_or_scaled_up(p: float, shape: list[int], dtype) -> None:
    x = (torch.randn(shape, dtype=torch.float64).to(dtype) + 10).requires_grad_()
    y = WordDropout(p)(x)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    factors = (y / x)[..., :1]
    expected = torch.where(factors == 0, 0.0, 1 / (1 - p)).to(dtype)
    close = {"rtol": 2e-2 if dtype == torch.bfloat16 else 1e-3, "atol": 0}
    torch.testing.assert_close(y, x * expected, **close)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, expected.expand_as(x), **close)


def test_no_words_are_dropped_in_evaluation() -> None:
    x = torch.randn(5, 3)
    assert WordDropout(0.7).eval()(x) is x
    assert WordDropout(0.0)(x) is x
    assert not WordDropout(1.0)(x).any()


def test_its_rate_is_what_it_drops_now() -> None:
    dropout = Dropout(0.3)
    assert dropout.active_p == 0.3
    assert dropout.eval().active_p == 0.0


def test_a_share_beyond_one_is_the_callers_error() -> None:
    with pytest.raises(AttlasError, match=r"a dropout from 0 to 1; got 1\.5"):
        Dropout(1.5)


def test_within_dropping_by_the_given_generator_rules_and_torchs_is_left_alone() -> None:
    x, dropout = torch.ones(100), Dropout(0.5)
    torch.manual_seed(7)
    expected = dropout(x)
    torch.manual_seed(8)
    before = torch.get_rng_state()
    with dropout_generator(torch.Generator().manual_seed(7)):
        assert torch.equal(dropout(x), expected)
        with dropout_generator(torch.Generator().manual_seed(9)):
            dropout(x)
        assert not torch.equal(dropout(x), expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_each_thread_drops_by_its_own_generator() -> None:
    x, dropout = torch.ones(1000), Dropout(0.5)

    def draws(seed: int) -> torch.Tensor:
        with dropout_generator(torch.Generator().manual_seed(seed)):
            return torch.stack([dropout(x) for _ in range(50)])

    alone = [draws(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draws, range(4)))
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
