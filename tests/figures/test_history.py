"""Heads over time: each cell is the number of the watch file."""

import math

import numpy as np
import pytest

from attlas import figures
from attlas.errors import AttlasError
from attlas.monitoring import Alarm, HeadStatistics
from attlas.monitoring.history import Reading


def records():
    """Two layers of two heads at three steps. One value is not finite; one head has an alarm."""
    found = []
    for number, step in enumerate((1, 50, 100)):
        heads = [
            HeadStatistics(path, head, 9, entropy=number + head / 10, max_logit=None)
            for path in ("encoder", "decoder")
            for head in (0, 1)
        ]
        alarms = ()
        if step == 50:
            heads[3] = HeadStatistics("decoder", 1, 9, entropy=math.nan, nonfinite=9)
            alarms = (Alarm(50, "logit_growth", "encoder", 1, "max_logit", 120.0, 100.0),)
        found.append(Reading(step, heads, alarms).record())
    return found


def test_each_cell_is_the_statistic_of_a_head_at_a_step():
    axes = figures.plot_history(records(), "entropy").axes[0]
    cells = axes.images[0].get_array()
    expected = np.array([[0, 1, 2], [0.1, 1.1, 2.1], [0, 1, 2], [0.1, math.nan, 2.1]])
    np.testing.assert_allclose(cells.filled(math.nan), expected)
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "encoder · 0", "encoder · 1", "decoder · 0", "decoder · 1",
    ]  # fmt: skip
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "50", "100"]
    assert axes.collections[0].get_offsets().tolist() == [[1.0, 1.0]]  # the alarm


def test_a_layer_can_be_chosen():
    axes = figures.plot_history(records(), "entropy", layer="dec").axes[0]
    assert axes.images[0].get_array().shape == (2, 3)


def test_what_cannot_be_drawn_is_an_error():
    with pytest.raises(AttlasError, match="entropies"):
        figures.plot_history(records(), "entropies")
    with pytest.raises(AttlasError, match="known max_logit"):
        figures.plot_history(records())
    with pytest.raises(AttlasError, match="begin with 'x'"):
        figures.plot_history(records(), "entropy", layer="x")
    with pytest.raises(AttlasError, match="no reading"):
        figures.plot_history([])
