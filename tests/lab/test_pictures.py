"""The figures of the lab show what the layers compute."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attlas.errors import ConfigError
from attlas.lab import real_pictures
from attlas.lab.pictures import FIGURES, write_figures
from attlas.lab.real_pictures import kept_example, pattern_heads
from attlas.layers import SinusoidalPositions


def cells(figure: Figure, index: int = 0) -> np.ndarray:
    """The numbers behind the coloured cells of a panel."""
    meshes = [axes.images or axes.collections for axes in figure.axes]
    drawn = [items[0] for items in meshes if items]
    return np.asarray(drawn[index].get_array())


def test_a_causal_mask_leaves_nothing_above_the_diagonal() -> None:
    figure = FIGURES["causal-mask"](0)
    without, masked = cells(figure, 0), cells(figure, 1)
    assert np.triu(masked, 1).max() == 0.0
    assert without[np.triu_indices(len(without), 1)].min() > 0.0
    assert masked.sum(1) == pytest.approx(np.ones(len(masked)))


def test_the_encoding_map_is_that_of_the_layer() -> None:
    layer = SinusoidalPositions(32)
    expected = layer(torch.zeros(1, 64, 32))[0].numpy()
    np.testing.assert_allclose(cells(FIGURES["encoding-map"](0)), expected, atol=1e-5)


def test_the_similarity_of_positions_depends_on_their_distance_alone() -> None:
    similarity = cells(FIGURES["encoding-similarity"](0))
    for distance in (1, 7, 30):
        diagonal = np.diagonal(similarity, distance)
        assert np.ptp(diagonal) < 1e-9


def test_the_variance_of_a_score_is_the_number_of_its_terms() -> None:
    lines = {line.get_label(): line for line in FIGURES["score-variance"](0).axes[0].lines}
    places = np.array(lines["q · k"].get_xdata(), dtype=float)
    variance = np.array(lines["q · k"].get_ydata(), dtype=float)
    scaled = np.array(lines["q · k / √d"].get_ydata(), dtype=float)
    # The variance of 4,000 draws is off by a tenth at most: five of its standard errors.
    np.testing.assert_allclose(variance, places, rtol=0.15)
    np.testing.assert_allclose(scaled, np.ones(len(places)), rtol=0.15)


def test_the_heads_of_the_four_patterns_show_them() -> None:
    trace = kept_example("patterns", "minilm").trace
    heads = {one.pattern: one for one in pattern_heads(trace)}
    assert set(heads) == {"local", "global", "syntactic", "positional"}
    assert len({(one.layer, one.head) for one in heads.values()}) == 4

    def weights(pattern: str) -> torch.Tensor:
        one = heads[pattern]
        return trace[one.layer].weights()[0, one.head]

    positional = weights("positional")
    assert positional.diagonal(-1).min() > 0.5  # layer 0, head 2 looks at the previous token
    places = torch.arange(len(positional))
    near = (places[:, None] - places).abs() <= 2
    share = (weights("local") * near).sum(-1).mean().item()
    assert share == pytest.approx(heads["local"].score, abs=1e-4)
    assert weights("global").mean(0).max().item() == pytest.approx(heads["global"].score, abs=1e-4)
    # "the" looks most at "cat", of the words: token 1 at token 2.
    assert weights("syntactic")[1, 1:-1].argmax() == 1


def test_drawn_maps_are_those_of_the_models() -> None:
    for index, (experiment, name) in enumerate(
        (("alignment", "multi30k"), ("word-order", "japanese"))
    ):
        example = kept_example(experiment, name)
        expected = example.trace[example.layer].weights()[0, example.head]
        np.testing.assert_allclose(cells(FIGURES["word-maps"](0), index), expected, atol=1e-6)


def test_a_map_that_is_missing_is_named_and_the_other_figures_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_pictures, "SHIPPED", tmp_path)
    lines: list[str] = []
    written = write_figures(tmp_path / "new", "svg", report=lines.append)
    assert len(lines) == 3
    assert all("left out" in line and "comes with attlas" in line for line in lines)
    assert [path.stem for path in written] == list(FIGURES)[:6]


def test_all_figures_are_written(tmp_path: Path) -> None:
    written = write_figures(tmp_path / "new", "svg")
    assert [path.stem for path in written] == list(FIGURES)
    assert all(path.read_text().startswith("<?xml") for path in written)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'gif'"):
        write_figures(tmp_path, "gif")
