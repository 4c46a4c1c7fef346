"""The interval of a share, and what was taken for what."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import confusion, wilson_interval


@given(total=st.integers(1, 100_000), data=st.data())
def test_the_ends_are_the_shares_from_which_what_was_seen_is_z_deviations_away(
    total: int, data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, total))
    low, high = wilson_interval(right, total)
    assert 0.0 <= low <= right / total <= high <= 1.0
    z = 1.959963984540054  # of 95 %
    for end in (low, high):
        if 0.0 < end < 1.0:
            reached = abs(right / total - end)
            assert reached == pytest.approx(z * sqrt(end * (1 - end) / total), rel=1e-6, abs=1e-9)


def test_it_is_narrower_the_more_there_are_and_wider_the_surer_one_wants_to_be() -> None:
    def width(total: int, confidence: float) -> float:
        low, high = wilson_interval(total // 2, total, confidence)
        return high - low

    assert width(10, 0.95) > width(100, 0.95) > width(1000, 0.95)
    assert width(100, 0.99) > width(100, 0.95) > width(100, 0.5)


@pytest.mark.parametrize(("right", "total"), [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_count_is_an_error(right: int, total: int) -> None:
    with pytest.raises(AttlasError, match="0 ≤ right ≤ total"):
        wilson_interval(right, total)


def test_a_confidence_that_is_none_is_an_error() -> None:
    with pytest.raises(AttlasError, match="a confidence between 0 and 1"):
        wilson_interval(1, 2, 1.0)


@given(pairs=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"))))
def test_each_text_is_counted_once_where_it_belongs(pairs: list[tuple[str, str]]) -> None:
    found = confusion([w for w, _ in pairs], [g for _, g in pairs], "abc")
    assert sum(sum(row.values()) for row in found.values()) == len(pairs)
    for expected in "abc":
        for given_label in "abc":
            assert found[expected][given_label] == pairs.count((expected, given_label))


def test_unequal_counts_are_an_error() -> None:
    with pytest.raises(AttlasError, match="one predicted label for each expected one"):
        confusion(["a"], [], "a")
