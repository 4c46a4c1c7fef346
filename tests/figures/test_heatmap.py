"""Heatmaps: what is drawn is what was given."""

import doctest
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import config
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attlas import figures, observe
from attlas.errors import AttlasError
from attlas.figures import HeadMap
from attlas.figures.heatmap import MOST_CELLS, Grid
from attlas.patterns import causal
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.warm_processes import python

heatmap_module = sys.modules["attlas.figures.heatmap"]  # the function has its name in the package

TOKENS = [f"t{i}" for i in range(5000)]


def weights(queries: int, keys: int, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).exponential(size=(queries, keys)) ** 3
    return scores / scores.sum(1, keepdims=True)


def heat(weights: np.ndarray) -> Figure:
    queries, keys = weights.shape
    return figures.heatmap(weights, TOKENS[:keys], TOKENS[:queries])


def panels(figure: Figure) -> list[Axes]:
    """All axes but the colour bar, which comes last."""
    return figure.axes[:-1]


def inside(figure: Figure) -> bool:
    """Whether everything that is drawn is on the sheet."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    return all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height
        for box in boxes
    )


def test_slots_are_across_the_top_and_queries_go_down() -> None:
    (axes,) = panels(figures.heatmap(weights(2, 3), ["a", "b", "c"], ["x", "y"]))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    assert axes.xaxis.get_ticks_position() == "top"
    assert axes.yaxis_inverted()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "target")


def test_every_cell_holds_its_number_on_a_colour_that_lets_it_be_read() -> None:
    given = weights(4, 5)
    (axes,) = panels(heat(given))
    numbers = {tuple(map(int, text.get_position())): text for text in axes.texts}
    assert len(numbers) == given.size
    for (key, query), text in numbers.items():
        weight = given[query, key]
        assert float(text.get_text()) == pytest.approx(weight, abs=0.0051 if weight < 0.995 else 1)
        cell = colormaps["Blues"](weight / given.max())[:3]
        assert contrast(to_rgb(text.get_color()), cell) >= 4.4


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """WCAG 2.1's contrast ratio."""

    def luminance(colour: tuple[float, ...]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 3), (30, 60), (7, 300), (400, 90)])
def test_everything_is_on_the_sheet_and_no_label_lies_on_another(shape: tuple[int, int]) -> None:
    figure = heat(weights(*shape))
    assert inside(figure)
    (axes,) = panels(figure)
    renderer = figure.canvas.get_renderer()
    for labels, least in ((axes.get_xticklabels(), "x0"), (axes.get_yticklabels(), "y0")):
        places = sorted(getattr(label.get_window_extent(renderer), least) for label in labels)
        heights = 0.9 * labels[0].get_fontsize() / 72 * figure.dpi
        assert all(b - a >= heights for a, b in pairwise(places))


def test_numbers_are_left_out_where_they_do_not_fit() -> None:
    assert panels(heat(weights(8, 8)))[0].texts
    assert not panels(heat(weights(100, 100)))[0].texts


def test_thinned_labels_say_so() -> None:
    (axes,) = panels(heat(weights(90, 300)))
    named = axes.get_xticklabels()
    assert axes.get_xlabel() == f"source · every {300 // len(named)}th of 300 is named"
    for label in named:
        assert label.get_text() == TOKENS[round(label.get_position()[0])]


def test_the_scale_goes_from_zero_to_the_largest_weight() -> None:
    given = weights(3, 4)
    figure = heat(given)
    assert figure.axes[-1].get_ylim() == pytest.approx((0, given.max()))


def test_a_map_of_zeros_can_be_drawn() -> None:
    assert inside(heat(np.zeros((2, 2))))


def test_a_title_stands_on_the_sheet_above_the_labels() -> None:
    figure = figures.heatmap(weights(2, 2), ["a" * 20, "b"], ["c", "d"], title="a title")
    assert inside(figure)
    (axes,) = panels(figure)
    renderer = figure.canvas.get_renderer()
    title = axes.title.get_window_extent(renderer)
    assert axes.title.get_text() == "a title"
    assert title.y0 >= axes.xaxis.get_tightbbox(renderer).y1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_readings_tensors_arrays_and_lists_are_the_same_map(dtype: torch.dtype) -> None:
    tensor = torch.tensor(weights(2, 3)).to(dtype)
    source, target = ["a", "b", "c"], ["x", "y"]
    forms = [
        tensor.requires_grad_(),
        tensor[None, None],
        DenseAttentionMap(tensor[None, None].detach()),
        tensor.detach().double().numpy(),
        tensor.tolist(),
    ]
    expected = tensor.detach().double().numpy()
    for form in forms:
        np.testing.assert_array_equal(HeadMap.of(form, source, target).rows(0, 2), expected)


def test_a_row_and_a_head_are_chosen_by_their_numbers() -> None:
    given = torch.rand(2, 3, 4, 5)
    map_ = HeadMap.of(given, TOKENS[:5], TOKENS[:4], row=1, head=2)
    np.testing.assert_allclose(map_.rows(0, 4), given[1, 2])


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_a_cell_of_a_short_map_is_its_weight(queries: int, keys: int, seed: int) -> None:
    given = weights(queries, keys, seed)
    grid = Grid.of(HeadMap.of(given, TOKENS[:keys], TOKENS[:queries]))
    assert not grid.is_pooled
    np.testing.assert_array_equal(grid.cells, given)


@pytest.mark.parametrize("shape", [(MOST_CELLS, MOST_CELLS + 1), (2500, 3), (1500, 2049)])
def test_a_cell_of_a_long_map_is_the_largest_of_its_weights(shape: tuple[int, int]) -> None:
    given = weights(*shape)
    grid = Grid.of(HeadMap.of(given, TOKENS[: shape[1]], TOKENS[: shape[0]]))
    assert max(grid.cells.shape) <= MOST_CELLS
    for (row, column), cell in np.ndenumerate(grid.cells[:20, :20]):
        block = given[
            row * grid.tall : (row + 1) * grid.tall, column * grid.wide : (column + 1) * grid.wide
        ]
        assert cell == block.max()
    assert (
        grid.cells[-1, -1]
        == given[(len(grid.cells) - 1) * grid.tall :, (grid.cells.shape[1] - 1) * grid.wide :].max()
    )


def test_a_long_map_says_what_a_cell_stands_for() -> None:
    figure = heat(weights(5, MOST_CELLS * 2))
    assert figure.axes[-1].get_ylabel() == "largest attention weight of 1 × 2 tokens"
    assert inside(figure)


def test_a_long_reading_is_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 6000
    attention_map = FactoredAttentionMap(
        torch.randn(1, 1, length, 4), torch.randn(1, 1, length, 4), 0.5, causal, 0
    )
    held: list[int] = []
    rows = FactoredAttentionMap.rows

    def counted(self: FactoredAttentionMap, start: int, stop: int) -> torch.Tensor:
        held.append((stop - start) * length)
        return rows(self, start, stop)

    monkeypatch.setattr(FactoredAttentionMap, "rows", counted)
    tokens = [str(i) for i in range(length)]
    Grid.of(HeadMap.of(attention_map, tokens, tokens))
    assert sum(held) == length * length
    assert max(held) < length * length / 6


@pytest.fixture
def few_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure of more than a million weights is a sample."""
    monkeypatch.setattr(heatmap_module, "MOST_READ", 1 << 20)


@pytest.mark.parametrize("shape", [(2500, 600), (1025, 2049), (3073, 1)])
def test_a_sample_has_the_largest_weight_of_the_query_in_the_middle(
    shape: tuple[int, int],
) -> None:
    given = weights(*shape)
    map_ = HeadMap.of(given, TOKENS[: shape[1]], TOKENS[: shape[0]])
    grid, whole = Grid.of(map_, sampled=True), Grid.of(map_)
    assert (grid.sampled, whole.sampled) == (True, False)
    assert (grid.tall, grid.wide, grid.cells.shape) == (whole.tall, whole.wide, whole.cells.shape)
    assert (grid.cells <= whole.cells).all()
    for row, cells in enumerate(grid.cells):
        low, high = row * grid.tall, min((row + 1) * grid.tall, shape[0])
        query = given[(low + high) // 2]
        keys = range(0, shape[1], grid.wide)
        assert cells.tolist() == [query[key : key + grid.wide].max() for key in keys]


def test_a_map_of_few_queries_is_read_whole() -> None:
    map_ = HeadMap.of(weights(MOST_CELLS, 3000), TOKENS[:3000], TOKENS[:MOST_CELLS])
    grid = Grid.of(map_, sampled=True)
    assert not grid.sampled
    np.testing.assert_array_equal(grid.cells, Grid.of(map_).cells)


def test_a_figure_of_many_weights_is_a_sample_and_says_so(few_read: None) -> None:
    given = weights(2048, 1024)
    with pytest.warns(figures.SampledMaps, match="one query of 2, .* of up to 1 keys; .*--exact"):
        sample = heat(given)
    label = "a sample: largest attention weight of 1 of 2 queries × 1 keys"
    assert sample.axes[-1].get_ylabel() == label
    assert inside(sample)
    with warnings.catch_warnings():
        warnings.simplefilter("error", figures.SampledMaps)
        exact = figures.heatmap(given, exact=True)
        small = heat(weights(1024, 1024))
    assert exact.axes[-1].get_ylabel() == "largest attention weight of 2 × 1 tokens"
    assert small.axes[-1].get_ylabel() == "attention weight"
    (image,), (whole,) = sample.axes[0].images, exact.axes[0].images
    np.testing.assert_array_equal(image.get_array(), given[1::2])
    np.testing.assert_array_equal(whole.get_array(), np.maximum(given[::2], given[1::2]))


def test_all_maps_of_a_figure_count_for_a_sample(few_read: None) -> None:
    maps = {"long": weights(2048, 500), "short": weights(700, 500)}
    with pytest.warns(figures.SampledMaps):
        figure = figures.heatmaps(maps)
    assert figure.axes[-1].get_ylabel() == "a sample: largest attention weight read of a cell"
    with warnings.catch_warnings():
        warnings.simplefilter("error", figures.SampledMaps)
        figures.heatmaps({"long": maps["long"]})
        figures.heatmaps(maps, exact=True)


def test_a_sample_of_a_long_reading_computes_few_rows(
    few_read: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = 6000
    attention_map = FactoredAttentionMap(
        torch.randn(1, 1, length, 4), torch.randn(1, 1, length, 4), 0.5, causal, 0
    )
    read: list[int] = []
    rows = FactoredAttentionMap.rows

    def counted(self: FactoredAttentionMap, start: int, stop: int) -> torch.Tensor:
        read.append(stop - start)
        return rows(self, start, stop)

    monkeypatch.setattr(FactoredAttentionMap, "rows", counted)
    with pytest.warns(figures.SampledMaps):
        figures.heatmap(attention_map)
    assert sum(read) == length / 6


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("length", [3, 3000])
def test_a_number_that_is_not_finite_is_an_error_of_any_map(number: float, length: int) -> None:
    given = weights(length, 2)
    given[length // 2, 1] = number
    with pytest.raises(AttlasError, match=f"numbers that are finite; got {number} among them"):
        figures.heatmap(given)


def test_maps_side_by_side_share_one_scale_and_name_a_shared_target_once() -> None:
    first, second = weights(3, 4), weights(3, 4) / 2
    source, target = TOKENS[:4], TOKENS[:3]
    maps = {"one": HeadMap.of(first, source, target), "other": HeadMap.of(second, source, target)}
    figure = figures.heatmaps(maps)
    left, right, bar = figure.axes
    assert [left.get_title(), right.get_title()] == ["one", "other"]
    assert len(left.get_yticklabels()) == 3
    assert not right.get_yticklabels()
    assert bar.get_ylim() == pytest.approx((0, first.max()))
    assert {c.norm.vmax for axes in (left, right) for c in axes.collections} == {first.max()}
    assert inside(figure)


def test_maps_with_other_targets_name_them_all() -> None:
    maps = {
        "one": HeadMap.of(weights(3, 4), TOKENS[:4], TOKENS[:3]),
        "other": HeadMap.of(weights(2, 5), TOKENS[:5], ["x", "y"]),
    }
    left, right, _ = figures.heatmaps(maps).axes
    assert (len(left.get_yticklabels()), len(right.get_yticklabels())) == (3, 2)


@pytest.mark.parametrize(("count", "columns"), [(1, 4), (3, 2), (5, 3), (9, 4)])
def test_maps_side_by_side_do_not_touch(count: int, columns: int) -> None:
    maps = {f"map {i}": HeadMap.of(weights(3, 6), TOKENS[:6], TOKENS[:3]) for i in range(count)}
    figure = figures.heatmaps(maps, columns=columns)
    assert inside(figure)
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_titles_of_a_row_stand_on_one_line_over_labels_that_lie_and_that_lean() -> None:
    flat, leaning = ["a", "b"], ["internationalisation", "extraordinary"]
    maps = {
        "flat": HeadMap.of(weights(2, 2), flat, ["x", "y"]),
        "leaning": HeadMap.of(weights(5, 2), leaning, TOKENS[:5]),
        "below": HeadMap.of(weights(2, 2), flat, ["x", "y"]),
    }
    figure = figures.heatmaps(maps, columns=2)
    renderer = figure.canvas.get_renderer()
    boxes = [axes.title.get_window_extent(renderer) for axes in figure.axes[:3]]
    labels = [axes.get_xticklabels()[0] for axes in figure.axes[:2]]
    assert [label.get_rotation() for label in labels] == [0, 45]
    baselines = [
        axes.title.get_transform().transform(axes.title.get_position())[1]
        for axes in figure.axes[:3]
    ]
    assert baselines[0] == pytest.approx(baselines[1])
    assert baselines[2] < baselines[0]
    for axes, box in zip(figure.axes, boxes, strict=False):
        assert box.y0 > axes.xaxis.label.get_window_extent(renderer).y1
    assert inside(figure)


def test_every_head_of_a_trace_is_a_map() -> None:
    trace = Trace()
    trace.record("encoder", DenseAttentionMap(torch.rand(2, 2, 3, 3)))
    trace.record("decoder", DenseAttentionMap(torch.rand(2, 1, 2, 3)))
    trace.record("decoder", DenseAttentionMap(torch.rand(2, 1, 1, 5)))
    trace.label([["a", "b", "c"]] * 2, [["x", "y"]] * 2)
    maps = figures.maps_of(trace, row=1)
    assert list(maps) == [
        "encoder, head 0",
        "encoder, head 1",
        "decoder, call 0",
        "decoder, call 1",
    ]
    assert maps["encoder, head 1"].target == maps["encoder, head 1"].source == ("a", "b", "c")
    assert maps["decoder, call 0"].target == ("x", "y")
    assert maps["decoder, call 1"].source == ("0", "1", "2", "3", "4")
    with pytest.raises(AttlasError, match="expected a batch row from 0 to 1; got 2"):
        figures.maps_of(trace, row=2)


def test_who_looks_at_another_has_source_and_target_and_who_looks_at_itself_key_and_query() -> None:
    trace = Trace()
    for layer, queries, keys in (("across", 2, 3), ("source", 3, 3), ("target", 2, 2)):
        trace.record(layer, DenseAttentionMap(torch.rand(1, 1, queries, keys)))
    trace.record("pooled", DenseAttentionMap(torch.rand(1, 1, 1, 3)))
    trace.record("alone", DenseAttentionMap(torch.rand(1, 1, 4, 5)))
    source, target = [["a", "b", "c"]], [["x", "y"]]
    trace.label(source, target)
    trace.label_layer("target", target, target)  # "source" is known by its shape
    trace.label_layer("pooled", source, [["text"]])
    drawn = panels(figures.plot_trace(trace))
    named = {axes.get_title(): (axes.get_xlabel(), axes.get_ylabel()) for axes in drawn}
    within = ("key", "query")
    assert named.pop("across") == ("source", "target")
    assert named == dict.fromkeys(["source", "target", "pooled", "alone"], within)


def test_where_source_and_target_are_as_long_each_layer_has_its_own_tokens() -> None:
    model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    source, target = torch.randn(1, 3, 8), torch.randn(1, 3, 8)
    hidden = torch.nn.Transformer.generate_square_subsequent_mask(3)
    with observe(model) as trace:
        model(source, target, tgt_mask=hidden)
    trace.label([["a", "b", "c"]], [["x", "y", "z"]])
    found = {name: (m.source, m.target, m.axes) for name, m in figures.maps_of(trace).items()}
    read, written = ("a", "b", "c"), ("x", "y", "z")
    assert found["encoder.layers.0.self_attn, head 0"] == (read, read, ("key", "query"))
    assert found["decoder.layers.0.self_attn, head 0"] == (written, written, ("key", "query"))
    across = found["decoder.layers.0.multihead_attn, head 0"]
    assert across == (read, written, ("source", "target"))
    trace.label([["a", "b", "c"]], [])  # and never those of another text
    found = {name: (m.source, m.target, m.axes) for name, m in figures.maps_of(trace).items()}
    across = found["decoder.layers.0.multihead_attn, head 0"]
    assert across == (read, ("0", "1", "2"), ("source", "target"))


def test_queries_of_one_name_and_other_axes_are_named_again() -> None:
    trace = Trace()
    trace.record("across", DenseAttentionMap(torch.rand(1, 1, 2, 3)))
    trace.record("within", DenseAttentionMap(torch.rand(1, 1, 2, 2)))
    trace.label([["a", "b", "c"]], [["x", "y"]])
    across, within = panels(figures.plot_trace(trace))
    assert [axes.get_ylabel() for axes in (across, within)] == ["target", "query"]
    assert len(within.get_yticklabels()) == 2


def test_a_trace_is_drawn_whole_or_a_layer_of_it() -> None:
    trace = Trace()
    trace.record("encoder", DenseAttentionMap(torch.rand(2, 2, 3, 3)))
    trace.record("decoder", DenseAttentionMap(torch.rand(2, 1, 2, 3)))
    titles = [axes.get_title() for axes in panels(figures.plot_trace(trace))]
    assert (
        titles == list(figures.maps_of(trace)) == ["encoder, head 0", "encoder, head 1", "decoder"]
    )
    layer = panels(figures.plot_trace(trace, layer="encoder", row=1))
    assert [axes.get_title() for axes in layer] == ["encoder, head 0", "encoder, head 1"]
    (alone,) = panels(figures.plot_trace(trace, layer="encoder, head 1"))
    assert alone.get_title() == ""
    with pytest.raises(AttlasError, match=r"'nose'; choose from: encoder, head 0; .*; decoder"):
        figures.plot_trace(trace, layer="nose")
    with pytest.raises(AttlasError, match="at least one map"):
        figures.plot_trace(Trace())


def test_the_example_of_a_traces_figure_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(
        figures.plot_trace, "plot_trace", globs={}
    )
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
    assert (tmp_path / "maps.png").stat().st_size > 0


TRACE_AS_MAP = """
import torch
from attlas import figures, observe
from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap, Trace

trace = Trace()
trace.record("encoder", DenseAttentionMap(torch.rand(1, 2, 3, 3)))
try:
    figures.heatmap(trace, ["a"] * 3, ["a"] * 3)
except AttlasError as error:
    print(error)
"""


def test_a_trace_in_place_of_a_map_is_reported_how_to_be_drawn() -> None:
    # By itself: the tests run with a checker of types, which would speak first.
    reported = python(TRACE_AS_MAP).stdout
    assert reported.startswith("expected the weights of one map; got a whole trace; ")
    assert "attlas.figures.plot_trace(trace)" in reported
    assert "trace['encoder']" in reported


@pytest.mark.parametrize(
    ("given", "source", "target", "message"),
    [
        (np.ones((2, 3)), ["a"], ["x", "y"], "expected 3 source tokens, one to each key; got 1"),
        (np.ones((2, 3)), ["a"] * 3, ["x"], "expected 2 target tokens, one to each query; got 1"),
        (np.ones((2, 3)), "abc", ["x", "y"], "expected the source tokens as a list of strings"),
        (np.ones((2, 1, 2, 3)), ["a"] * 3, ["x"] * 2, "got weights of 2 batch rows; pass row=0"),
        (np.ones((4, 2, 3)), ["a"] * 3, ["x"] * 2, "got weights of 4 heads; pass head=0 … 3"),
        (np.ones((0, 3)), ["a"] * 3, [], "expected a map of at least one query and one key"),
        (np.array(1.0), [], [], "expected weights shaped"),
        (np.ones((1, 1, 1, 1, 1)), ["a"], ["x"], "expected weights shaped"),
        (np.array([["a"]]), ["a"], ["x"], "expected weights as numbers"),
        ([[1.0, 2.0], [3.0]], ["a", "b"], ["x", "y"], "expected weights as numbers"),
        (torch.ones(1, 1, dtype=torch.complex64), ["a"], ["x"], "expected weights shaped"),
        (np.array([[0.5, np.nan]]), ["a", "b"], ["x"], "numbers that are finite; got nan"),
        (np.array([[0.5, -np.inf]]), ["a", "b"], ["x"], "numbers that are finite; got -inf"),
    ],
)
def test_what_does_not_fit_is_reported(
    given: object, source: list[str], target: list[str], message: str
) -> None:
    with pytest.raises(AttlasError) as error:
        figures.heatmap(given, source, target)
    assert message in str(error.value)


def test_a_row_or_head_that_is_not_there_is_reported() -> None:
    with pytest.raises(AttlasError, match="expected a head from 0 to 1; got -1"):
        figures.heatmap(np.ones((2, 1, 1)), ["a"], ["x"], head=-1)


def test_nothing_side_by_side_is_reported() -> None:
    with pytest.raises(AttlasError, match="at least one map"):
        figures.heatmaps({})
    with pytest.raises(AttlasError, match="at least one column"):
        figures.heatmaps({"a": HeadMap.of([[1.0]], ["a"], ["x"])}, columns=0)


def test_a_map_asks_for_no_other_head_and_no_other_text(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    attention_map = FactoredAttentionMap(
        torch.randn(3, 4, 6, 8), torch.randn(3, 2, 6, 8), 0.5, causal, 0
    )
    requested = []
    rows = FactoredAttentionMap.rows

    def listed(self: FactoredAttentionMap, start: int, stop: int) -> torch.Tensor:
        requested.append(self.shape[:2])
        return rows(self, start, stop)

    monkeypatch.setattr(FactoredAttentionMap, "rows", listed)
    for each in (attention_map, DenseAttentionMap(attention_map.weights())):
        drawn = HeadMap.of(each, TOKENS[:6], TOKENS[:6], row=2, head=3).rows(1, 5)
        np.testing.assert_allclose(drawn, attention_map.weights()[2, 3, 1:5], atol=1e-6)
    assert requested.count((1, 1)) == 1


def test_a_name_that_is_whole_is_not_the_beginning_of_another() -> None:
    trace = Trace()
    for number in (1, 10, 11):
        trace.record(f"layers.{number}", DenseAttentionMap(torch.rand(1, 12, 2, 2)))
    assert list(figures.maps_of(trace, layer="layers.1, head 1")) == ["layers.1, head 1"]
    assert list(figures.maps_of(trace, layer="layers.1")) == [
        f"layers.1, head {head}" for head in range(12)
    ]
    assert len(figures.maps_of(trace, layer="layers.1, head")) == 12
    assert len(figures.maps_of(trace, layer="layers")) == len(figures.maps_of(trace)) == 36
    assert len(figures.maps_of(trace, layer="lay")) == 36  # no part ends here
    with pytest.raises(AttlasError, match=r"head 11; … \(36 in all\)$"):
        figures.maps_of(trace, layer="nose")


def test_tokens_that_leave_the_padding_of_their_row_unnamed_are_reported() -> None:
    trace = Trace()
    trace.record("encoder", DenseAttentionMap(torch.rand(2, 1, 3, 3)))
    trace.label([["a", "b", "c"], ["a", "b"]])
    assert figures.maps_of(trace, row=0)["encoder"].source == ("a", "b", "c")
    reported = "row 1 has 2 tokens for 3 places"
    with pytest.warns(figures.UnmatchedTokens, match=reported):
        assert figures.maps_of(trace, row=1)["encoder"].source == ("0", "1", "2")
    trace.label([["a", "b", "c"], []])  # nobody meant to name these
    assert figures.maps_of(trace, row=1)["encoder"].source == ("0", "1", "2")


def test_tokens_of_other_maps_than_those_drawn_are_not_reported() -> None:
    trace = Trace()
    for layer, queries, keys in (("encoder", 7, 7), ("across", 5, 7)):
        trace.record(layer, DenseAttentionMap(torch.rand(2, 1, queries, keys)))
    trace.set_kind("across", cross_attention=True)
    trace.label([list("abcdefg"), list("abcde")], [list("wxyz"), list("vwxyz")])
    with pytest.warns(figures.UnmatchedTokens) as warned:
        figures.maps_of(trace, row=0)
    assert [str(one.message)[:32] for one in warned] == ["row 0 has 4 tokens for 5 places,"]
    figures.maps_of(trace, row=0, layer="encoder")  # a warning is an error here


def test_calls_of_one_query_over_more_and_more_slots_are_not_of_padding() -> None:
    trace = Trace()
    for keys in range(1, 6):
        trace.record("decoder", DenseAttentionMap(torch.rand(2, 1, 1, keys)))
    trace.label([list("abcde"), list("abc")])
    # The checker of types reads a value of each mapping, and calls that were not joined have none.
    config.update("jaxtyping_disable", True)
    assert len(figures.maps_of(trace, row=0)) == 5


def test_tokens_of_another_layer_are_not_reported() -> None:
    trace = Trace()
    for layer in ("a", "b"):
        trace.record(layer, DenseAttentionMap(torch.rand(2, 1, 3, 3)))
    trace.label_layer("a", [list("abc"), ["x"]], [list("abc"), ["x"]])
    assert figures.maps_of(trace, 1, layer="b")["b"].source == ("0", "1", "2")
    with pytest.warns(figures.UnmatchedTokens) as warned:
        figures.maps_of(trace, 1, layer="a")
    assert len(warned) == 1


def test_a_row_that_is_padded_is_not_named_by_the_other_side_that_is_as_long() -> None:
    trace = Trace()
    trace.record("encoder", DenseAttentionMap(torch.rand(2, 1, 5, 5)))
    trace.set_kind("encoder", cross_attention=False)
    trace.label([list("abcd"), list("abcde")], [list("vwxyz"), list("vwx")])
    with pytest.warns(figures.UnmatchedTokens, match="row 0 has 4 tokens for 5 places"):
        assert figures.maps_of(trace, 0)["encoder"].source == ("0", "1", "2", "3", "4")
    trace.record("decoder", FactoredAttentionMap(*torch.rand(2, 2, 1, 5, 4), 1.0, causal, 0))
    trace.set_kind("decoder", cross_attention=False)
    with pytest.warns(figures.UnmatchedTokens):  # only a decoder never looks ahead
        drawn = figures.maps_of(trace, 0)
    assert drawn["decoder"].source == ("v", "w", "x", "y", "z")
