from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.flow import attention_flow, maximum_flow
from attlas.analysis.rollout import rollout
from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap


def least_cut(capacities, source, sink):
    """The least capacity between the nodes of the source and the others, of all ways to divide."""
    sizes = [len(capacities[0]), *(one.shape[1] for one in capacities)]
    nodes = [(layer, node) for layer, size in enumerate(sizes) for node in range(size)]
    begin, end = (0, source), (len(sizes) - 1, sink)
    others = [node for node in nodes if node not in (begin, end)]
    least = np.inf
    for sides in product((False, True), repeat=len(others)):
        here = {begin: True, end: False, **dict(zip(others, sides, strict=True))}
        cut = sum(
            one[i, j]
            for layer, one in enumerate(capacities)
            for i, j in np.ndindex(one.shape)
            if here[layer, i] and not here[layer + 1, j]
        )
        least = min(least, cut)
    return least


@given(st.integers(0, 2**31), st.lists(st.integers(1, 3), min_size=2, max_size=4), st.booleans())
def test_the_greatest_flow_is_the_least_cut_of_all(seed, sizes, whole) -> None:
    draw = np.random.default_rng(seed)
    capacities = [
        draw.integers(0, 4, pair) * 1.0 if whole else draw.random(pair) * (draw.random(pair) > 0.3)
        for pair in pairwise(sizes)
    ]
    source, sink = draw.integers(sizes[0]), draw.integers(sizes[-1])
    flow = maximum_flow(capacities, int(source), int(sink))
    assert flow == pytest.approx(least_cut(capacities, source, sink), abs=1e-9)
    scaled = maximum_flow([one * 1e-9 for one in capacities], int(source), int(sink))
    assert scaled == pytest.approx(flow * 1e-9, rel=1e-6)


def test_what_was_sent_is_taken_back_where_another_way_needs_it() -> None:
    # Two ways 0 → a → x → end and 0 → b → y → end, and a tempting one 0 → a → y.
    capacities = [
        np.array([[1.0, 1.0]]),
        np.array([[1.0, 1.0], [0.0, 1.0]]),
        np.array([[1.0], [1.0]]),
    ]
    assert maximum_flow(capacities, 0, 0) == 2.0
    # The same where the shortest ways alone end at 1: the rest has to go back up a layer.
    capacities = [
        np.array([[1.0, 1.0]]),
        np.array([[0.0, 1.0], [1.0, 1.0]]),
        np.array([[0.0, 0.0], [1.0, 0.0]]),
        np.array([[1.0], [1.0]]),
    ]
    assert maximum_flow(capacities, 0, 0) == 1.0


def test_two_layers_flow_as_worked_by_hand() -> None:
    first = DenseAttentionMap(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]))
    second = DenseAttentionMap(torch.tensor([[[[1.0, 0.0], [0.8, 0.2]]]]))
    # Ã₁ = [[.75, .25], [0, 1]], Ã₂ = [[1, 0], [.4, .6]].
    # From 1 to input 0: through 0, min(.4, .75). To input 1: min(.4, .25) + min(.6, 1).
    # From 0: through 0 alone, .75 and .25.
    flow = attention_flow([first, second])
    expected = torch.tensor([[0.75, 0.25], [0.4, 0.85]], dtype=torch.float64)
    torch.testing.assert_close(flow, expected, atol=1e-7, rtol=0)
    one = attention_flow([first, second], positions=[1], inputs=[1, 0])
    torch.testing.assert_close(one, expected[1:].flip(1), atol=1e-7, rtol=0)


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 5))
def test_a_flow_is_a_share_and_at_least_what_rolls_out(seed, layers, length) -> None:
    torch.manual_seed(seed)
    shape = 1, 2, length, length
    attention_maps = [
        DenseAttentionMap((torch.randn(shape) * 2).softmax(-1)) for _ in range(layers)
    ]
    flow, mixed = attention_flow(attention_maps), rollout(attention_maps)
    assert bool((flow >= 0).all())
    assert bool((flow <= 1 + 1e-9).all())
    # What rolls out is a flow too: shares of 1 pass every edge within its capacity.
    assert bool((flow >= mixed - 1e-9).all())
    if layers == 1:
        torch.testing.assert_close(flow, mixed)


def test_a_size_that_would_not_finish_is_refused_before_it_begins() -> None:
    attention_map = DenseAttentionMap(torch.full((1, 1, 200, 200), 1 / 200))
    wanted = r"200 positions × 200 inputs × 6 layers × 200² = 9,600,000,000"
    with pytest.raises(AttlasError, match=wanted):
        attention_flow([attention_map] * 6)
    with pytest.raises(AttlasError, match="at most 100 edges"):
        attention_flow([attention_map], [0], [0], at_most=100)
    assert attention_flow([attention_map], [0], [0, 1]).shape == (1, 2)


def test_what_is_no_graph_of_layers_says_why() -> None:
    edge = np.ones((2, 2))
    with pytest.raises(AttlasError, match="the edges between each layer and the next one"):
        maximum_flow([edge, np.ones((3, 2))], 0, 0)
    with pytest.raises(AttlasError, match="got none"):
        maximum_flow([], 0, 0)
    for wrong in (np.nan, np.inf, -1.0):
        with pytest.raises(AttlasError, match="finite capacities from 0"):
            maximum_flow([edge * wrong], 0, 0)
    with pytest.raises(AttlasError, match="a source of 2 nodes and a sink of 2; got 0 and 2"):
        maximum_flow([edge], 0, 2)
    with pytest.raises(AttlasError, match="layers of self-attention over one text"):
        attention_flow([DenseAttentionMap(torch.ones(1, 1, 2, 3))])
