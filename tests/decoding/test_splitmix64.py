"""Random numbers by their place: those of SplitMix64, even, and each from itself alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.decoding.sampling import splitmix64_uniform

ALL = 2**64 - 1


def split_mix(seed: int, number: int) -> float:
    """The same in whole numbers of Python, one after the other."""
    state = seed
    for _ in range(number + 1):
        state = (state + 0x9E3779B97F4A7C15) & ALL
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.integers(0, 300) | st.just(999_999),
)
def test_it_is_split_mix(seeds: list[int], number: int) -> None:
    found = splitmix64_uniform(torch.tensor(seeds), number)
    assert found.dtype == torch.float64
    if number < 1000:
        expected = [min(split_mix(seed & ALL, number), 1.0 - 1e-6) for seed in seeds]
        assert found.tolist() == expected
    assert ((found >= 0) & (found < 1)).all()


def test_its_first_numbers_are_those_that_are_printed_elsewhere() -> None:
    """Of the seed 1,234,567, as the tests of many libraries have them."""
    printed = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
        16408922859458223821,
    ]  # fmt: skip
    found = [splitmix64_uniform(torch.tensor([1234567]), number).item() for number in range(5)]
    assert found == pytest.approx([number / 2**64 for number in printed], abs=1e-15)


def test_numbers_are_even_and_neighbours_have_nothing_in_common() -> None:
    seeds = torch.arange(2000)
    many = torch.stack([splitmix64_uniform(seeds, number) for number in range(50)], dim=1) - 0.5
    # Five standard deviations of a mean of so many, of variance 1/12, and of their products.
    few = 5 / many.numel() ** 0.5
    assert abs(float(many.mean())) < few / 12**0.5
    assert float(many.square().mean()) == pytest.approx(1 / 12, rel=0.02)
    for one, other in ((many[1:], many[:-1]), (many[:, 1:], many[:, :-1])):
        assert abs(float((one * other).mean())) < few / 12
