"""Sentencepiece learns the same from the counts of words as from the texts; many are sampled."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest
import sentencepiece

from attlas.data import ShippedData, Subwords, train_subwords, word_counts
from attlas.data.normalization import Normalization, normalized, sentencepiece_rules
from attlas.data.vocabulary import BEGIN, END, PAD, UNKNOWN

ODD = [
    "", " ", "  a  b ", "x▁y", "▁", "▅▅", "a▅b", "a\rb\r", "x\0y", "end\r", "\r", "\r\r",
    "<num> a<num>b", "a\u2028b", "\x85", "日本語のテキスト" * 3, "😀 😀x", "\ufeffz",
    "e\u0301 ﬁ Ａ",
]  # fmt: skip
TABS = ["a\tb", "\ta\t", "\t\t", "tab \t tab"]
SYMBOLS = ("<num>", "__X", "e")


@pytest.fixture(scope="module")
def plain() -> list[str]:
    pairs = ShippedData().corpus("train").pairs[:1_000]
    return [text for pair in pairs for text in pair]


def of_sentences(
    texts: Sequence[str], size: int, form: Normalization = "none", symbols: Sequence[str] = ()
) -> bytes:
    """The model that is learned from the sentences themselves, all of which are held."""
    sentences = [f" {normalized(text, form)}".replace("▅", " ") for text in texts]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        hard_vocab_limit=False,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        byte_fallback=True,
        user_defined_symbols=list(symbols),
        required_chars="▁",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        max_sentence_length=max(10, 4 * max(map(len, sentences)) + 1),
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue() + sentencepiece_rules(form)


@pytest.mark.parametrize("text", [*ODD, *TABS], ids=ascii)
def test_a_model_is_the_same_bytes_whatever_a_text_holds(plain: list[str], text: str) -> None:
    texts = [*plain, *[text] * 7]
    assert train_subwords(texts, "bpe", 700).model == of_sentences(texts, 700)


@pytest.mark.parametrize("form", ["none", "nfkc"])
@pytest.mark.parametrize("odd", [ODD * 5, [*ODD, *TABS] * 5], ids=["counted", "with tabs"])
def test_a_model_with_symbols_is_the_same_bytes(
    plain: list[str], form: Normalization, odd: list[str]
) -> None:
    texts = [*odd, *plain]
    model = train_subwords(texts, "bpe", 800, normalization=form, symbols=SYMBOLS).model
    assert model == of_sentences(texts, 800, form, SYMBOLS)


def encoded(subwords: Subwords, texts: Sequence[str]) -> list[list[int]]:
    rows = subwords.encoder("H")(texts)
    return [rows[place].tolist() for place in range(len(rows))]


@pytest.mark.parametrize("form", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_many_texts_are_encoded_as_one_by_one(
    plain: list[str], form: Normalization, kind: Literal["bpe", "unigram"]
) -> None:
    subwords = train_subwords(plain + ODD, kind, 800, normalization=form, symbols=SYMBOLS)
    texts = [*plain, *ODD, *TABS, *(one + other for one in ODD for other in ODD), *plain[:50]]
    assert encoded(subwords, texts) == [subwords.encode(text) for text in texts]


def test_words_beyond_those_that_are_remembered_are_encoded(
    plain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.data.subwords._REMEMBERED", 10)
    subwords = train_subwords(plain, "bpe", 700)
    assert encoded(subwords, plain) == [subwords.encode(text) for text in plain]


def test_of_very_many_words_every_second_or_fourth_text_is_read(
    plain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train_subwords(plain, "bpe", 700).step == 1
    monkeypatch.setattr(word_counts, "_BLOCK", 10)
    monkeypatch.setattr(word_counts, "MOST_WORDS", 2_000)
    sampled = train_subwords(plain, "bpe", 700)
    assert sampled.step > 1
    assert sampled.model == of_sentences(plain[:: sampled.step], 700)


def test_of_very_many_characters_a_sample_is_read_for_a_unigram_model(
    plain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    characters = sum(map(len, plain))
    monkeypatch.setattr(word_counts, "MOST_CHARACTERS", characters // 3)
    sampled = train_subwords(iter(plain), "unigram", 700)
    assert sampled.step == 4
    monkeypatch.undo()
    part = train_subwords(plain[::4], "unigram", 700)
    ids = range(700)
    assert sampled.pieces(ids) == part.pieces(ids)
    assert sampled.pieces(ids) != train_subwords(plain[1::4], "unigram", 700).pieces(ids)


def test_of_one_text_with_very_many_words_every_second_or_fourth_part_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_counts, "MOST_WORDS", 10)
    words = [f"w{number}" for number in range(50)]
    long = " ".join(words)
    found = word_counts.sentences_of([long, "short"], str, words=True)
    parts = list(word_counts._parts(long))
    assert " ".join(parts) == long
    assert max(map(len, parts)) <= 10
    read = [*parts, "short"][:: found.step]
    assert 1 < len(read) < len(parts)
    assert list(found.lines) == [f" {word}\t1" for part in read for word in part.split()]
    assert train_subwords([long], "bpe", 300).step > 1  # a whole book as one string


@pytest.mark.parametrize(
    "text", ["", " ", "x" * 25, " " * 25, "a b " * 9, "x" * 10, "x" * 10 + " "]
)
def test_the_parts_of_a_text_have_all_of_its_words(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_counts, "MOST_WORDS", 10)
    parts = list(word_counts._parts(text))
    assert all(len(part) <= 10 for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    monkeypatch.setattr(word_counts, "MOST_WORDS", 1)
    texts = [f"{text}cd", f"{text} ef"]
    # Of one part more words may be made than there are characters.
    assert word_counts.sentences_of(texts, lambda part: f"{part} 1 2", words=True).counted


def test_of_one_text_with_very_many_characters_a_unigram_model_reads_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_counts, "MOST_WORDS", 10)
    monkeypatch.setattr(word_counts, "MOST_CHARACTERS", 100)
    found = word_counts.sentences_of(["w1 w2 w3 " * 40], str, words=False)
    assert found.step == 4
    assert sum(map(len, found.lines)) <= 110


def test_texts_that_can_be_read_once_give_the_same_model(plain: list[str]) -> None:
    assert train_subwords(iter(plain), "bpe", 700).model == train_subwords(plain, "bpe", 700).model


def test_a_model_without_the_format_of_its_input_is_read(plain: list[str]) -> None:
    model = train_subwords(plain, "bpe", 700).model
    assert word_counts.without_input_format(model) == model
    assert Subwords(model).encode("house") == train_subwords(plain, "bpe", 700).encode("house")


@pytest.mark.parametrize("most", [10**6, 300])
@pytest.mark.parametrize("odd", [[], ODD, [*ODD, *TABS]])
def test_several_processes_count_the_same(
    plain: list[str], odd: list[str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_counts, "_BLOCK", 10)
    monkeypatch.setattr(word_counts, "MOST_WORDS", most)
    texts = [*plain, *odd, *plain]
    parts = word_counts.Parted([texts[begin : begin + 300] for begin in range(0, len(texts), 300)])
    assert len(parts.parts) > 4
    alone = word_counts.sentences_of(texts, str.lower, words=True)
    together = word_counts.sentences_of(parts, str.lower, words=True, processes=2)
    assert [*together.lines] == [*alone.lines]
    assert replace(together, lines=()) == replace(alone, lines=())
    assert together.counted == ("\t" not in "".join(odd) or most < 10**6)
    assert (together.step > 1) == (most < 10**6)
