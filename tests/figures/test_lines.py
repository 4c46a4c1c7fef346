"""Bars in several panels, lines, and the statistics of a map: what is drawn is what was given."""

import doctest
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from attlas import figures
from attlas.errors import AttlasError
from attlas.figures import HeadMap
from attlas.patterns import causal
from attlas.recording import FactoredAttentionMap

TOKENS = [f"t{i}" for i in range(2000)]


def on_the_sheet(figure: Figure) -> bool:
    """Whether all is on the sheet, and no panel lies on another or on the title over all."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    if figure.get_suptitle():
        boxes.append(figure._suptitle.get_window_extent(renderer))
    width, height = figure.bbox.width, figure.bbox.height
    inside = all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= width and b.y1 <= height for b in boxes)
    return inside and not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


@pytest.mark.parametrize("module", ["bars", "heatmap", "lines"])
def test_the_examples_of_figures_run(module: str) -> None:
    results = doctest.testmod(import_module(f"attlas.figures.{module}"))
    assert results.attempted
    assert not results.failed


# Bars in panels.


def test_bars_of_mechanisms_stand_side_by_side_on_one_scale() -> None:
    panels = {"additive": [0.2, 0.7, 0.1], "general": [0.3, 0.4, 0.3], "dot": [0.0, 0.1, 0.9]}
    figure = figures.bar_panels(panels, ["the", "cat", "sleeps"], title="three scores", fmt=".3f")
    assert figure.get_suptitle() == "three scores"
    assert [axes.get_title() for axes in figure.axes] == list(panels)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    low, high = figure.axes[0].get_ylim()
    assert low == 0
    assert high > 0.9
    for axes, weights in zip(figure.axes, panels.values(), strict=True):
        assert [bar.get_height() for bar in axes.patches] == weights
        assert [text.get_text() for text in axes.texts] == [f"{w:.3f}" for w in weights]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "cat", "sleeps"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["attention weight", "", ""]
    assert on_the_sheet(figure)


@pytest.mark.parametrize(("count", "columns"), [(1, 3), (2, 3), (5, 3), (4, 2), (4, 1)])
def test_panels_stand_in_rows(count: int, columns: int) -> None:
    panels = {f"t = {i + 1}": np.random.default_rng(i).normal(size=6) for i in range(count)}
    figure = figures.bar_panels(panels, columns=columns, title="steps")
    assert on_the_sheet(figure)
    rows = {round(axes.get_position().y0, 4) for axes in figure.axes}
    assert len(rows) == -(-count // columns)
    assert figure.axes[0].get_ylim()[0] < min(map(np.min, panels.values()))


@pytest.mark.parametrize(
    "heights", [[0.5, -0.3, 1.2], [-1.0, -2.0], [0.0, 0.0], [250.0, 3.0], [1e-9]]
)
def test_the_number_of_a_bar_lies_within_its_axes(heights: list[float]) -> None:
    figure = figures.bars(heights, query="x")
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == heights
    assert on_the_sheet(figure)
    renderer = figure.canvas.get_renderer()
    area = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        assert box.y0 >= area.y0 - 1
        assert box.y1 <= area.y1 + 1


def test_panels_of_more_than_one_query_are_reported() -> None:
    with pytest.raises(AttlasError, match="one query in each panel; got 2 queries"):
        figures.bar_panels({"a": np.ones((2, 3))})
    with pytest.raises(AttlasError, match="at least one panel"):
        figures.bar_panels({})
    with pytest.raises(AttlasError, match="at least one column"):
        figures.bar_panels({"a": [1.0]}, columns=0)


def test_numbers_above_bars_that_have_no_room_are_reported_where_a_format_asks_for_them() -> None:
    assert not figures.bars(np.full(200, 0.005)).axes[0].texts
    with pytest.raises(AttlasError, match="that fit above their bars; got 200 bars"):
        figures.bars(np.full(200, 0.005), fmt=".3f")


# Lines.


@settings(max_examples=8)
@given(
    values=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), min_size=1, max_size=4)
)
def test_a_line_goes_through_its_numbers(values: list[list[float]]) -> None:
    x = [50.0, 100.0, 200.0, 500.0]
    series = {f"series {i}": row for i, row in enumerate(values)}
    figure = figures.lines(series, x, title="a title", xlabel="length", ylabel="seconds")
    (axes,) = figure.axes
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        *("a title", "length"),
        "seconds",
    )
    for line, (name, row) in zip(axes.lines, series.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_xdata(), x)
        np.testing.assert_array_equal(line.get_ydata(), row)


def test_series_have_a_legend_where_there_are_several_and_colours_of_their_own() -> None:
    many = {f"a rather long name of a series {i}": [i, i + 1] for i in range(9)}
    figure = figures.lines(many)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(many)
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 9
    assert on_the_sheet(figure)
    assert figures.lines({"alone": [1, 2]}).axes[0].get_legend() is None


def test_the_x_axis_has_numbers_labels_or_positions() -> None:
    (axes,) = figures.lines({"a": torch.tensor([1.0, 3.0])}, ["die", "Katze"]).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["die", "Katze"]
    (axes,) = figures.lines({"a": (1, 3, 2)}).axes
    assert list(axes.lines[0].get_xdata()) == [0.0, 1.0, 2.0]
    assert on_the_sheet(figures.lines({"a": np.arange(2000)}, TOKENS))


@pytest.mark.parametrize(
    ("series", "x", "message"),
    [
        ({}, None, "at least one series"),
        ({"a": [1, 2]}, [1], "1 numbers in each series"),
        ({"a": [1, 2], "b": [1]}, None, "2 numbers in each series, one to each place"),
        ({"a": [1.0, float("nan")]}, None, "finite numbers in 'a'; got nan"),
        ({"a": []}, None, "a row of numbers in 'a'"),
        ({"a": [[1.0, 2.0]]}, None, "a row of numbers in 'a'; got shape (1, 2)"),
        ({"a": ["x", "y"]}, None, "numbers in 'a'"),
        ({"a": [1.0]}, [float("inf")], "finite numbers in x"),
    ],
)
def test_lines_that_cannot_be_drawn_are_reported(series: dict, x: list, message: str) -> None:
    with pytest.raises(AttlasError) as error:
        figures.lines(series, x)
    assert message in str(error.value)


# Statistics.


def by_numpy(weights: np.ndarray, threshold: float) -> list[np.ndarray]:
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return [-(weights * logs).sum(1), weights.max(1), (weights > threshold).sum(1)]


@settings(max_examples=8)  # each draws a figure
@given(
    queries=st.integers(1, 12),
    keys=st.integers(1, 12),
    threshold=st.sampled_from([0.05, 0.1, 0.3]),
    seed=st.integers(0, 99),
)
def test_the_three_panels_are_the_numbers_of_numpy(
    queries: int, keys: int, threshold: float, seed: int
) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(keys, 0.4), size=queries)
    figure = figures.plot_statistics(weights, TOKENS[:queries], threshold=threshold, title="of it")
    assert figure.get_suptitle() == "of it"
    entropy, largest, above = figure.axes
    expected = by_numpy(weights, threshold)
    np.testing.assert_allclose(entropy.lines[0].get_ydata(), expected[0], atol=1e-5)
    np.testing.assert_allclose(largest.lines[0].get_ydata(), expected[1], atol=1e-6)
    assert [bar.get_height() for bar in above.patches] == list(expected[2])
    headings = ["entropy in nats", "largest weight", f"weights above {threshold:g}"]
    for axes, heading, numbers in zip(figure.axes, headings, expected, strict=True):
        title, _, reported = axes.get_title().partition("\n")
        assert title == heading
        _, mean, _, _, std = reported.split()
        assert float(mean) == pytest.approx(numbers.mean(), abs=0.0051)
        assert float(std) == pytest.approx(numbers.std(), abs=0.0051)
        assert [label.get_text() for label in axes.get_xticklabels()] == TOKENS[:queries]
        assert axes.get_xlabel() == "target"


@pytest.mark.parametrize("queries", [1, 2, 7, 40, 600])
def test_statistics_of_any_length_are_on_the_sheet(queries: int) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(9), size=queries)
    labelled = figures.plot_statistics(weights, TOKENS[:queries], title="a text")
    assert on_the_sheet(labelled)
    bare = figures.plot_statistics(weights)
    assert on_the_sheet(bare)
    assert bare.axes[0].get_xlabel().startswith("query")
    counts = bare.axes[2].yaxis.get_majorticklocs()
    np.testing.assert_array_equal(counts, np.round(counts))


def test_a_head_of_a_map_and_a_map_with_its_labels_have_the_same_statistics() -> None:
    attention_map = FactoredAttentionMap(
        torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), 0.5, causal, 0
    )
    weights = attention_map.weights()[1, 3].double().numpy()
    expected = by_numpy(weights, 0.1)
    map_ = HeadMap.of(attention_map, TOKENS[:6], TOKENS[:6], row=1, head=3)
    for figure in (
        figures.plot_statistics(attention_map, row=1, head=3),
        figures.plot_statistics(map_),
    ):
        for axes, numbers in zip(figure.axes[:2], expected, strict=False):
            np.testing.assert_allclose(axes.lines[0].get_ydata(), numbers, atol=1e-5)
    assert figure.axes[0].get_xlabel() == "query"


@pytest.mark.parametrize(
    ("weights", "chosen", "message"),
    [
        ([[0.5, -0.1]], {}, "weights that are ≥ 0; got -0.1"),
        ([[0.5, float("nan")]], {}, "numbers that are finite"),
        ([[0.5, 0.5]], {"threshold": -1.0}, "threshold"),
        (np.ones((2, 1, 1)), {}, "got weights of 2 heads; pass head=0"),
        (HeadMap.of([[1.0]]), {"row": 0}, "target, row or head beside it"),
    ],
)
def test_statistics_of_what_are_no_weights_are_reported(
    weights: object, chosen: dict, message: str
) -> None:
    with pytest.raises(AttlasError) as error:
        figures.plot_statistics(weights, **chosen)
    assert message in str(error.value)
