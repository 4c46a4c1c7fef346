"""Labels of a trace by the tokenizer that made the ids."""

import re

import numpy as np
import pytest
import torch

from attlas.errors import AttlasError
from attlas.explorer.maps import TextMaps
from attlas.figures import plot_trace
from attlas.recording import DenseAttentionMap, Trace, observe
from attlas.recording.labels import spelled_bytes, tokens_of
from attlas.recording.trace import axes_of
from support import small_models

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["hello café 😀🙈\tx\n<|endoftext|>", "naïve", "▁ Ġ é <pad> 日本"]


@pytest.fixture(scope="module")
def of_bytes():
    """A byte-level BPE as GPT-2 has it."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>", "<pad>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["hello café world 😀 naïve\n"] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<|endoftext|>"
    )


def bytes_of(labels):
    """What the labels stand for."""
    text = "".join(labels).replace("\\t", "\t").replace("\\n", "\n")
    parts = re.split(r"<0x([0-9A-F]{2})>", text)
    return b"".join(
        bytes([int(part, 16)]) if number % 2 else part.encode() for number, part in enumerate(parts)
    )


def test_labels_of_bytes_are_the_text_that_the_tokenizer_decodes(of_bytes):
    ids = of_bytes(TEXTS[:2], padding=True, return_tensors="pt")
    labels = tokens_of(of_bytes, ids["input_ids"])
    assert [len(row) for row in labels] == [ids["input_ids"].shape[1]] * 2
    for row, expected in zip(labels, of_bytes.batch_decode(ids["input_ids"]), strict=True):
        assert bytes_of(row).decode().replace("▁", " ") == expected
    assert labels[0][:3] == ("hello", "▁café", "▁😀")
    assert labels[0][-1] == "<|endoftext|>"
    assert set(labels[1][-3:]) == {"<pad>"}
    assert not any("Ġ" in label or "Ã" in label for row in labels for label in row)


def test_ids_of_every_form_have_the_same_labels(of_bytes):
    batch = of_bytes(TEXTS, padding=True, return_tensors="pt")
    ids = batch["input_ids"]
    expected = tokens_of(of_bytes, ids)
    backend = of_bytes.backend_tokenizer
    for tokenizer in (of_bytes, backend):
        for given in (batch, ids.numpy(), ids.tolist(), [row for row in ids], list(ids.numpy())):  # noqa: C416
            assert tokens_of(tokenizer, given) == expected
    assert tokens_of(of_bytes, ids[1]) == expected[1:2]
    alone = tokens_of(backend, backend.encode(TEXTS[1]))[0]
    assert alone == expected[1][: len(alone)]
    assert tokens_of(of_bytes, ids[1].to(torch.int32)) == expected[1:2]
    assert tokens_of(of_bytes, np.int64(5)) == tokens_of(of_bytes, [[5]])


def test_a_slow_tokenizer_of_bytes_and_one_of_words_are_readable():
    slow = transformers.ByT5Tokenizer()
    ids = slow("é a").input_ids
    assert tokens_of(slow, ids) == (("<0xC3>", "<0xA9>", "▁", "a", "</s>"),)
    assert bytes_of(tokens_of(slow, ids)[0][:-1]).decode().replace("▁", " ") == "é a"
    words = small_models.tokenizer()
    ids = words(words.decode([5, 6, 7])).input_ids
    assert tokens_of(words, ids) == (tuple(words.convert_ids_to_tokens(ids)),)


class OfTiktoken:
    def decode_single_token_bytes(self, token):
        return [b" caf", b"\xc3", b"\xa9", b"\n"][token]


class OfSentencePiece:
    def id_to_piece(self, id_):
        return ["<s>", "▁caf", "<0xC3>"][id_]


def test_other_tokenizers_are_asked_in_their_own_way():
    assert tokens_of(OfTiktoken(), [0, 1, 2, 3]) == (("▁caf", "<0xC3>", "<0xA9>", "\\n"),)
    assert tokens_of(OfSentencePiece(), [0, 1, 2]) == (("<s>", "▁caf", "<0xC3>"),)


@pytest.mark.parametrize(
    ("ids", "reported"),
    [
        ([[1, 2], [3]], r"texts of 1 to 2 ids; pass the padded ids"),
        ([[5, -100]], r"got -100; numbers below 0, such as −100, are no token"),
        ([[5, 99_999]], r"got 99999; pass the tokenizer that made these ids"),
        ("hello", r"got 'hello'; pass the ids that the model was given"),
        ([["a"]], r"got \[\['a'\]\]; pass the ids"),
        (torch.ones(1, 2), r"whole numbers; got tensor"),
        (torch.ones(1, 2, 3).long(), r"\(batch, length\), whole numbers"),
        (None, r"whole numbers; got None"),
    ],
)
def test_ids_that_are_none_are_reported(of_bytes, ids, reported):
    with pytest.raises(AttlasError, match=reported):
        tokens_of(of_bytes, ids)


def traced(batch=2, length=5):
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.rand(batch, 1, length, length).softmax(-1)))
    trace.set_kind("a", cross_attention=False)
    return trace


def test_wrong_lengths_and_what_is_no_tokenizer_are_reported(of_bytes):
    ids = torch.full((2, 6), 40)
    with pytest.raises(AttlasError, match=r"got 6 of them; .*as in ids\[:, :-1\]"):
        traced().label(of_bytes, ids)
    with pytest.raises(AttlasError, match=r"which has 5; got 8 of them"):
        traced().label(of_bytes, torch.full((2, 8), 40))
    with pytest.raises(AttlasError, match=r"a list for each of 2 batch rows; got 1 list;"):
        traced().label(of_bytes, ids[:1, :-1])
    with pytest.raises(AttlasError, match="a tokenizer and the ids of the texts; got no ids"):
        traced().label(of_bytes)
    with pytest.raises(AttlasError, match="a tokenizer, with `convert_ids_to_tokens`; got a dict"):
        traced().label({}, ids)
    with pytest.raises(AttlasError, match=r"got a list and a \w+; .*the tokenizer first"):
        traced().label(ids.tolist(), of_bytes)
    with pytest.raises(AttlasError, match=r"write trace.label\(source, target\)"):
        traced().label(sources=[["a"]])
    trace = traced()
    trace.label(of_bytes, ids[:, :-1])
    assert trace.source == tokens_of(of_bytes, ids[:, :-1])


def test_a_model_of_hugging_face_is_labelled_where_figures_and_the_explorer_show_it(of_bytes):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(of_bytes), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, pad_token_id=1,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    batch = of_bytes(["hello café", "naïve x"], padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    with torch.no_grad(), observe(model) as trace:
        model(**batch)
    trace.label(of_bytes, batch)
    expected = tokens_of(of_bytes, batch)
    (path,) = trace
    batch_size, _, queries, num_keys = trace[path].shape
    for row in range(2):
        axes = axes_of(trace, path, row, batch_size, queries, num_keys)
        assert (axes.queries, axes.keys) == (expected[row], expected[row])
        (layer,) = TextMaps.of(trace, row).layers
        assert layer.axes == axes
    shown = {text.get_text() for axes in plot_trace(trace).axes for text in axes.get_xticklabels()}
    assert any("café" in text for text in shown)


def test_source_and_target_of_an_encoder_decoder_are_labelled_together_or_apart(of_bytes):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(of_bytes), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=1,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config).eval()
    source = of_bytes("hello café world", return_tensors="pt").input_ids
    target = of_bytes("naïve 😀", return_tensors="pt").input_ids
    with torch.no_grad(), observe(model) as trace:
        model(input_ids=source, decoder_input_ids=target)
    trace.label(of_bytes, source, decoder_input_ids=target)
    expected = tokens_of(of_bytes, source), tokens_of(of_bytes, target)
    assert (trace.source, trace.target) == expected
    (cross,) = (path for path in trace if trace.kind(path) == "cross")
    axes = axes_of(trace, cross, 0, 1, target.shape[1], source.shape[1])
    assert (axes.keys, axes.queries) == (expected[0][0], expected[1][0])
    with torch.no_grad(), observe(model) as again:
        model(input_ids=source, decoder_input_ids=target)
    again.label(of_bytes, decoder_input_ids=target)
    assert (again.source, again.target) == ((), expected[1])
    again.label(tokenizer=of_bytes, input_ids=source)
    assert (again.source, again.target) == expected
    again.label(target=[list(expected[1][0])])
    assert (again.source, again.target) == expected


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (("<0xC3>", "<0x84>", "pfel"), ("Ä", "…", "pfel")),
        (("a", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"), ("a", "😀", "…", "…", "…")),
        (("<0xD9>", "<0x85>", "<0xC3>", "<0xA9>"), ("م", "…", "é", "…")),
        (("<0xC3>", "x", "<0x84>"), ("<0xC3>", "x", "<0x84>")),
        (("<0x84>", "<0xC3>", "<0x84>"), ("<0x84>", "Ä", "…")),
        (("<0xF0>", "<0x9F>"), ("<0xF0>", "<0x9F>")),
        (("<0x0A>", "<0x41>", "<0x20>", "<0xFF>"), ("<0x0A>", "A", "<0x20>", "<0xFF>")),
        ((), ()),
    ],
)
def test_bytes_that_spell_a_character_are_shown_as_it(
    tokens: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    assert spelled_bytes(tokens) == shown


def test_every_text_is_spelled_by_its_bytes() -> None:
    for text in ("Äpfel für 猫 — مرحبا 😀", "naïve"):
        tokens = [f"<0x{byte:02X}>" for byte in text.encode()]
        labels = spelled_bytes(tokens)
        assert len(labels) == len(tokens)
        spelled = "".join(label for label in labels if label != "…")
        assert spelled.replace("<0x20>", " ") == text
