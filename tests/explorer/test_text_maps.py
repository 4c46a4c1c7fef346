"""From a trace to the maps of one of its texts."""

import pytest
import torch

from attlas.errors import AttlasError
from attlas.explorer.maps import TextMaps
from attlas.figures import maps_of
from attlas.recording import DenseAttentionMap, Trace


def random(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1))


def test_calls_of_one_query_each_are_the_rows_of_one_map() -> None:
    weights = random(1, 2, 4, 3)
    trace = Trace()
    for step in range(4):
        trace.record("a", DenseAttentionMap(weights[:, :, step : step + 1]))
    (layer,) = TextMaps.of(trace).layers
    assert (layer.name, layer.heads, layer.queries, layer.num_keys) == ("a", 2, 4, 3)
    assert torch.equal(layer.attention_map.rows(0, 4), weights)


def test_what_a_growing_memory_did_not_hold_yet_was_not_looked_at() -> None:
    trace = Trace()
    for size in (1, 2, 3):
        trace.record("a", DenseAttentionMap(torch.full((1, 1, 1, size), 1 / size)))
    (layer,) = TextMaps.of(trace).layers
    third = 1 / 3
    expected = torch.tensor([[[[1, 0, 0], [0.5, 0.5, 0], [third, third, third]]]])
    torch.testing.assert_close(layer.attention_map.rows(0, 3), expected)


def test_calls_of_several_queries_are_maps_of_their_own() -> None:
    trace = Trace()
    for size in (2, 5):
        trace.record("a", DenseAttentionMap(random(1, 1, size, size)))
    assert [(layer.name, layer.queries) for layer in TextMaps.of(trace).layers] == [
        ("a, call 0", 2),
        ("a, call 1", 5),
    ]


def test_calls_of_one_query_that_look_at_other_texts_are_maps_of_their_own() -> None:
    """As of a layer that pools: it asks once of each text."""
    trace = Trace()
    for size in (3, 6, 4):
        trace.record("a", DenseAttentionMap(random(1, 1, 1, size)))
    assert [layer.num_keys for layer in TextMaps.of(trace).layers] == [3, 6, 4]
    for size in (7, 8, 9):  # a generation of its own
        trace.record("a", DenseAttentionMap(random(1, 1, 1, size)))
    shapes = [(layer.name, layer.queries, layer.num_keys) for layer in TextMaps.of(trace).layers]
    assert shapes == [
        ("a, call 0", 1, 3),
        ("a, call 1", 1, 6),
        ("a, call 2", 1, 4),
        ("a, calls 3–5", 3, 9),
    ]


def test_a_map_has_the_name_that_a_figure_of_its_call_has() -> None:
    trace = Trace()
    for batch in (1, 2, 2):  # the second text is in the later calls alone
        trace.record("a", DenseAttentionMap(random(batch, 1, 2, 3)))
    assert [layer.name for layer in TextMaps.of(trace, 0).layers] == list(maps_of(trace, 0))
    assert [layer.name for layer in TextMaps.of(trace, 1).layers] == ["a, call 1", "a, call 2"]


def test_each_text_has_its_own_maps_and_names() -> None:
    weights = random(2, 1, 2, 2)
    trace = Trace()
    trace.record("", DenseAttentionMap(weights))
    trace.label_layer("", [["a", "b"], ["c", "d"]], [["a", "b"], ["c", "d"]])
    (layer,) = TextMaps.of(trace, 1).layers
    assert layer.name == "model"
    assert torch.equal(layer.attention_map.rows(0, 2), weights[1:])
    assert (layer.axes.queries, layer.axes.keys, layer.axes.within) == (
        ("c", "d"),
        ("c", "d"),
        True,
    )


def test_what_looks_across_comes_first_and_what_is_empty_is_left_out() -> None:
    trace = Trace()
    for name, shape in {"self": (1, 1, 2, 2), "none": (1, 1, 0, 2), "cross": (1, 1, 2, 3)}.items():
        trace.record(name, DenseAttentionMap(random(*shape)))
    trace.set_kind("cross", cross_attention=True)
    assert [layer.name for layer in TextMaps.of(trace).layers] == ["cross", "self"]


def test_a_text_that_a_layer_lacks_has_no_map_of_it() -> None:
    trace = Trace()
    trace.record("one", DenseAttentionMap(random(1, 1, 2, 2)))
    trace.record("two", DenseAttentionMap(random(2, 1, 2, 2)))
    assert [layer.name for layer in TextMaps.of(trace, 1).layers] == ["two"]


def test_a_layer_that_is_not_there_is_reported() -> None:
    trace = Trace()
    trace.record("one", DenseAttentionMap(random(1, 1, 2, 2)))
    with pytest.raises(AttlasError, match="a layer from 0 to 0; got 1"):
        TextMaps.of(trace).layer(1)
