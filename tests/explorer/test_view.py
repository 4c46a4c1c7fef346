import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.explorer.maps import MOST_WEIGHTS, Layer, MapWindow
from attlas.patterns import causal
from attlas.recording import DenseAttentionMap, FactoredAttentionMap
from attlas.recording.maps.reductions import PassCancelledError
from attlas.recording.trace import Axes

NAMELESS = Axes((), (), within=True)


def layer_of(weights: torch.Tensor) -> Layer:
    return Layer("a", DenseAttentionMap(weights[None]), NAMELESS)


def random(heads: int, rows: int, keys: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(heads, rows, keys, generator=torch.Generator().manual_seed(seed))


def test_nothing_asked_is_everything() -> None:
    weights = random(2, 3, 4)
    layer = layer_of(weights)
    assert torch.equal(MapWindow.read({}, layer).of(layer), weights)


@given(st.data())
def test_a_window_is_a_slice(data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, 8)) for _ in range(3)]
    weights = random(*sizes)
    layer = layer_of(weights)
    query, slices = {}, []
    for name, size in zip(("heads", "rows", "keys"), sizes, strict=True):
        start = data.draw(st.integers(0, size - 1))
        stop = data.draw(st.integers(start + 1, size))
        query[name] = f"{start}:{stop}"
        slices.append(slice(start, stop))
    assert torch.equal(MapWindow.read(query, layer).of(layer), weights[tuple(slices)])


@given(
    rows=st.integers(1, 20),
    keys=st.integers(1, 20),
    data=st.data(),
)
def test_a_smaller_shape_holds_the_largest_weight_of_each_group(
    rows: int, keys: int, data: st.DataObject
) -> None:
    height = data.draw(st.integers(1, rows))
    width = data.draw(st.integers(1, keys))
    weights = random(2, rows, keys)
    layer = layer_of(weights)
    pooled = MapWindow.read({"shape": f"{height},{width}"}, layer).of(layer)
    assert pooled.shape == (2, height, width)
    for i in range(height):
        for j in range(width):
            down = slice(i * rows // height, (i + 1) * rows // height)
            across = slice(j * keys // width, (j + 1) * keys // width)
            assert torch.equal(pooled[:, i, j], weights[:, down, across].amax((1, 2)))


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_nobody_waits_for_any_more_are_given_up(threads: int) -> None:
    generator = torch.Generator().manual_seed(3)
    query, keys = torch.randn(2, 1, 1, 6_000, 4, generator=generator)
    layer = Layer("a", FactoredAttentionMap(query, keys, 0.5, causal, 0), NAMELESS)
    stop = threading.Event()
    stop.set()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with pytest.raises(PassCancelledError):
            MapWindow.read({"shape": "4,4"}, layer).of(layer, stop)
    finally:
        torch.set_num_threads(before)


def test_a_head_alone_is_that_head_of_all() -> None:
    generator = torch.Generator().manual_seed(3)
    query, keys = torch.randn(1, 4, 9, 4, generator=generator), torch.randn(1, 2, 9, 4)
    layer = Layer("a", FactoredAttentionMap(query, keys, 0.5, causal, 0), NAMELESS)
    whole = MapWindow.read({}, layer).of(layer)
    for head in range(4):
        alone = MapWindow.read({"heads": f"{head}:{head + 1}"}, layer).of(layer)
        torch.testing.assert_close(alone, whole[head : head + 1], atol=1e-6, rtol=0)


def test_a_long_map_is_pooled_without_ever_being_held_whole() -> None:
    length = 6_000
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(1, 1, length, 4, generator=generator)
    keys = torch.randn(1, 1, length, 4, generator=generator)
    layer = Layer("a", FactoredAttentionMap(query, keys, 0.5, causal, 0), NAMELESS)
    pooled = MapWindow.read({"shape": "4,4"}, layer).of(layer)
    above = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    assert bool((pooled[0][above] == 0).all())
    assert bool((pooled[0][~above] > 0).all())
    assert float(pooled[0, 0, 0]) == 1.0  # the first query sees itself alone


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"rows": "0:4"}, r"rows as start:stop within 0:3; got \?rows=0:4"),
        ({"rows": "2:2"}, "start:stop within 0:3"),
        ({"rows": "-1:2"}, "start:stop within 0:3"),
        ({"keys": "1"}, "keys as start:stop within 0:5"),
        ({"keys": "0:5.0"}, "keys as start:stop within 0:5"),
        ({"heads": "1:0"}, "heads as start:stop within 0:2"),
        ({"heads": "٠:١"}, "heads as start:stop within 0:2"),
        ({"shape": "4,5"}, "at most 3,5 and at least 1,1"),
        ({"shape": "0,1"}, "at most 3,5 and at least 1,1"),
        ({"rows": "1:2", "shape": "2,5"}, "at most 1,5"),
        ({"shape": "2x2"}, "a shape as height,width"),
        ({"bits": "32"}, "bits of 8 or 16"),
        ({"curve": "cube"}, "a curve of linear or root"),
        ({"row": "0:1"}, "one of heads, rows, keys, shape, bits, curve"),
    ],
)
def test_a_wrong_window_says_what_there_is(query: dict[str, str], said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        MapWindow.read(query, layer_of(random(2, 3, 5)))


def test_a_tile_too_large_to_send_is_refused_and_a_smaller_shape_is_not() -> None:
    size = 5_000
    assert size * size > MOST_WEIGHTS
    wide = torch.zeros(1, 1, 1, size).expand(1, 1, size, size)
    layer = Layer("a", DenseAttentionMap(wide), NAMELESS)
    with pytest.raises(AttlasError, match="at most 16,777,216 weights"):
        MapWindow.read({}, layer)
    assert MapWindow.read({"shape": "10,10"}, layer).of(layer).shape == (1, 10, 10)
