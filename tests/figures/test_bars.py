"""Bar charts of one query, and the drawings of patterns."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas import figures
from attlas.errors import AttlasError
from attlas.patterns import Pattern, both, causal, either, everywhere, landmarks, strided, window

PATTERNS = [
    everywhere,
    causal,
    window(2),
    strided(3),
    landmarks(0, 4),
    either(window(1), landmarks(0)),
    both(causal, window(3)),
]


def test_each_bar_is_as_high_as_its_weight() -> None:
    given = np.array([0.1, 0.0, 0.7, 0.2])
    (axes,) = figures.bars(given, ["a", "b", "c", "d"], "x").axes
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(given)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c", "d"]
    assert [text.get_text() for text in axes.texts] == [".10", "0", ".70", ".20"]
    assert axes.get_title() == "“x”"
    assert axes.get_ylim()[0] == 0


def test_the_rows_of_a_reading_are_taken_as_they_are() -> None:
    weights = torch.tensor([[[[0.25, 0.75]]]])
    (axes,) = figures.bars(weights, ["a", "b"], "x", title="a title").axes
    assert [bar.get_height() for bar in axes.patches] == [0.25, 0.75]
    assert axes.get_title() == "a title"


def test_the_slots_are_called_what_they_are() -> None:
    for axis in ({}, {"axis": "key"}):
        (axes,) = figures.bars([0.5, 0.5], ["a", "b"], "x", **axis).axes
        assert axes.get_xlabel() == axis.get("axis", "source")


@pytest.mark.parametrize("keys", [1, 12, 200, 3000])
def test_everything_is_on_the_sheet(keys: int) -> None:
    figure = figures.bars(np.full(keys, 1 / keys), [f"token{i}" for i in range(keys)], "x")
    figure.canvas.draw()
    (axes,) = figure.axes
    box = axes.get_tightbbox(figure.canvas.get_renderer())
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height


def test_two_queries_are_not_one() -> None:
    with pytest.raises(AttlasError, match="expected 2 target tokens"):
        figures.bars(np.ones((2, 2)), ["a", "b"], "x")


@given(st.sampled_from(PATTERNS), st.integers(1, 12), st.integers(0, 6))
def test_a_cell_is_dark_where_the_query_may_see_the_slot(
    pattern: Pattern, queries: int, more: int
) -> None:
    figure = figures.plot_pattern(pattern, queries, queries + more)
    (axes,) = figure.axes
    (mesh,) = axes.collections
    seen = pattern.mask(queries, queries + more).numpy()
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(seen.shape) > 0, seen)


def test_a_drawing_is_named_after_its_pattern_and_its_axes_count_positions() -> None:
    (axes,) = figures.plot_pattern(both(causal, window(3)), 2, 5).axes
    assert axes.get_title() == "both(causal, window(3))"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2", "3", "4"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3", "4"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")


def test_the_first_query_may_be_anywhere() -> None:
    (axes,) = figures.plot_pattern(causal, 2, 5, query_offset=1).axes
    seen = np.asarray(axes.collections[0].get_array()).reshape(2, 5) > 0
    np.testing.assert_array_equal(seen, causal.mask(2, 5, query_offset=1).numpy())


def test_a_long_pattern_is_dark_where_any_of_its_pairs_is_seen() -> None:
    length = figures.MOST_CELLS * 2
    (axes,) = figures.plot_pattern(window(0), length).axes
    (image,) = axes.images
    np.testing.assert_array_equal(np.asarray(image.get_array()) > 0, np.eye(length // 2) > 0)


@pytest.mark.parametrize(("queries", "keys"), [(0, 1), (1, 0), (-1, None)])
def test_a_pattern_of_nothing_is_reported(queries: int, keys: int | None) -> None:
    with pytest.raises(AttlasError, match=r"at least one (query|key); got (0|-1)"):
        figures.plot_pattern(causal, queries, keys)
