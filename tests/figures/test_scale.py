"""Ramps, limits and formats of any matrix."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm, to_rgb
from matplotlib.figure import Figure

from attlas import figures, reference
from attlas.errors import AttlasError
from attlas.figures import HeadMap
from attlas.figures.heatmap import MOST_CELLS, Grid, pixels_of
from attlas.figures.scale import DIVERGING, SEQUENTIAL, Scale, number
from attlas.recording import DenseAttentionMap, Trace


def drawn(figure: Figure) -> list[Axes]:
    """The panels."""
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def colour_bars(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]


def cells(axes: Axes) -> object:
    """What carries the numbers, the ramp and the limits."""
    return axes.collections[0] if axes.collections else axes.images[0]


def numbers(axes: Axes) -> dict[tuple[int, int], str]:
    """The text in each cell, by row and column."""
    return {
        (round(text.get_position()[1]), round(text.get_position()[0])): text.get_text()
        for text in axes.texts
    }


def touching(figure: Figure) -> bool:
    """Whether something is off the sheet, or axes lie on each other."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    over = figure.get_suptitle()
    if over:
        boxes.append(figure._suptitle.get_window_extent(renderer))
    width, height = figure.bbox.width, figure.bbox.height
    off = any(b.x0 < 0 or b.y0 < 0 or b.x1 > width or b.y1 > height for b in boxes)
    return off or any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


# Numbers below 0.


def test_sinusoidal_encodings_have_a_ramp_with_its_middle_at_zero_and_names_of_ones_own() -> None:
    PE = reference.sinusoidal(50, 32)
    figure = figures.heatmap(PE, xlabel="dimension", ylabel="position", label="PE")
    (axes,), (bar,) = drawn(figure), colour_bars(figure)
    found = cells(axes)
    np.testing.assert_array_equal(np.asarray(found.get_array()).reshape(PE.shape), PE)
    assert found.get_cmap().name == DIVERGING
    assert (found.norm.vmin, found.norm.vmax) == (-1.0, 1.0)
    assert found.norm(0.0) == 0.5
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dimension", "position")
    assert bar.get_ylabel() == "PE"
    assert bar.get_ylim() == (-1.0, 1.0)
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == [str(i) for i in range(32)]
    assert not touching(figure)


@given(least=st.floats(-9, 9), span=st.floats(0, 9))
def test_a_diverging_ramp_reaches_as_far_down_as_up_and_others_reach_to_zero(
    least: float, span: float
) -> None:
    most = least + span
    scale = Scale.of(least, most)
    assert scale.extend == "neither"
    low, high = scale.norm.vmin, scale.norm.vmax
    assert low <= least <= most <= high
    if least < 0:
        assert scale.cmap.name == DIVERGING
        assert low == -high == -max(abs(least), abs(most))
    else:
        assert scale.cmap.name == SEQUENTIAL
        assert (low, high) == (0.0, most or 1.0)


@given(low=st.floats(-9, -0.1), high=st.floats(0.1, 9))
def test_zero_is_white_between_any_limits(low: float, high: float) -> None:
    scale = Scale.of(-1.0, 1.0, vmin=low, vmax=high)
    assert (scale.norm.vmin, scale.norm.vmax) == (low, high)
    assert scale.norm(0.0) == pytest.approx(0.5)
    assert min(to_rgb(scale.cmap(scale.norm(0.0)))) > 0.95
    assert isinstance(scale.norm, TwoSlopeNorm) == (low != -high)


def test_one_limit_of_a_diverging_ramp_gives_the_other() -> None:
    for limit in ({"vmax": 0.5}, {"vmin": -0.5}):
        norm = Scale.of(-3.0, 2.0, **limit).norm
        assert (norm.vmin, norm.vmax) == (-0.5, 0.5)


def test_a_ramp_without_a_middle_has_the_limits_of_the_numbers() -> None:
    norm = Scale.of(-3.0, 2.0, "viridis").norm
    assert (norm.vmin, norm.vmax) == (-3.0, 2.0)
    norm = Scale.of(-3.0, -2.0, "viridis").norm
    assert (norm.vmin, norm.vmax) == (-3.0, 0.0)


@pytest.mark.parametrize("cmap", sorted(colormaps))
def test_every_ramp_of_matplotlib_can_be_named(cmap: str) -> None:
    scale = Scale.of(-1.0, 3.0, cmap)
    assert scale.cmap.name == cmap
    assert scale.norm.vmin < 0 < scale.norm.vmax


def test_a_matrix_below_zero_is_pooled_to_what_is_farthest_from_it() -> None:
    given = np.random.default_rng(0).normal(size=(MOST_CELLS + 900, 3))
    grid = Grid.of(HeadMap.of(given))
    assert grid.tall == 2
    blocks = given.reshape(-1, 2, 3)
    expected = np.where(np.abs(blocks[:, 0]) > np.abs(blocks[:, 1]), blocks[:, 0], blocks[:, 1])
    np.testing.assert_array_equal(grid.cells, expected)
    (bar,) = colour_bars(figures.heatmap(given))
    assert bar.get_ylabel() == "value farthest from 0 of 2 × 1 tokens"


# What a caller chooses.


def test_a_ramp_a_format_and_limits_are_those_of_the_caller() -> None:
    given = np.random.default_rng(0).dirichlet([0.3] * 5, size=4)
    figure = figures.heatmap(
        given, list("abcde"), list("wxyz"), cmap="YlOrRd", fmt=".3f", vmin=0.1, vmax=0.6
    )
    (axes,), (bar,) = drawn(figure), colour_bars(figure)
    found = cells(axes)
    assert found.get_cmap().name == "YlOrRd"
    assert (found.norm.vmin, found.norm.vmax) == (0.1, 0.6)
    assert bar.get_ylim()[0] <= 0.1  # with the points at its ends
    expected = {place: f"{weight:.3f}" for place, weight in np.ndenumerate(given)}
    assert numbers(axes) == expected
    assert not touching(figure)


@pytest.mark.parametrize(
    ("limits", "extend"),
    [
        ({}, "neither"),
        ({"vmax": 0.5}, "max"),
        ({"vmin": 0.2}, "min"),
        ({"vmin": 0.2, "vmax": 0.5}, "both"),
    ],
)
def test_the_bar_shows_on_which_side_numbers_lie_beyond_the_limits(
    limits: dict[str, float], extend: str
) -> None:
    assert Scale.of(0.1, 0.9, **limits).extend == extend


def test_a_ramp_may_be_an_object_of_matplotlib() -> None:
    (axes,) = drawn(figures.heatmap([[0.5]], cmap=colormaps["magma"]))
    assert cells(axes).get_cmap().name == "magma"


@pytest.mark.parametrize("cmap", ["viridis", "magma", "Greys_r", "RdBu", "YlOrRd", "jet"])
def test_numbers_can_be_read_on_every_ramp(cmap: str) -> None:
    given = np.linspace(-1 if cmap == "RdBu" else 0, 1, 36).reshape(6, 6)
    (axes,) = drawn(figures.heatmap(given, cmap=cmap))
    found = cells(axes)
    assert len(axes.texts) == 36
    for text in axes.texts:
        column, row = map(round, text.get_position())
        cell = found.get_cmap()(found.norm(given[row, column]))[:3]
        dark, light = sorted([luminance(to_rgb(text.get_color())), luminance(cell)])
        assert (light + 0.05) / (dark + 0.05) >= 3.9


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.004, "0"),
        (-0.004, "0"),
        (0.07, ".07"),
        (-0.5, "-.50"),
        (0.994, ".99"),
        (0.996, "1.0"),
        (-1.04, "-1.0"),
        (9.94, "9.9"),
        (9.96, "10"),
        (-1234.0, "-1234"),
    ],
)
def test_a_number_is_short_and_right(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-1e4, 1e4))
def test_a_number_is_as_exact_as_its_digits(value: float) -> None:
    digits = 2 if abs(value) < 0.995 else 1 if abs(value) < 9.95 else 0
    assert float(number(value)) == pytest.approx(value, abs=0.51 * 10.0**-digits)


def test_cells_grow_with_the_numbers_that_the_caller_wants_to_read() -> None:
    given = np.full((3, 3), 0.123456789)
    figure = figures.heatmap(given, fmt=".9f")
    (axes,) = drawn(figure)
    assert set(numbers(axes).values()) == {"0.123456789"}
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    side = axes.get_window_extent().width / 3
    assert all(text.get_window_extent(renderer).width < side for text in axes.texts)


def test_numbers_in_a_format_that_would_be_left_out_are_an_error() -> None:
    for size in (90, MOST_CELLS + 1):
        with pytest.raises(AttlasError, match=r"numbers of the format '.3f' that fit"):
            figures.heatmap(np.ones((size, size)), fmt=".3f")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cmap": "virids"}, "got 'virids'; did you mean viridis"),
        ({"cmap": "§"}, "the name of a colormap of matplotlib"),
        ({"fmt": ".3q"}, "a format of numbers"),
        ({"fmt": "d"}, "a format of numbers"),
        ({"vmin": 1.0, "vmax": 0.5}, "expected vmin below vmax"),
        ({"vmin": 0.5, "vmax": 0.5}, "expected vmin below vmax"),
        ({"vmin": 2.0}, "expected vmin below vmax"),
        ({"vmax": float("nan")}, "vmax as a number; got nan"),
        ({"vmin": float("-inf")}, "vmin as a number; got -inf"),
    ],
)
def test_a_scale_that_is_none_is_reported(settings: dict[str, object], message: str) -> None:
    with pytest.raises(AttlasError) as error:
        figures.heatmap([[0.2, 0.8]], **settings)
    assert message in str(error.value)


def test_labels_that_do_not_fit_the_matrix_are_reported_wherever_they_stand() -> None:
    matrix = np.ones((2, 3))
    for draw in (
        lambda: figures.heatmap(matrix, ["a", "b"], ["x", "y"]),
        lambda: figures.heatmap(matrix, None, ["x"]),
        lambda: figures.bars([0.5, 0.5], ["a"]),
        lambda: figures.bar_panels({"one": [0.5, 0.5], "other": [0.2, 0.3, 0.5]}, ["a", "b"]),
        lambda: figures.plot_statistics(matrix / 3, ["x", "y", "z"]),
        lambda: figures.lines({"one": [1, 2, 3]}, ["a", "b"]),
        lambda: figures.lines({"one": [1, 2, 3], "other": [1, 2]}),
        lambda: figures.heatmaps({"one": matrix}, cmap=["Reds", "Blues"]),
    ):
        with pytest.raises(AttlasError):
            draw()


# Who looks at whom.


def test_a_map_of_one_text_has_query_and_key_on_its_axes() -> None:
    tokens, matrix = ["my", "own", "words"], np.eye(3)
    for labels in ((tokens, tokens), (tokens, list(tokens)), ()):
        (axes,) = drawn(figures.heatmap(matrix, *labels))
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    (axes,) = drawn(figures.heatmap(matrix, tokens, ["x", "y", "z"]))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "target")
    (axes,) = drawn(figures.heatmap(matrix, tokens, tokens, xlabel="source", ylabel="target"))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "target")


# Side by side.


def test_each_map_has_its_own_ramp_scale_and_bar() -> None:
    maps = {
        name: np.random.default_rng(i).random((6, 6)) * (i + 1) for i, name in enumerate("abcd")
    }
    ramps = ["Reds", "Blues", "Greens", "Purples"]
    figure = figures.heatmaps(maps, columns=2, cmap=ramps, title="four patterns")
    assert figure.get_suptitle() == "four patterns"
    assert len(colour_bars(figure)) == 4
    for axes, bar, (name, matrix), ramp in zip(
        drawn(figure), colour_bars(figure), maps.items(), ramps, strict=True
    ):
        found = cells(axes)
        assert axes.get_title() == name
        assert found.get_cmap().name == ramp
        assert (found.norm.vmin, found.norm.vmax) == (0.0, matrix.max())
        assert bar.get_ylim() == pytest.approx((0.0, matrix.max()))
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
        assert len(axes.get_yticklabels()) == 6
    tops = [axes.get_position().y1 for axes in drawn(figure)]
    assert tops[0] == pytest.approx(tops[1])
    assert tops[2] == pytest.approx(tops[3])
    assert tops[2] < tops[0]
    assert not touching(figure)


def test_maps_of_other_sizes_and_signs_beside_each_other_do_not_touch() -> None:
    noise = np.random.default_rng(0)
    maps = {
        "a very long name of a small map": noise.random((2, 2)),
        "wide": noise.normal(size=(3, 30)) * 1000,
        "high": noise.random((40, 3)),
    }
    for cmap in (None, [None, "coolwarm", "Greys"]):
        assert not touching(figures.heatmaps(maps, columns=2, cmap=cmap, title="a title"))


def test_one_ramp_is_one_scale_for_all() -> None:
    figure = figures.heatmaps({"a": [[0.2]], "b": [[-0.7]]}, cmap="PiYG")
    assert len(colour_bars(figure)) == 1
    assert {cells(axes).norm.vmax for axes in drawn(figure)} == {0.7}
    assert {cells(axes).norm.vmin for axes in drawn(figure)} == {-0.7}


# Traces that are too large to draw.


def large(layers: int, heads: int, tokens: int) -> Trace:
    trace = Trace()
    for layer in range(layers):
        weights = torch.rand(1, heads, tokens, tokens).softmax(-1)
        trace.record(f"layers.{layer}.attention", DenseAttentionMap(weights))
    return trace


def test_a_trace_too_large_to_draw_asks_for_a_layer_or_a_head() -> None:
    trace = large(6, 12, 15)
    with pytest.raises(AttlasError) as error:
        figures.plot_trace(trace)
    said = str(error.value)
    assert "a figure of at most 8,192 pixels a side; got 72 maps" in said
    assert "such as 'layers.0.attention', or a head, such as" in said
    assert "'layers.0.attention, head 0'" in said
    with pytest.raises(AttlasError, match="72 maps"):
        figures.heatmaps(figures.maps_of(trace))
    with pytest.raises(AttlasError, match="plot_trace"):
        figures.heatmaps(trace)
    with pytest.raises(AttlasError, match="72 maps"):
        figures.plot_trace(trace, columns=72)  # too wide in place of too high


def test_a_layer_a_head_and_both_of_a_large_trace_are_drawn() -> None:
    trace = large(6, 12, 2)
    for chosen, count in (
        ({"layer": "layers.0.attention"}, 12),
        ({"head": 3}, 6),
        ({"layer": "layers.5.attention, head 11"}, 1),
        ({"layer": "layers.5", "head": 11}, 1),
    ):
        figure = figures.plot_trace(trace, **chosen)
        assert len(drawn(figure)) == count
    with pytest.raises(AttlasError, match="a head from 0 to 11; got 12"):
        figures.plot_trace(trace, head=12)


@pytest.mark.parametrize(("layers", "heads", "tokens"), [(2, 4, 3), (2, 3, 30)])
def test_the_size_that_is_reported_is_about_that_of_the_figure(
    layers: int, heads: int, tokens: int
) -> None:
    maps = figures.maps_of(large(layers, heads, tokens))
    width, height = pixels_of(list(maps.values()))
    figure = figures.heatmaps(maps)
    drawn_width, drawn_height = figure.get_size_inches() * figure.dpi
    assert 0.7 < width / drawn_width < 1.2
    assert 0.7 < height / drawn_height < 1.2


def test_a_traces_figure_has_the_scale_of_the_caller() -> None:
    figure = figures.plot_trace(
        large(1, 2, 4), cmap="viridis", fmt=".3f", vmax=0.5, title="two heads"
    )
    assert figure.get_suptitle() == "two heads"
    for axes in drawn(figure):
        assert cells(axes).get_cmap().name == "viridis"
        assert cells(axes).norm.vmax == 0.5
        assert all(len(text) == 5 for text in numbers(axes).values())


# Files.


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_every_new_figure_is_the_same_bytes_each_time(suffix: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    matrix, weights = noise.normal(size=(4, 5)), noise.dirichlet(np.ones(5), size=4)

    def all_figures() -> list[Figure]:
        return [
            figures.heatmaps({"a": matrix, "b": weights}, cmap=["RdBu", "Reds"], title="שלום €"),
            figures.bar_panels({"a": weights[0], "b": weights[1]}, list("vwxyz"), title="over all"),
            figures.lines({"a": [1, 2], "b": [2, 1]}),
            figures.plot_statistics(weights, list("wxyz")),
        ]

    for number_, (one, other) in enumerate(zip(all_figures(), all_figures(), strict=True)):
        first, second = (tmp_path / f"{number_}{name}{suffix}" for name in "ab")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figures.save(one, first)
            figures.save(other, second)
        assert first.read_bytes() == second.read_bytes()
        assert len(first.read_bytes()) > 1000
