"""A trace as a mapping from paths to maps."""

import pickle
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from jaxtyping import config

import attlas
from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap, Trace, observe


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


@pytest.fixture
def trace(encoder):
    with torch.no_grad(), observe(encoder) as trace:
        encoder(torch.randn(2, 5, 16))
    return trace


def test_a_trace_is_the_mapping_that_a_dictionary_of_its_maps_is(trace):
    expected = {path: trace[path] for path in ("layers.0.self_attn", "layers.1.self_attn")}
    shapes = {path: one.shape for path, one in expected.items()}
    assert isinstance(trace, Mapping)
    assert (len(trace), list(trace), list(trace.keys())) == (2, list(expected), list(expected))
    assert {path: one.shape for path, one in trace.items()} == shapes
    assert [one.shape for one in trace.values()] == list(shapes.values())
    assert {path: one.shape for path, one in dict(trace).items()} == shapes
    assert {path: one.shape for path, one in {**trace}.items()} == shapes
    assert "layers.0.self_attn" in trace
    assert "layers.0" not in trace
    assert [0] not in trace
    assert trace.get("layers.9.self_attn") is None
    assert trace.get("layers.9.self_attn", 7) == 7
    assert trace.get("layers.1.self_attn").shape == (2, 2, 5, 5)
    assert trace.keys() & {"layers.0.self_attn", "b"} == {"layers.0.self_attn"}
    match trace:
        case {"layers.1.self_attn": attention_map}:
            assert attention_map.shape == (2, 2, 5, 5)
    assert trace
    assert not Trace()


@pytest.mark.parametrize(
    ("requested", "reported"),
    [
        ("layers.0.self_atn", r"did you mean 'layers.0.self_attn'"),
        ("layers.1", r"did you mean 'layers.1.self_attn'\?"),
        ("self_attn", r"did you mean 'layers.0.self_attn' or 'layers.1.self_attn'"),
        ("encoder.layers.1.self_attn", r"did you mean 'layers.1.self_attn'"),
        ("layers.*", r"did you mean 'layers.0.self_attn' or"),
        (0, r"name a layer by its path, such as 'layers.0.self_attn'; list\(trace\) has all"),
        ("zzz", "name a layer of the trace"),
        (["layers.0.self_attn"], "name a layer of the trace"),
    ],
)
def test_an_unknown_path_is_reported_with_those_that_are_near_as_an_error_of_both_kinds(
    trace, requested, reported
):
    config.update("jaxtyping_disable", True)  # whose own error would come first
    for door in (trace.__getitem__, trace.calls, trace.kind):
        with pytest.raises(AttlasError, match=reported) as error:
            door(requested)
        assert isinstance(error.value, KeyError)
        assert str(error.value).startswith("expected one of the layers ['layers.0.self_attn'")
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_an_empty_trace_says_that_the_model_has_to_be_called(encoder):
    with observe(encoder) as trace:
        with pytest.raises(KeyError, match=r"one of the layers \[\]; .*call the model inside"):
            trace["layers.0.self_attn"]
        encoder(torch.randn(2, 5, 16))


def test_a_layer_with_several_maps_is_reported_of_and_does_not_count_as_missing(encoder):
    with torch.no_grad(), observe(encoder) as trace:
        encoder(torch.randn(2, 5, 16))
        encoder(torch.randn(2, 7, 16))
    reported = (
        r"2 calls.*choose one of trace.calls\('layers.0.self_attn'\), or observe with last_calls=1"
    )
    for door in (lambda: trace.get("layers.0.self_attn"), lambda: list(trace.items())):
        with pytest.raises(AttlasError, match=reported) as error:
            door()
        assert not isinstance(error.value, KeyError)
    assert "layers.0.self_attn" in trace


def test_traces_are_equal_where_layers_maps_and_tokens_are(trace, encoder, tmp_path):
    trace.save(tmp_path / "a.safetensors")
    again = Trace.load(tmp_path / "a.safetensors")
    assert again == trace
    again.label([list("abcde")] * 2)
    assert again != trace
    with torch.no_grad(), observe(encoder) as other:
        encoder(torch.randn(2, 5, 16))
    assert other != trace
    assert trace != dict(trace)
    weights = torch.rand(1, 1, 2, 2)
    one, two, three = Trace(), Trace(), Trace()
    one.record("a", DenseAttentionMap(weights))
    two.record("a", DenseAttentionMap(weights.clone(), query_offset=0))  # where it stands anyway
    three.record("a", DenseAttentionMap(weights.double()))
    assert one == two
    assert one != three
    assert one != Trace()


@pytest.mark.parametrize("make", [np.asarray, np.array, torch.as_tensor])
def test_an_array_of_a_whole_trace_asks_for_a_layer(trace, make):
    with pytest.raises(AttlasError, match=r"layers.0.self_attn"):
        make(trace)


def test_what_is_printed_of_a_trace_has_each_layer_with_the_shapes_of_its_maps(trace):
    assert "  layers.1.self_attn: 2 × 2 × 5 × 5\n" in repr(trace)
    assert isinstance(trace, attlas.Trace)
