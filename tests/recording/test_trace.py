import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

from attlas.errors import AttlasError
from attlas.layers import AdditiveAttention, MultiheadAttention
from attlas.patterns import Pattern, both, causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace, observe
from attlas.recording.serialization import trace_checksum
from support.written_attention import QUERIES, Calling, vectors


@pytest.fixture
def trace():
    torch.manual_seed(0)
    layers = torch.nn.ModuleDict(
        {
            "additive": AdditiveAttention(6, 6, 4),
            "heads": MultiheadAttention(6, 2, num_kv_heads=1, pattern=both(causal, window(2))),
        }
    )
    source, token_mask = torch.randn(2, 5, 6), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with observe(layers) as trace:
        for layer in layers.values():
            layer.attend(source, layer.project_kv(source, token_mask))
        layers["heads"](source, layers["heads"].project_kv(source))
    source = ["ein", "Hund", "。", "</s>", "x"]
    trace.label(source=[source, ["a"]], target=[["a", "dog", ".", "</s>", "x"], []])
    return trace


def save_sealed(tensors, path, metadata):
    """Save a trace as it is, with the checksum that it would have."""
    content = json.dumps(dict(sorted(metadata.items())), ensure_ascii=False)
    save_file(tensors, path, {**metadata, "sha256": trace_checksum(tensors, content)})


def test_a_trace_comes_back_from_its_file_whole(trace, tmp_path):
    trace.save(tmp_path / "trace.safetensors")
    loaded = Trace.load(tmp_path / "trace.safetensors")
    assert tuple(loaded) == tuple(trace)
    assert (loaded.source, loaded.target) == (trace.source, trace.target)
    for layer in trace:
        pairs = list(zip(loaded.calls(layer), trace.calls(layer), strict=True))
        for mine, original in pairs:
            assert type(mine) is type(original)
            assert torch.equal(mine.weights(), original.weights())
    factored = loaded.calls("heads")[0]
    assert isinstance(factored, FactoredAttentionMap)
    assert factored.pattern == both(causal, window(2))
    assert loaded.calls("heads")[1].token_mask is None


def test_a_link_stays_a_link_and_what_is_beside_a_trace_stays_too(trace, tmp_path):
    (tmp_path / "token_mask").mkdir()
    link, beside = tmp_path / "link.safetensors", tmp_path / "token_mask" / "a.safetensors.tmp"
    link.symlink_to(tmp_path / "token_mask" / "a.safetensors")
    beside.write_text("mine")
    trace.save(link)
    assert link.is_symlink()
    assert beside.read_text() == "mine"
    assert Trace.load(tmp_path / "token_mask" / "a.safetensors").source == trace.source
    assert len(list((tmp_path / "token_mask").iterdir())) == 2


def test_a_pipe_is_written_to_and_stays_a_pipe(trace, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        trace.save(tmp_path / "pipe")
        (tmp_path / "copy").write_bytes(read.result(timeout=30))
    assert (tmp_path / "pipe").is_fifo()
    assert Trace.load(tmp_path / "copy").source == trace.source


def test_views_of_one_storage_are_saved_once_each(tmp_path):
    weights = torch.full((1, 2, 3, 3), 1 / 3)
    trace = Trace()
    trace.record("a", DenseAttentionMap(weights[:, :1]))
    trace.record("b", DenseAttentionMap(weights[:, 1:].transpose(2, 3)))
    trace.save(tmp_path / "trace")
    assert torch.equal(Trace.load(tmp_path / "trace")["b"].weights(), weights[:, 1:])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99])
def test_a_file_cut_short_is_damaged(trace, tmp_path, share):
    path = tmp_path / "trace"
    trace.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(AttlasError, match=r"expected a whole trace file; got .*, which is damaged"):
        Trace.load(path)


@pytest.mark.parametrize(
    "attention_maps", ["[", "3", "[3]", "[{}]", '[{"layer": "a", "form": "dense"}]', '{"a": 1}']
)
def test_metadata_that_means_nothing_is_damage(tmp_path, attention_maps):
    metadata = {"format": "attlas trace 2", "maps": attention_maps, "source": "[]", "target": "[]"}
    save_sealed({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match="which is damaged"):
        Trace.load(tmp_path / "trace")


def test_metadata_without_labels_is_damage(tmp_path):
    metadata = {"format": "attlas trace 2", "maps": json.dumps([])}
    save_sealed({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match="which is damaged"):
        Trace.load(tmp_path / "trace")


def test_a_pattern_in_a_file_cannot_run_code(tmp_path):
    facts = {"layer": "a", "form": "factored", "scale": 1, "query_offset": 0, "pattern": "exit()"}
    metadata = {
        "format": "attlas trace 2",
        "maps": json.dumps([facts]),
        "source": "[]",
        "target": "[]",
    }
    fields = {"0.query": torch.zeros(1, 1, 2, 3), "0.keys": torch.ones(1, 1, 2, 3)}
    save_sealed(fields, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match=r"expected a pattern .* got 'exit\(\)'"):
        Trace.load(tmp_path / "trace")


def test_a_file_of_the_old_format_is_reported_from_a_damaged_one(tmp_path):
    metadata = {"format": "attlas trace 1", "readings": "[]", "source": "[]", "target": "[]"}
    save_sealed({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(
        AttlasError, match=r"format 'attlas trace 2'; got 'attlas trace 1' in .*observe"
    ):
        Trace.load(tmp_path / "trace")


def test_another_safetensors_file_is_no_trace(tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "weights")
    with pytest.raises(AttlasError, match="a file of format 'attlas trace 2'; got None in "):
        Trace.load(tmp_path / "weights")


def test_a_missing_file_and_a_missing_folder_are_named(trace, tmp_path):
    with pytest.raises(AttlasError, match=r"expected a trace file; got no file at .*nowhere"):
        Trace.load(tmp_path / "nowhere")
    with pytest.raises(AttlasError, match=r"expected to write .*nowhere.*a folder that exists"):
        trace.save(tmp_path / "nowhere" / "trace")
    with pytest.raises(AttlasError, match="expected a trace file; got the folder "):
        Trace.load(tmp_path)


def test_a_file_that_may_not_be_read_is_no_missing_one(trace, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise FileNotFoundError  # what safetensors says of whatever it cannot open

    trace.save(tmp_path / "trace")
    monkeypatch.setattr("attlas.recording.trace.safe_open", refused)
    with pytest.raises(AttlasError, match="which cannot be opened; ask for the right to read it"):
        Trace.load(tmp_path / "trace")


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

    def __call__(self, query, key):
        return key != query

    def __str__(self):
        return self.text


@pytest.mark.parametrize("text", ["Mine()", "causal", "both(causal, Mine())"])
def test_a_pattern_that_no_file_can_hold_is_refused_before_anything_is_written(tmp_path, text):
    layer = MultiheadAttention(4, 2, pattern=Mine(text))
    with observe(layer) as trace:
        layer.attend(torch.zeros(1, 3, 4), layer.project_kv(torch.zeros(1, 3, 4)))
    with pytest.raises(AttlasError) as caught:
        trace.save(tmp_path / "trace")
    assert str(caught.value) == (
        f"expected a pattern that can be read back from its text; got {text}; compose it from "
        "attlas.patterns, or keep the weights: DenseAttentionMap(attention_map.weights())"
    )
    assert list(tmp_path.iterdir()) == []
    kept = Trace()
    kept.record("", DenseAttentionMap(trace[""].weights()))
    kept.save(tmp_path / "trace")
    assert torch.equal(Trace.load(tmp_path / "trace")[""].weights(), trace[""].weights())


def label(trace):
    trace.label(source=[["a\ud800"]])


def label_layer(trace):
    trace.label_layer("", [["\udcff"]], [["dog"]])


def name_a_layer(trace):
    trace.record("\ud800", DenseAttentionMap(torch.ones(1, 1, 1, 1)))


@pytest.mark.parametrize("name", [label, label_layer, name_a_layer])
def test_a_label_that_is_no_text_is_refused_before_anything_is_written(tmp_path, name):
    trace = Trace()
    trace.record("", DenseAttentionMap(torch.ones(1, 1, 1, 1)))
    name(trace)
    with pytest.raises(
        AttlasError, match=r"expected labels of valid Unicode; got half a character"
    ):
        trace.save(tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []


def test_a_reading_is_as_precise_where_the_model_computes_in_half():
    layer = MultiheadAttention(8, 2)
    source = torch.randn(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16), observe(layer) as trace:
        layer.attend(source, layer.project_kv(source))
        inside = trace[""].weights()
    assert torch.equal(inside, trace[""].weights())


def test_a_printed_trace_tells_its_layers_their_shapes_and_its_tokens(trace):
    assert str(trace).splitlines() == [
        "Trace, layer: batch × heads × queries × keys of each call",
        "  additive: 2 × 1 × 5 × 5",
        "  heads: 2 × 2 × 5 × 5, 2 × 2 × 5 × 5",
        "  tokens: 2 texts in source, 2 in target",
    ]
    assert str(Trace()).endswith("  tokens: none; name them by trace.label(…)")


def test_a_printed_reading_tells_its_shape_and_not_its_numbers(trace):
    assert repr(trace["additive"]) == "DenseAttentionMap(batch=2, heads=1, queries=5, keys=5)"
    assert repr(trace.calls("heads")) == (
        "(FactoredAttentionMap(batch=2, heads=2, queries=5, keys=5), "
        "FactoredAttentionMap(batch=2, heads=2, queries=5, keys=5))"
    )


def written(path, tensors, attention_maps, source="[]", target="[]", axes="{}"):
    """A file in the format of a trace, with whatever in it."""
    metadata = {"format": "attlas trace 2", "maps": attention_maps, "source": source}
    save_sealed(tensors, path, {**metadata, "target": target, "axes": axes})
    return path


def facts_of(form="factored", layer="a", **changed):
    facts = {"layer": layer, "form": form}
    if form == "factored":
        facts |= {"scale": 1.0, "pattern": "causal", "query_offset": 0}
    return json.dumps([facts | changed])


def factored(query=(1, 2, 3, 4), keys=(1, 1, 5, 4), token_mask=None, kind=torch.float32):
    fields = {"0.query": torch.ones(query).to(kind), "0.keys": torch.ones(keys).to(kind)}
    return fields if token_mask is None else fields | {"0.token_mask": token_mask}


def dense(*shape, kind=torch.float32):
    return {"0.weights": torch.ones(shape).to(kind)}


@pytest.mark.parametrize(
    ("tensors", "attention_maps", "expected"),
    [
        (dense(1, 3, 4), facts_of("dense"), "weights shaped (batch, heads, queries, keys)"),
        (dense(1, 1, 1, 3, 4), facts_of("dense"), "weights shaped (batch, heads, queries, keys)"),
        (dense(1, 1, 3, 4, kind=torch.complex64), facts_of("dense"), "as real numbers"),
        (factored(query=(3, 4)), facts_of(), "queries shaped (batch, heads, queries, dim)"),
        (factored(keys=(5, 4)), facts_of(), "keys shaped (batch, kv_heads, keys, dim)"),
        (factored(kind=torch.float8_e4m3fn), facts_of(), "as real numbers"),
        (factored(keys=(1, 1, 5, 6)), facts_of(), "queries and keys of one batch and one width"),
        (factored(keys=(2, 1, 5, 4)), facts_of(), "queries and keys of one batch and one width"),
        (factored(keys=(1, 3, 5, 4)), facts_of(), "a whole number of heads to a key head"),
        (factored(keys=(1, 0, 5, 4)), facts_of(), "a whole number of heads to a key head"),
        (factored(token_mask=torch.ones(2, 7).bool()), facts_of(), "`token_mask` of shape (1, 5)"),
        (
            factored(token_mask=torch.ones(1, 5)),
            facts_of(),
            "`token_mask` of shape (1, 5) and torch.bool",
        ),
        (
            factored() | {"0.bias": torch.zeros(1, 7, 3, 5)},
            facts_of(),
            "`bias` as numbers of shape",
        ),
        (factored() | {"0.bias": torch.zeros(3, 5)}, facts_of(), "a bias shaped"),
        (factored(), facts_of(softcap=0.0), "a softcap above 0; got 0.0"),
        (factored(), facts_of(softcap=float("inf")), "a softcap above 0; got inf"),
        (
            factored(),
            facts_of(softcap="1"),
            "'softcap' of an attention map as int or float; got '1'",
        ),
        (dense(1, 1, 3, 4) | {"0.allowed": torch.ones(1, 1, 3, 4)}, facts_of("dense"), "`allowed`"),
        (
            dense(1, 1, 3, 4),
            facts_of("dense", layer=5),
            "'layer' of an attention map as str; got 5",
        ),
        (dense(1, 1, 3, 4), facts_of("dense", layer=["a"]), "'layer' of an attention map as str"),
        (dense(1, 1, 3, 4), facts_of("dense", layer="\ud800"), "valid Unicode"),
        (dense(1, 1, 3, 4), facts_of("loose"), "form 'dense' or 'factored'; got 'loose'"),
        (
            factored(),
            facts_of(query_offset=10**26),
            "`query_offset`, the position of the first query",
        ),
        (
            factored(),
            facts_of(query_offset=-(2**31) - 1),
            "`query_offset`, the position of the first query",
        ),
        (
            factored(),
            facts_of(query_offset=0.5),
            "'query_offset' of an attention map as int; got 0.5",
        ),
        (
            factored(),
            facts_of(query_offset=True),
            "'query_offset' of an attention map as int; got True",
        ),
        (factored(), facts_of(scale="1"), "'scale' of an attention map as int or float; got '1'"),
        (factored(), facts_of(scale=float("nan")), "a finite scale; got nan"),
        (factored(), facts_of(scale=float("inf")), "a finite scale; got inf"),
        (factored(), facts_of(scale=10**400), "a whole trace file"),
        (factored(), facts_of(pattern=5), "'pattern' of an attention map as str; got 5"),
        (dense(1, 1, 3, 4), "[" * 100_000 + "]" * 100_000, "a whole trace file"),
    ],
)
def test_a_reading_that_does_not_fit_together_is_an_error_that_names_the_file(
    tmp_path, tensors, attention_maps, expected
):
    path = written(tmp_path / "trace", tensors, attention_maps)
    with pytest.raises(AttlasError, match=re.escape(expected)) as caught:
        Trace.load(path)
    assert str(path) in caught.value.got


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"source": "[[1, 2, 3, 4]]"}, "labels as lists of strings"),
        ({"source": '["abcd"]'}, "labels as lists of strings"),
        ({"source": '[{"a": 1}]'}, "labels as lists of strings"),
        ({"source": "[4]"}, "labels as lists of strings"),
        ({"source": "[[null]]"}, "labels as lists of strings"),
        ({"source": "7"}, "a whole trace file"),
        ({"source": '[["a"]]'}, "labels of the source, one to each place of an axis"),
        ({"target": '[["a", "b", "c", "d", "e"]]'}, "labels of the target, one to each place"),
        ({"source": '[["a", "b", "c", "d"], []]'}, "a list for each of 1 batch rows; got 2"),
        ({"source": '[["a", "b", "c", "\\ud800"]]'}, "labels of valid Unicode"),
        ({"axes": '{"a": [[["a", "b", "c"]], []]}'}, "labels of the keys of layer 'a'"),
        ({"axes": '{"a": [[], [["a", "b"]]]}'}, "labels of the queries of layer 'a'"),
        ({"axes": '{"b": [[], []]}'}, "one of the layers ['a']; got 'b'"),
        ({"axes": '{"a": [[]]}'}, "a whole trace file"),
        ({"axes": "[]"}, "a whole trace file"),
    ],
)
def test_labels_that_name_no_axis_are_an_error_that_names_the_file(tmp_path, labels, expected):
    path = written(tmp_path / "trace", dense(1, 1, 3, 4), facts_of("dense"), **labels)
    with pytest.raises(AttlasError, match=re.escape(expected)) as caught:
        Trace.load(path)
    assert str(path) in caught.value.got


@pytest.mark.parametrize(
    ("source", "target"),
    [(["abcd"], []), ("abcd", []), ([], "xyz"), ([["a"]], ["xyz", "x"])],
)
def test_a_label_that_is_no_string_is_refused_where_it_is_given(source, target):
    trace = Trace()
    with pytest.raises(
        AttlasError, match=r"expected (labels as lists|lists of strings|a tokenizer)"
    ):
        trace.label(source, target)
    with pytest.raises(
        AttlasError, match="expected labels as lists of strings, one list to a batch"
    ):
        trace.label_layer("a", source, target)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["a", "b", "c"]] * 2, "one to each place of an axis, which has 4 or 5; got 3"),
        ([["a"] * 6] * 2, "one to each place of an axis, which has 4 or 5; got 6"),
        ([["a"] * 4], "a list for each of 2 batch rows; got 1 list"),
        ([["a"] * 4] * 3, "a list for each of 2 batch rows; got 3 lists"),
    ],
)
def test_labels_that_do_not_fit_are_refused_where_they_are_given_and_leave_the_old_ones(
    rows, expected
):
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.ones(2, 1, 4, 5) / 5))
    source, target = [list("abcde")] * 2, [list("wxyz")] * 2
    trace.label(source, target)
    with pytest.raises(AttlasError, match=re.escape(expected)):
        trace.label(source, rows)
    with pytest.raises(AttlasError, match=re.escape(expected)):
        trace.label(rows, target)
    assert trace.tokens("a") == ((tuple("abcde"),) * 2, (tuple("wxyz"),) * 2)


def test_labels_of_a_layer_are_of_its_own_axes_where_they_are_given():
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.ones(2, 1, 4, 5) / 5))
    slots, queries = [list("abcde")] * 2, [list("wxyz")] * 2
    with pytest.raises(AttlasError, match=r"labels of the keys of layer 'a'.*has 5; got 4"):
        trace.label_layer("a", queries, queries)
    with pytest.raises(AttlasError, match=r"labels of the queries of layer 'a'.*has 4; got 5"):
        trace.label_layer("a", slots, slots)
    with pytest.raises(AttlasError, match=r"labels of the keys of layer 'a'.*2 batch rows; got 1"):
        trace.label_layer("a", slots[:1], queries)
    with pytest.raises(AttlasError, match=r"one of the layers \['a'\]; got 'b'"):
        trace.label_layer("b", slots, queries)
    assert trace.is_cross_attention("a")
    trace.label_layer("a", slots, queries)
    assert trace.tokens("a") == ((tuple("abcde"),) * 2, (tuple("wxyz"),) * 2)


def test_what_could_not_be_read_back_is_not_saved(tmp_path):
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.ones(1, 1, 3, 4) / 4))
    trace.source = (("too", "short"),)
    with pytest.raises(AttlasError, match="labels of the source, one to each place of an axis"):
        trace.save(tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []


@given(
    queries=st.integers(1, 6),
    slots=st.integers(1, 6),
    calls=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 20), max_size=4),
)
def test_labels_come_back_where_the_longest_fits_an_axis_or_the_steps_and_else_are_refused(
    tmp_path_factory, queries, slots, calls, lengths
):
    trace = Trace()
    for _ in range(calls):
        trace.record("a", DenseAttentionMap(torch.full((3, 1, queries, slots), 1 / slots)))
    rows = [["t"] * length for length in lengths]
    longest = max(lengths, default=0)
    fits = longest in (0, queries, slots, calls * queries) or (queries == 1 and longest <= calls)
    path = tmp_path_factory.mktemp("trace") / "trace"
    if fits and (len(rows) == 3 or not longest):
        trace.label(rows)
        trace.save(path)
        assert [len(row) for row in Trace.load(path).source] == lengths
    else:
        with pytest.raises(AttlasError, match="expected labels of the source"):
            trace.label(rows)
        assert trace.source == ()


def test_the_steps_of_a_growing_memory_keep_the_labels_of_all_of_them(tmp_path):
    trace = Trace()
    for slots in range(1, 8):
        trace.record("own", DenseAttentionMap(torch.full((1, 2, 1, slots), 1 / slots)))
        trace.record("cross", DenseAttentionMap(torch.full((1, 2, 1, 9), 1 / 9)))
    source, target = ["s"] * 9, ["t"] * 5  # the search went on for two steps
    trace.label([source], [target])
    trace.label_layer("own", [target], [target])
    trace.save(tmp_path / "trace")
    assert Trace.load(tmp_path / "trace").tokens("own") == ((tuple(target),),) * 2


def test_a_reading_of_no_rows_or_no_width_has_no_weights_and_uniform_ones():
    none = FactoredAttentionMap(torch.ones(0, 2, 3, 4), torch.ones(0, 1, 5, 4), 1.0, causal, 0)
    assert none.weights().shape == (0, 2, 3, 5)
    blind = FactoredAttentionMap(torch.ones(1, 2, 3, 0), torch.ones(1, 1, 3, 0), 1.0, causal, 0)
    torch.testing.assert_close(
        blind.weights()[0, 1], torch.ones(3, 3).tril() / torch.arange(1, 4)[:, None]
    )


def test_a_save_that_is_interrupted_leaves_the_older_trace_and_nothing_else(
    trace, tmp_path, monkeypatch
):
    path = tmp_path / "trace.safetensors"
    trace.save(path)
    before = path.read_bytes()

    def half(tensors, place, metadata):
        place.write_bytes(before[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr("attlas.recording.trace.save_file", half)
    with pytest.raises(KeyboardInterrupt):
        trace.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "bias", [torch.randn(1, 2, 3, 4), torch.rand(2, 1, 3, 4) > 0.3], ids=["float", "bool"]
)
def test_masks_caps_and_relations_come_back_from_a_file(tmp_path, bias):
    query, keys = torch.randn(2, 2, 3, 4), torch.randn(2, 1, 4, 4)
    trace = Trace()
    trace.record("biased", FactoredAttentionMap(query, keys, 0.5, everywhere, 1, None, bias, 30.0))
    allowed = torch.rand(1, 1, 3, 4) > 0.5
    trace.record("dense", DenseAttentionMap(torch.rand(2, 2, 3, 4), allowed))
    trace.set_kind("biased", cross_attention=False)
    trace.set_kind("dense", cross_attention=True)
    trace.record("both", DenseAttentionMap(torch.rand(2, 2, 3, 3), None))
    for cross_attention in (True, False, True):  # by call
        trace.set_kind("both", cross_attention=cross_attention)
    trace.save(tmp_path / "trace.safetensors")
    loaded = Trace.load(tmp_path / "trace.safetensors")
    assert [loaded.kind(layer) for layer in loaded] == ["self", "cross", None]
    attention_map = loaded["biased"]
    assert isinstance(attention_map, FactoredAttentionMap)
    assert torch.equal(attention_map.bias, bias)
    assert attention_map.softcap == 30.0
    for layer in trace:
        assert torch.equal(loaded[layer].weights(), trace[layer].weights())
        assert torch.equal(loaded[layer].allowed_rows(0, 3), trace[layer].allowed_rows(0, 3))


def test_a_saved_trace_may_be_read_by_whom_the_users_mask_allows(tmp_path):
    model = Calling(F.scaled_dot_product_attention)
    with observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    trace.save(tmp_path / "trace.safetensors")
    (tmp_path / "other").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_model_that_looks_itself_is_shown_by_the_name_that_it_has_in_its_trace():
    model = Calling(F.scaled_dot_product_attention)
    with observe(model) as trace:
        model(*vectors(2, 1, QUERIES, 4))
    assert '  "" (the model itself): ' in repr(trace)
    assert trace[""].shape[2] == QUERIES


def test_a_trace_without_its_checksum_is_refused(trace, tmp_path):
    path = tmp_path / "trace.safetensors"
    trace.save(path)
    with safe_open(path, "pt") as file:
        metadata = {name: value for name, value in file.metadata().items() if name != "sha256"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(
        {name: t / 2 if t.is_floating_point() else t for name, t in tensors.items()}, path, metadata
    )
    with pytest.raises(AttlasError, match="its bytes are not those that were saved"):
        Trace.load(path)
    save_sealed(tensors, path, metadata)
    assert tuple(Trace.load(path)) == tuple(trace)
