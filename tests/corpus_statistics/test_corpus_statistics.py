"""Statistics of a corpus: what comes of a text is what comes of it alone."""

from dataclasses import replace
from unittest.mock import create_autospec

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.readers import (
    ClassifierReader,
    CorpusText,
    MapRecord,
    TranslatorReader,
    batches_of,
    cut,
    windows_of,
)
from attlas.corpus_statistics.table import COLUMNS, TOKEN_COLUMNS, frames, measure_map
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.inference import Translator
from attlas.patterns import causal, everywhere
from attlas.recording import AttentionMap, DenseAttentionMap, FactoredAttentionMap
from attlas.runs import Run
from support.labelled_runs import trained as trained_classifier
from support.minilm import minilm
from support.small_models import model, saved, tokenizer

TEXTS = ["the cat sat on the mat", "a dog", "the very very small red cat ran in the big house"]
ALL = ("bert", "roberta", "albert", "gpt2", "llama", "bart", "t5")
WRITING = ("bart", "t5")
NUMBERS = [column.name for column in COLUMNS if column.kind == "number"]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    return {kind: saved(place / kind, kind) for kind in ALL}


@pytest.fixture(scope="session")
def translating(tmp_path_factory):
    from attlas.training import read_recipe, train

    place = tmp_path_factory.mktemp("translating")
    recipe = place / "tiny.toml"
    recipe.write_text(
        """
[data]
kind = "toy"
task = "reverse"
length = [1, 6]
symbols = 8
train = 200
valid = 10
test = 10
[vocabulary]
kind = "words"
size = 64
[model]
kind = "transformer"
embed_dim = 16
num_heads = 2
ffn_dim = 24
encoder_layers = 1
decoder_layers = 1
[training]
max_steps = 3
""",
        encoding="utf-8",
    )
    return train(read_recipe(recipe), place / "run").path


@pytest.fixture(scope="session")
def classifying(tmp_path_factory):
    return trained_classifier(tmp_path_factory.mktemp("classifying"), max_steps=3)


def rows(reader, texts, *, by_token=False, threshold=0.01):
    found = [
        measure_map(record, threshold, reader.named(record) if by_token else None)
        for record in reader.map_records(texts)
    ]
    found.sort(key=lambda one: one.line)
    (frame,) = frames(found, by_token=by_token, at_once=10**9)
    return frame


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        if name in NUMBERS:
            left, right = (np.array(x, dtype=float) for x in (values, other[name]))
            np.testing.assert_allclose(left, right, atol=2e-5, rtol=1e-4, err_msg=name)
        else:
            assert values == other[name], name


def joined(parts):
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("targets", [False, True])
def test_a_text_has_the_same_rows_in_any_company(folders, kind, targets):
    if targets and kind not in WRITING:
        with pytest.raises(AttlasError, match="a target beside it"):
            HuggingFaceReader(HuggingFaceFolder(folders[kind])).read(1, "the cat", "a dog")
        return
    reader = HuggingFaceReader(HuggingFaceFolder(folders[kind]))
    right = ["a dog ran", "the cat sat on the mat and ran", "red"] if targets else [None] * 3
    texts = [reader.read(i, *pair) for i, pair in enumerate(zip(TEXTS, right, strict=True), 1)]
    together = rows(reader, texts)
    assert_same(together, joined([rows(reader, [text]) for text in texts]))
    assert set(together) == {column.name for column in COLUMNS}
    whole = rows(reader, texts, by_token=True)
    assert set(whole) == {column.name for column in TOKEN_COLUMNS}
    assert len(whole["line"]) == sum(together["queries"])


@pytest.mark.parametrize("targets", [False, True])
def test_a_run_that_translates_has_the_same_rows_in_any_company(translating, targets):
    search = DecodingConfig.read({"method": "greedy"}, "the test")
    reader = TranslatorReader(Run(translating), search)
    lines = ["1 2 3", "4", "5 6 7 0 1 2 3"]
    right = ["3 2 1", "4", "3 2 1"] if targets else [None] * 3
    texts = [reader.read(i, *pair) for i, pair in enumerate(zip(lines, right, strict=True), 1)]
    assert_same(rows(reader, texts), joined([rows(reader, [text]) for text in texts]))
    found = rows(reader, texts)
    assert set(zip(found["layer"], found["kind"], strict=True)) == {
        ("encoder.layers.0.self_attention", "self"),
        ("decoder.layers.0.self_attention", "self"),
        ("decoder.layers.0.cross_attention", "cross"),
    }
    reported = dict(zip(found["layer"], found["causal"], strict=True))
    assert reported["decoder.layers.0.self_attention"] is True


def test_what_a_run_writes_itself_is_read_as_its_translation_shows_it(translating):
    search = DecodingConfig.read({"method": "greedy"}, "the test")
    reader = TranslatorReader(Run(translating), search)
    found = rows(reader, [reader.read(1, "1 2 3")], by_token=True)
    translation = Translator(translating, search)("1 2 3")
    cross = "decoder.layers.0.cross_attention"
    mine = [i for i, layer in enumerate(found["layer"]) if layer == cross and not found["head"][i]]
    assert tuple(found["token"][i] for i in mine) == translation.tokens
    expected = translation.trace[cross].entropy()[0, 0].tolist()
    np.testing.assert_allclose([found["entropy"][i] for i in mine], expected, atol=1e-5)
    peaks = translation.trace[cross].argmax()[0, 0].tolist()
    assert [found["argmax"][i] for i in mine] == peaks


def test_a_classifier_has_one_query_of_its_pooling_for_each_text(classifying):
    reader = ClassifierReader(Run(classifying))
    texts = [reader.read(1, "a very great film"), reader.read(2, "the plot<br />was dull")]
    found = rows(reader, texts, by_token=True)
    pooled = [i for i, layer in enumerate(found["layer"]) if layer == "pooling.attention"]
    assert [found["token"][i] for i in pooled] == ["text"] * 2
    assert [found["kind"][i] for i in pooled] == ["cross"] * 2
    assert [found["received"][i] for i in pooled] == [None] * 2
    for table in (found, rows(reader, texts)):  # a learned query stands nowhere
        empty = [
            [
                table[name][i] is None
                for name in ("distance", "self_weight", "previous_weight", "next_weight")
            ]
            for i, layer in enumerate(table["layer"])
        ]
        assert all(
            set(cells) == {layer.startswith("pooling")}
            for cells, layer in zip(empty, table["layer"], strict=True)
        )
    first = [i for i in range(len(found["line"])) if found["line"][i] == 2 and not found["head"][i]]
    assert [found["token"][i] for i in first][:5] == ["the", "plot", "was", "dull", "</s>"]
    assert_same(rows(reader, texts), joined([rows(reader, [text]) for text in texts]))


def test_begin_and_end_are_what_is_special_in_a_run(translating, classifying):
    search = DecodingConfig.read({"method": "greedy"}, "the test")
    reader = TranslatorReader(Run(translating), search)
    found = {
        record.layer: record.special
        for record in reader.map_records([reader.read(1, "1 2 3", "3 2")])
    }
    assert found == {
        "encoder.layers.0.self_attention": (3,),
        "decoder.layers.0.self_attention": (0,),
        "decoder.layers.0.cross_attention": (3,),
    }
    reader = ClassifierReader(Run(classifying))
    text = reader.read(1, "a very great film")
    assert {record.special for record in reader.map_records([text])} == {(len(text.source) - 1,)}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_the_numbers_are_those_of_the_weights_of_eager_attention(folders, kind):
    from transformers import AutoModel, AutoTokenizer

    eager = AutoModel.from_pretrained(folders[kind], attn_implementation="eager").eval()
    ids = AutoTokenizer.from_pretrained(folders[kind])(TEXTS[0], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        maps = eager(ids, output_attentions=True).attentions
    reader = HuggingFaceReader(HuggingFaceFolder(folders[kind]))
    found = rows(reader, [reader.read(i, text) for i, text in enumerate(TEXTS, 1)])
    layers = list(dict.fromkeys(found["layer"]))
    for place in (i for i, line in enumerate(found["line"]) if line == 1):
        weights = maps[layers.index(found["layer"][place])][0, found["head"][place]].double()
        n = len(weights)
        i = torch.arange(n)
        expected = {
            "entropy": -torch.special.xlogy(weights, weights).sum(-1).mean(),
            "max_weight": weights.amax(-1).mean(),
            "distance": (weights * (i[:, None] - i).abs()).sum(-1).mean(),
            "count_above": (weights > 0.01).sum(-1).double().mean(),
            "first_weight": weights[:, 0].mean(),
            "last_weight": weights[:, -1].mean(),
            "self_weight": weights.diagonal().mean(),
            "previous_weight": weights.diagonal(-1).sum() / n,
            "next_weight": weights.diagonal(1).sum() / n,
            "received": weights.sum(0).max() / n,
        }
        assert (found["queries"][place], found["keys"][place]) == (n, n)
        assert found["causal"][place] is (kind != "bert")
        for name, value in expected.items():
            assert found[name][place] == pytest.approx(float(value), abs=1e-5), name


def test_a_map_by_hand():
    weights = torch.tensor([[[[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]]])

    text = CorpusText(7, (5, 6), unread=2)
    record = MapRecord(text, "here", 0, "cross", DenseAttentionMap(weights), (8, 9, 10))
    one = measure_map(record, 0.3, ("x", "y", "z"))
    assert (one.line, one.unread, one.queries, one.num_keys, one.causal) == (7, 2, 3, 2, False)
    assert one.of_heads["entropy"][0] == pytest.approx((0 + np.log(2) + 0.562335) / 3, abs=1e-6)
    assert one.of_heads["max_weight"][0] == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert one.of_heads["count_above"][0] == pytest.approx((1 + 2 + 1) / 3)
    assert one.of_heads["first_weight"][0] == pytest.approx(1.75 / 3)
    assert one.of_heads["received"][0] == pytest.approx(1.75 / 3)
    (frame,) = frames([one], by_token=True)
    assert frame["token"] == ["x", "y", "z"]
    assert frame["position"] == [0, 1, 2]
    assert frame["argmax"] == [0, 0, 1]
    assert frame["received"] == [None] * 3


def test_what_needs_a_place_that_nobody_knows_is_empty():
    weights = torch.tensor([[[[0.2, 0.5, 0.3]]]])
    record = MapRecord(
        CorpusText(1, (5, 6, 7)), "here", 0, "self", DenseAttentionMap(weights), (8,)
    )
    for tokens in (None, ("x",)):
        one = measure_map(record, 0.3, tokens)
        (frame,) = frames([one], by_token=tokens is not None)
        for name in ("causal", "distance", "self_weight", "previous_weight", "next_weight"):
            assert frame[name] == [None], name
        assert frame["max_weight"] == pytest.approx([0.5])
        known = measure_map(
            replace(record, attention_map=DenseAttentionMap(weights, query_offset=1)), 0.3, tokens
        )
        (frame,) = frames([known], by_token=tokens is not None)
        assert frame["distance"] == pytest.approx([0.5])
        assert frame["causal"] == [False]


def test_a_module_that_layers_share_is_reported_call_by_call(folders):
    reader = HuggingFaceReader(HuggingFaceFolder(folders["albert"]))
    found = rows(reader, [reader.read(1, TEXTS[0])])
    assert len(set(found["layer"])) == 1
    assert found["call"] == [0] * 4 + [1] * 4


@pytest.mark.parametrize("kind", ALL)
def test_a_text_is_cut_to_what_the_model_can_read_and_tells_how_much_is_left_out(folders, kind):
    reader = HuggingFaceReader(HuggingFaceFolder(folders[kind]))
    text = reader.read(1, "the cat sat " * 20)
    longest = {"t5": None, "roberta": 22}.get(kind, 24)
    assert (len(text.source), text.unread) == ((longest, 62 - longest) if longest else (62, 0))
    assert text.source[-1] == 3  # the end of a text stays
    assert set(rows(reader, [text])["unread"]) == {text.unread}


def test_nothing_is_read_of_a_line_without_a_word(folders, translating, classifying):
    search = DecodingConfig.read({"method": "greedy"}, "the test")
    readers = [
        HuggingFaceReader(HuggingFaceFolder(folders["bart"])),
        TranslatorReader(Run(translating), search),
        ClassifierReader(Run(classifying)),
    ]
    for reader in readers:
        assert [reader.read(1, text) for text in ("", " \t", "\u2003")] == [None] * 3
    for reader in readers[:2]:
        assert reader.read(1, "1 2", " ") is None


def test_a_folder_without_weights_for_a_layer_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = saved(tmp_path / "half", "bert")
    path = folder / "model.safetensors"
    weights = load_file(path)
    kept = {k: v for k, v in weights.items() if "layer.1.attention.self.query" not in k}
    save_file(kept, path, {"format": "pt"})
    with pytest.raises(
        AttlasError, match=r"got none for encoder\.layer\.1\.attention\.self\.query"
    ):
        HuggingFaceFolder(folder)


def test_a_folder_without_a_tokenizer_or_of_no_known_kind_is_reported_as_such(tmp_path):
    model("bert").save_pretrained(tmp_path / "bare")
    with pytest.raises(AttlasError, match="got no tokenizer"):
        HuggingFaceFolder(tmp_path / "bare")
    odd = tmp_path / "odd"
    tokenizer().save_pretrained(odd)
    (odd / "config.json").write_text('{"model_type": "nonsense"}', encoding="utf-8")
    with pytest.raises(AttlasError, match="transformers itself can read"):
        HuggingFaceFolder(odd)


def test_the_facts_of_a_model_tell_another_one_and_not_another_place(tmp_path):
    def facts(name, **options):
        return HuggingFaceFolder(saved(tmp_path / name, "gpt2", **options)).facts

    one = facts("one")
    (tmp_path / "sub").mkdir()
    (tmp_path / "one").rename(tmp_path / "sub" / "one")
    assert HuggingFaceFolder(tmp_path / "sub" / "one").facts == one
    other = HuggingFaceFolder(saved(tmp_path / "other", "gpt2", resid_pdrop=0.3)).facts
    assert other["settings"] != one["settings"]
    assert {k: v for k, v in one.items() if other[k] != v}.keys() == {"settings", "checkpoint"}


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 6), st.booleans(), st.booleans())
def test_a_text_that_is_cut_out_of_a_batch_is_the_same_text(seed, queries, slots, looks_back, bias):
    torch.manual_seed(seed)
    if looks_back:
        queries = slots
    query, keys = torch.randn(2, 2, queries + 2, 4), torch.randn(2, 1, slots + 2, 4)
    pattern = causal if looks_back else everywhere
    token_mask = torch.ones(2, slots + 2, dtype=torch.bool)
    token_mask[0, slots:] = False
    mask = torch.randn(1, 2, queries + 2, slots + 2) if bias else None
    whole = FactoredAttentionMap(query, keys, 0.5, pattern, 0, token_mask, mask)
    alone = cut(whole, 0, queries, slots)
    assert alone.shape == (1, 2, queries, slots)
    torch.testing.assert_close(alone.weights(), whole.weights()[:1, :, :queries, :slots])
    dense = cut(DenseAttentionMap(whole.weights()), 0, queries, slots)
    torch.testing.assert_close(dense.weights(), alone.weights())
    assert bool(alone.allowed_rows(0, queries).any())


def test_a_reading_of_another_kind_is_not_cut():
    class Turned(DenseAttentionMap):
        def at(self, row):
            return create_autospec(AttentionMap, instance=True)

    with pytest.raises(AttlasError, match=r"an attention map of attlas; got .*observe with attlas"):
        cut(Turned(torch.ones(1, 1, 2, 2)), 0, 1, 1)


@given(
    st.lists(st.one_of(st.none(), st.integers(1, 12)), max_size=40),
    st.integers(1, 7),
    st.integers(1, 30),
    st.data(),
)
def test_who_goes_on_after_a_window_finds_the_windows_of_who_never_stopped(
    widths, lines, tokens, data
):
    texts = [w and CorpusText(i, (0,) * w) for i, w in enumerate(widths, 1)]
    windows = list(windows_of(texts, lines=lines, tokens=tokens))
    assert sum(window.lines for window in windows) == len(texts)
    assert [t for window in windows for t in window.texts] == [t for t in texts if t]
    for window in windows:
        assert window.lines <= lines
        assert len(window.texts) < 2 or sum(t.width for t in window.texts) <= tokens
        batches = batches_of(window.texts, 13)
        assert sorted(t.line for b in batches for t in b) == [t.line for t in window.texts]
    stopped = data.draw(st.integers(0, len(windows)))
    done = sum(window.lines for window in windows[:stopped])
    again = list(windows_of(texts[done:], lines=lines, tokens=tokens))
    assert again == windows[stopped:]


def test_what_is_drawn_anew_at_each_loading_is_no_part_of_the_checksum(folders):
    one, other = (HuggingFaceFolder(folders["bert"]) for _ in range(2))
    assert not torch.equal(one.model.pooler.dense.weight, other.model.pooler.dense.weight)
    assert one.facts == other.facts


def test_layers_are_chosen_by_path_or_pattern(folders):
    reader = HuggingFaceReader(HuggingFaceFolder(folders["bart"]))
    texts = [reader.read(1, TEXTS[0])]
    chosen = {record.layer for record in reader.map_records(texts, ["*encoder_attn"])}
    assert chosen == {"model.decoder.layers.0.encoder_attn"}
    with pytest.raises(AttlasError, match="of which it has none"):
        list(reader.map_records(texts, ["nonsense"]))


def test_a_layer_that_does_not_look_from_token_to_token_is_refused(folders):
    reader = HuggingFaceReader(HuggingFaceFolder(folders["gpt2"]))
    texts = [reader.read(1, TEXTS[0])]
    token_mask = reader._run
    reader._run = lambda batch: token_mask([batch[0], CorpusText(2, batch[0].source)])
    with pytest.raises(AttlasError, match="1 × 8 × 8 texts, queries and keys; got 2 × 8 × 8"):
        list(reader.map_records(texts))


def test_what_an_encoder_decoder_writes_is_its_own_greedy_text(folders):
    from transformers import AutoModelForSeq2SeqLM

    for kind in WRITING:
        reader = HuggingFaceReader(HuggingFaceFolder(folders[kind]))
        text = reader.read(1, TEXTS[0])
        (done,) = reader.completed([text])
        plain = AutoModelForSeq2SeqLM.from_pretrained(folders[kind]).eval()
        ids = torch.tensor([text.source])
        requested, state = [2], plain.get_encoder()(ids)
        with torch.no_grad():
            for _ in done.expected:
                logits = plain(encoder_outputs=state, decoder_input_ids=torch.tensor([requested]))[
                    0
                ]
                requested.append(int(logits[0, -1].argmax()))
        assert list(done.expected) == requested[1:]
        assert list(done.decoder_input) == requested[:-1]
        assert done.finished is (requested[-1] == 3)


def test_the_real_minilm_has_its_previous_token_head():
    reader = HuggingFaceReader(HuggingFaceFolder(minilm()))
    texts = [reader.read(i, text) for i, text in enumerate(TEXTS, 1)]
    frame = rows(reader, texts)
    previous_weight = np.zeros((6, 12))
    for layer, head, value in zip(
        frame["layer"], frame["head"], frame["previous_weight"], strict=True
    ):
        previous_weight[int(layer.split(".")[2]), head] += value / len(texts)
    assert np.unravel_index(previous_weight.argmax(), previous_weight.shape) == (0, 2)
