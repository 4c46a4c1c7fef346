"""The weights of a query over the image of a trace."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attlas.errors import AttlasError
from attlas.figures import plot_image, save
from attlas.recording import DenseAttentionMap, Trace

GREY = np.array([0.2126, 0.7152, 0.0722])


def pixels(number: int) -> np.ndarray:
    generator = np.random.default_rng(number)
    return generator.integers(0, 256, (10, 20, 3), dtype=np.uint8)


def made() -> Trace:
    """Two layers of two heads, two rows and a grid of 2 × 3 behind one place; one without."""
    generator = torch.Generator().manual_seed(1)
    trace = Trace()
    for name, size in (("a", 7), ("b", 7), ("c", 4)):
        weights = torch.randn(2, 2, size, size, generator=generator).softmax(-1)
        trace.record(name, DenseAttentionMap(weights, query_offset=None))
        trace.set_kind(name, cross_attention=False)
    trace.label_image([pixels(0), pixels(1)], (2, 3), first=1)
    return trace


def shown(**given: Any) -> tuple[list[np.ndarray], str]:
    """What is drawn: the image, the image in grey, and the weights; and the title."""
    figure = plot_image(made(), **given)
    drawn = [one for axes in figure.axes for one in axes.get_images()]
    assert all(one.get_interpolation() == "nearest" for one in drawn)
    title = figure.get_suptitle()
    return [np.asarray(one.get_array()) for one in drawn], title


@pytest.mark.parametrize("head", [None, 0, 1])
def test_the_cells_are_the_weights_of_the_patches(head: int | None) -> None:
    (image, grey, cells), title = shown(query=2, head=head, layer="a", row=1)
    np.testing.assert_array_equal(image, pixels(1))
    np.testing.assert_allclose(grey, pixels(1) @ GREY)
    weights = made()["a"].weights()[1, :, 2].double()
    row = weights.mean(0) if head is None else weights[head]
    np.testing.assert_allclose(cells, row[1:].reshape(2, 3))
    looked = "mean of all heads" if head is None else f"head {head}"
    assert title == f"a, {looked}, query patch 0,1, {float(row[1:].sum()):.0%} on patches"


def test_the_last_layer_with_an_image_is_drawn_and_an_own_row_in_place_of_its_weights() -> None:
    (_, _, cells), title = shown(title=None)
    np.testing.assert_allclose(cells, made()["b"].weights()[0, :, 0, 1:].mean(0).reshape(2, 3))
    assert title.startswith("b, mean of all heads, query 0, ")
    (_, _, cells), title = shown(weights=[4.0, 0, 1, 2, 3, 4, 5], title="a rollout")
    np.testing.assert_array_equal(cells, [[0, 1, 2], [3, 4, 5]])
    assert title == "a rollout"
    (_, _, cells), title = shown(weights=torch.zeros(7))
    assert title == "b, weights of your own"
    assert not cells.any()


def test_the_cells_lie_on_their_part_of_the_image(tmp_path: Path) -> None:
    figure = plot_image(made(), vmin=0.0, vmax=1.0, cmap="viridis")
    over = figure.axes[1].get_images()
    assert [tuple(one.get_extent()) for one in over] == [(0, 20, 10, 0)] * 2
    assert over[1].norm.vmax == 1
    save(figure, tmp_path / "one.png")
    save(plot_image(made(), vmin=0.0, vmax=1.0, cmap="viridis"), tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_long_query_axis_or_a_query_of_a_text_is_named_by_its_place() -> None:
    trace = Trace()
    trace.record("cross", DenseAttentionMap(torch.full((1, 1, 3, 6), 1 / 6), query_offset=None))
    trace.label_image(pixels(0), (2, 3))
    assert plot_image(trace, 2).get_suptitle() == (
        "cross, mean of all heads, query 2, 100% on patches"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layer": "c"}, r"one of the layers with an image, \['a', 'b'\]; got 'c'"),
        ({"query": 7}, "a query from 0 to 6; got 7"),
        ({"query": -1}, "a query from 0 to 6; got -1"),
        ({"head": 2}, "a head from 0 to 1; got 2"),
        ({"row": 2}, "a row from 0 to 1; got 2"),
        ({"call": 1}, "a call from 0 to 0; got 1"),
        ({"weights": torch.zeros(6)}, r"a finite number for each of 7 keys; got shape \(6,\)"),
        ({"weights": torch.full((7,), torch.nan)}, "a finite number for each"),
        ({"cmap": "no map"}, "colormap"),
        ({"vmin": 1.0, "vmax": 0.0}, "vmin below vmax"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        plot_image(made(), **given)


def test_a_trace_without_images_says_how_it_gets_some() -> None:
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.ones(1, 1, 1, 1), query_offset=None))
    with pytest.raises(AttlasError, match=r"label it: trace\.label_image"):
        plot_image(trace)
