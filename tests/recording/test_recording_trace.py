import json
from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import save_file

from attlas.errors import AttlasError
from attlas.layers import Additive, MultiHead
from attlas.patterns import Pattern, both, causal, window
from attlas.recording import DenseReading, FactoredReading, Trace, observe


@pytest.fixture
def trace():
    torch.manual_seed(0)
    layers = torch.nn.ModuleDict(
        {
            "additive": Additive(6, 6, 4),
            "heads": MultiHead(6, 2, key_heads=1, pattern=both(causal, window(2))),
        }
    )
    source, real = torch.randn(2, 5, 6), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with observe(layers) as trace:
        for layer in layers.values():
            layer(source, layer.remember(source, real))
        layers["heads"](source, layers["heads"].remember(source))
    trace.label(source=[["ein", "Hund", "。", "</s>", "x"], ["a"]], target=[["a", "dog"], []])
    return trace


def test_a_trace_comes_back_from_its_file_whole(trace, tmp_path):
    trace.save(tmp_path / "trace.safetensors")
    loaded = Trace.load(tmp_path / "trace.safetensors")
    assert loaded.layers == trace.layers
    assert (loaded.source, loaded.target) == (trace.source, trace.target)
    for layer in trace.layers:
        pairs = list(zip(loaded.calls(layer), trace.calls(layer), strict=True))
        for mine, original in pairs:
            assert type(mine) is type(original)
            assert torch.equal(mine.weights(), original.weights())
    factored = loaded.calls("heads")[0]
    assert isinstance(factored, FactoredReading)
    assert factored.pattern == both(causal, window(2))
    assert loaded.calls("heads")[1].real is None


def test_views_of_one_storage_are_saved_once_each(tmp_path):
    weights = torch.full((1, 2, 3, 3), 1 / 3)
    trace = Trace()
    trace.note("a", DenseReading(weights[:, :1]))
    trace.note("b", DenseReading(weights[:, 1:].transpose(2, 3)))
    trace.save(tmp_path / "trace")
    assert torch.equal(Trace.load(tmp_path / "trace")["b"].weights(), weights[:, 1:])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99])
def test_a_file_cut_short_is_damaged(trace, tmp_path, share):
    path = tmp_path / "trace"
    trace.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(AttlasError, match=r"wanted a whole trace file; got .*, which is damaged"):
        Trace.load(path)


@pytest.mark.parametrize(
    "readings", ["[", "3", "[3]", "[{}]", '[{"layer": "a", "form": "dense"}]', '{"a": 1}']
)
def test_metadata_that_means_nothing_is_damage(tmp_path, readings):
    metadata = {"format": "attlas trace 1", "readings": readings, "source": "[]", "target": "[]"}
    save_file({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match="which is damaged"):
        Trace.load(tmp_path / "trace")


def test_metadata_without_labels_is_damage(tmp_path):
    metadata = {"format": "attlas trace 1", "readings": json.dumps([])}
    save_file({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match="which is damaged"):
        Trace.load(tmp_path / "trace")


def test_a_pattern_in_a_file_cannot_run_code(tmp_path):
    facts = {"layer": "a", "form": "factored", "scale": 1, "first": 0, "pattern": "exit()"}
    metadata = {
        "format": "attlas trace 1",
        "readings": json.dumps([facts]),
        "source": "[]",
        "target": "[]",
    }
    fields = {"0.query": torch.zeros(1, 1, 2, 3), "0.keys": torch.ones(1, 1, 2, 3)}
    save_file(fields, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match=r"wanted a pattern .* got 'exit\(\)'"):
        Trace.load(tmp_path / "trace")


def test_another_safetensors_file_is_no_trace(tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "weights")
    with pytest.raises(AttlasError, match="a file of format 'attlas trace 1'; got None in "):
        Trace.load(tmp_path / "weights")


def test_a_missing_file_and_a_missing_folder_are_named(trace, tmp_path):
    with pytest.raises(AttlasError, match=r"wanted a trace file; got no file at .*nowhere"):
        Trace.load(tmp_path / "nowhere")
    with pytest.raises(AttlasError, match=r"wanted a place to write the trace; got .*nowhere"):
        trace.save(tmp_path / "nowhere" / "trace")
    with pytest.raises(AttlasError, match="a whole trace file; got"):
        Trace.load(tmp_path)


def test_a_save_that_fails_leaves_the_older_trace_and_nothing_else(trace, tmp_path, monkeypatch):
    path = tmp_path / "trace.safetensors"
    trace.save(path)
    before = path.read_bytes()

    def half(tensors, place, metadata):
        place.write_bytes(before[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attlas.recording.trace.save_file", half)
    with pytest.raises(AttlasError, match="No space left"):
        trace.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@dataclass(frozen=True, slots=True)
class Mine(Pattern):
    """A user's own; its text may be that of another."""

    text: str

    def __call__(self, query, slot):
        return slot != query

    def __str__(self):
        return self.text


@pytest.mark.parametrize("text", ["Mine()", "causal", "both(causal, Mine())"])
def test_a_pattern_that_no_file_can_hold_is_refused_before_anything_is_written(tmp_path, text):
    layer = MultiHead(4, 2, pattern=Mine(text))
    with observe(layer) as trace:
        layer(torch.zeros(1, 3, 4), layer.remember(torch.zeros(1, 3, 4)))
    with pytest.raises(AttlasError) as caught:
        trace.save(tmp_path / "trace")
    assert str(caught.value) == (
        f"wanted a pattern that can be read back from its text; got {text}; compose it from "
        "attlas.patterns, or keep the weights: DenseReading(reading.weights())"
    )
    assert list(tmp_path.iterdir()) == []
    kept = Trace()
    kept.note("", DenseReading(trace[""].weights()))
    kept.save(tmp_path / "trace")
    assert torch.equal(Trace.load(tmp_path / "trace")[""].weights(), trace[""].weights())


def label(trace):
    trace.label(source=[["Hund", "a\ud800"]])


def label_layer(trace):
    trace.label_layer("", [["\udcff"]], [["dog"]])


def name_a_layer(trace):
    trace.note("\ud800", DenseReading(torch.ones(1, 1, 1, 1)))


@pytest.mark.parametrize("name", [label, label_layer, name_a_layer])
def test_a_label_that_is_no_text_is_refused_before_anything_is_written(tmp_path, name):
    trace = Trace()
    trace.note("", DenseReading(torch.ones(1, 1, 1, 1)))
    name(trace)
    with pytest.raises(AttlasError, match=r"wanted labels of valid Unicode; got half a character"):
        trace.save(tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []


def test_a_reading_is_as_precise_where_the_model_computes_in_half():
    layer = MultiHead(8, 2)
    source = torch.randn(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16), observe(layer) as trace:
        layer(source, layer.remember(source))
        inside = trace[""].weights()
    assert torch.equal(inside, trace[""].weights())


def test_a_printed_trace_tells_its_layers_their_shapes_and_its_tokens(trace):
    assert str(trace).splitlines() == [
        "Trace, layer: batch × heads × queries × slots of each call",
        "  additive: 2 × 1 × 5 × 5",
        "  heads: 2 × 2 × 5 × 5, 2 × 2 × 5 × 5",
        "  tokens: 2 source rows, 2 target rows",
    ]
    assert str(Trace()).endswith("  tokens: 0 source rows, 0 target rows")


def test_a_printed_reading_tells_its_shape_and_not_its_numbers(trace):
    assert repr(trace["additive"]) == "DenseReading(batch=2, heads=1, queries=5, slots=5)"
    assert repr(trace.calls("heads")) == (
        "(FactoredReading(batch=2, heads=2, queries=5, slots=5), "
        "FactoredReading(batch=2, heads=2, queries=5, slots=5))"
    )
