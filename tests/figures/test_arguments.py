"""What figures take beside their numbers, and what they say of the rest."""

import re

import numpy as np
import pytest
from jaxtyping import config
from matplotlib.colors import to_rgba

from attlas import figures
from attlas.errors import AttlasError
from attlas.patterns import causal

W = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]])


@pytest.fixture
def unchecked():
    """Without the tests' checker of types, which users do not have either."""
    config.update("jaxtyping_disable", True)  # whose own error would come first
    yield
    config.update("jaxtyping_disable", False)


WRONG = [
    (lambda: figures.lines([1, 2, 3]), "series by name; got a list; pass {"),
    (lambda: figures.lines({}), "at least one series to draw; got none"),
    (lambda: figures.lines({1: [2.0]}), "series by name; got the name 1"),
    (lambda: figures.heatmaps([W, W]), "maps by name; got a list; pass {"),
    (lambda: figures.heatmaps(W), "maps by name; got a ndarray"),
    (lambda: figures.bar_panels([W[0]]), "panels by name; got a list"),
    (lambda: figures.heatmap(W, vmin="a"), "vmin as a number; got 'a'; pass e.g. vmin=0, vmax=1"),
    (lambda: figures.heatmap(W, vmax=True), "vmax as a number; got True"),
    (lambda: figures.heatmaps({"a": W}, vmin=float("nan")), "vmin as a number; got nan"),
    (lambda: figures.bars(W[0], vmax="a"), "vmax as a number; got 'a'"),
    (lambda: figures.lines({"a": [1.0]}, vmin="a"), "vmin as a number; got 'a'"),
    (lambda: figures.heatmap(W, vmin=1, vmax=0), "vmin below vmax; got vmin = 1 and vmax = 0"),
    (lambda: figures.bars(W[0], vmin=2), "vmin below vmax, which follow the numbers unless"),
    (lambda: figures.lines({"a": [1.0, 2.0]}, vmax=0), "vmin below vmax, which follow the numbers"),
    (lambda: figures.bars(W[0], color="blu"), "a colour of matplotlib; got 'blu'"),
    (lambda: figures.lines({"a": [1.0]}, fmt="d"), "a format of numbers"),
    (lambda: figures.heatmaps({"a": W}, columns="a"), "at least one column; got 'a'"),
    (lambda: figures.bar_panels({"a": W[0]}, columns=1.5), "at least one column; got 1.5"),
    (lambda: figures.heatmaps({"a": W}, cmap=3), "a colormap of matplotlib, or a list"),
    (lambda: figures.heatmap(W, title=3), "title as a text; got 3"),
    (lambda: figures.bars(W[0], query=3), "query as a text; got 3"),
    (lambda: figures.lines({"a": [1.0]}, xlabel=3), "xlabel as a text; got 3"),
    (lambda: figures.heatmap(W, source=5), "the source tokens as a list of strings; got 5"),
    (lambda: figures.heatmap(W[None], row="a"), "a row as a whole number; got 'a'"),
    (lambda: figures.plot_pattern("causal", 3), "a pattern, such as causal or window(3)"),
    (lambda: figures.plot_pattern(causal, "a"), "at least one query; got 'a'"),
    (lambda: figures.plot_statistics(W, threshold="a"), "a threshold from 0 to 1; got 'a'"),
    (lambda: figures.plot_trace(W), "a trace, as attlas.observe gives; got a ndarray"),
    (lambda: figures.maps_of(W), "a trace, as attlas.observe gives; got a ndarray"),
    (lambda: figures.plot_history(3), "the records of a watched training; got a int"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("call", "text"), WRONG)
def test_a_mistake_gets_a_sentence(call, text: str) -> None:
    with pytest.raises(AttlasError, match=re.escape(text)):
        call()


def test_bars_have_the_limits_and_the_colour_of_the_caller() -> None:
    figure = figures.bar_panels(
        {"a": W[0], "b": W[1]}, vmin=0.0, vmax=1.0, color="tab:red", label="share"
    )
    for axes in figure.axes:
        assert axes.get_ylim() == (0.0, 1.0)
        assert {bar.get_facecolor() for bar in axes.patches} == {to_rgba("tab:red")}
    assert figure.axes[0].get_ylabel() == "share"


def test_a_limit_that_is_left_out_follows_the_numbers() -> None:
    (free,) = figures.bars(W[0]).axes
    (axes,) = figures.bars(W[0], vmin=-1.0).axes
    assert axes.get_ylim() == (-1.0, free.get_ylim()[1])


def test_lines_have_the_limits_and_the_format_of_the_caller() -> None:
    (axes,) = figures.lines({"a": [0.1, 0.2]}, vmin=0.0, vmax=1.0, fmt=".0%").axes
    assert axes.get_ylim() == (0.0, 1.0)
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert "20%" in labels
    (free,) = figures.lines({"a": [0.1, 0.2]}).axes
    (half,) = figures.lines({"a": [0.1, 0.2]}, vmin=0.0).axes
    assert half.get_ylim() == (0.0, free.get_ylim()[1])
