import pytest
import torch

from attlas.errors import AttlasError
from attlas.patterns import (
    Pattern,
    both,
    causal,
    either,
    everywhere,
    landmarks,
    scattered,
    strided,
    window,
)


def drawn(pattern: Pattern, queries: int, keys: int, query_offset: int | None = None) -> list[str]:
    mask = pattern.mask(queries, keys, query_offset)
    return ["".join("x" if seen else "." for seen in row) for row in mask.tolist()]


def test_everywhere_sees_every_slot():
    assert drawn(everywhere, 2, 3) == ["xxx", "xxx"]


def test_causal_sees_itself_and_what_came_before():
    assert drawn(causal, 3, 3) == ["x..", "xx.", "xxx"]


def test_queries_are_the_newest_positions_unless_first_says_otherwise():
    assert drawn(causal, 2, 4) == ["xxx.", "xxxx"]
    assert drawn(causal, 2, 4, query_offset=0) == ["x...", "xx.."]


def test_a_window_reaches_its_radius_to_both_sides():
    assert drawn(window(1), 4, 4) == ["xx..", "xxx.", ".xxx", "..xx"]
    assert drawn(window(0), 2, 2) == ["x.", ".x"]


def test_a_stride_counts_from_the_query_in_both_directions():
    assert drawn(strided(2), 4, 4) == ["x.x.", ".x.x", "x.x.", ".x.x"]


def test_landmarks_see_everything_and_are_seen_by_everyone():
    assert drawn(landmarks(1), 3, 3) == [".x.", "xxx", ".x."]


def test_scattered_sees_itself_and_about_its_share_and_is_the_same_at_any_length():
    mask = scattered(0.25, 7).mask(400, 400)
    assert mask.diagonal().all()
    # 160,000 draws: five standard deviations are 0.0055; the diagonal adds 0.0019.
    assert abs(mask.float().mean().item() - 0.25) < 0.008
    assert torch.equal(scattered(0.25, 7).mask(100, 50, query_offset=0), mask[:100, :50])
    assert not torch.equal(scattered(0.25, 8).mask(400, 400), mask)


def test_scattered_draws_neighbouring_pairs_independently():
    mask = scattered(0.5, 3).mask(400, 400).float() - 0.5
    for other in (mask.roll(1, 0), mask.roll(1, 1), mask.T):
        assert abs((mask * other).mean().item()) < 0.01  # 0.25 where they were the same


def test_both_is_the_intersection_and_either_the_union():
    assert drawn(both(causal, window(1)), 3, 3) == ["x..", "xx.", ".xx"]
    longformer = either(window(1), landmarks(0))
    assert drawn(longformer, 4, 4) == ["xxxx", "xxx.", "xxxx", "x.xx"]
    assert drawn(both(causal, window(2), strided(2)), 3, 3) == ["x..", ".x.", "x.x"]


def test_patterns_are_values():
    assert both(causal, window(3)) == both(causal, window(3))
    assert len({window(3), window(3), window(4), landmarks(2, 1), landmarks(1, 2, 2)}) == 3
    assert str(either(window(2), landmarks(3, 0))) == "either(window(2), landmarks(0, 3))"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: window(-1),
            "expected a window radius, a whole number from 0 to 2³¹ − 1; got -1; ",
        ),
        (lambda: strided(0), "expected a stride, a whole number from 1 to 2³¹ − 1; got 0; "),
        (
            lambda: landmarks(2, -3),
            "expected a landmark position, a whole number from 0 to 2³¹ − 1; got -3; ",
        ),
        (lambda: scattered(1.5), "expected a share from 0 to 1; got 1.5; use e.g. scattered(0.05)"),
        (lambda: scattered(float("nan")), "expected a share from 0 to 1; got nan; "),
        (lambda: scattered(0.1, -1), "expected a seed, a whole number from 0 to 2³¹ − 1; got -1; "),
    ],
)
def test_a_wrong_number_is_named(make, text):
    with pytest.raises(AttlasError) as caught:
        make()
    assert str(caught.value).startswith(text)
