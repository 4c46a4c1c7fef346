"""Unicode normal forms: texts that are written in several ways are read in one."""

import unicodedata
from pathlib import Path
from typing import Literal

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import (
    Characters,
    Subwords,
    Vocabulary,
    VocabularyConfig,
    Words,
    build_vocabulary,
    load_vocabulary,
)
from attlas.errors import AttlasError

TEXTS = [
    f"{a} {b} café résumé, naïve: 한국어 {n} fi A Tiếng Việt rất đẹp ガラス Å ΐ"
    for n in range(20)
    for a in "abcd"
    for b in "xyz"
]
COMPOSED = ["café", "Tiếng Việt rất đẹp", "한국어", "ガラス", "Å", "ậ ṩ ΐ", "plain", ""]
KINDS = ["bpe", "unigram", "words", "characters"]
# What composes, what does not, and marks in any order.
MARKS = "aeoAE \u0301\u0302\u0323\u0307\u0308\u0327\u0345\u1112\u1161\u11abカ\u3099ﬁＡ①"
ANY = st.characters(codec="utf-8", categories=["L", "M", "N", "P", "Zs"])
MARKED = st.text(ANY, max_size=8) | st.text(MARKS, max_size=12)


def vocabulary(kind: str, form: str, texts: list[str] = TEXTS) -> Vocabulary:
    config = VocabularyConfig.model_validate({"kind": kind, "size": 600, "normalization": form})
    return build_vocabulary(config, texts, "vocabulary")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_however_a_text_is_written_it_has_the_same_ids(
    kind: str, form: str, written: Literal["NFC", "NFD"], tmp_path: Path
) -> None:
    trained_on = [unicodedata.normalize(written, text) for text in TEXTS]
    one = vocabulary(kind, form, trained_on)
    path = (tmp_path / "a").with_suffix(one.suffix)
    one.save(path)
    again = load_vocabulary(path)
    assert (one.normalization, again.normalization) == (form, form)
    for text in COMPOSED:
        apart = unicodedata.normalize("NFD", text)
        assert one.encode(apart) == one.encode(text) == again.encode(apart)
        assert one.pieces_of(apart) == one.pieces_of(text)
        if isinstance(one, Subwords):
            assert one.decode(one.encode(apart)) == text
            drawn = [one.sample([each], 0.3, "a seed") for each in (apart, text)]
            assert drawn[0] == drawn[1]
    compatible = one.encode("ﬁ Ａ") == one.encode("fi A")
    assert compatible == (form == "nfkc")


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_form_a_text_is_read_as_it_is_written(kind: str) -> None:
    one = vocabulary(kind, "none")
    assert one.normalization == "none"
    assert one.encode("cafe\u0301") != one.encode("café")


def test_the_file_of_a_vocabulary_without_a_form_is_what_it_always_was(tmp_path: Path) -> None:
    Words(["a"]).save(tmp_path / "a.json")
    assert "normalization" not in (tmp_path / "a.json").read_text()
    (tmp_path / "b.json").write_text('{"kind": "words", "normalization": "nfx", "tokens": ["a"]}')
    with pytest.raises(AttlasError, match="an unknown normalization 'nfx'"):
        load_vocabulary(tmp_path / "b.json")


FORMED = {form: vocabulary("bpe", form) for form in ("nfc", "nfkc")}
PLAIN = {
    form: sentencepiece.SentencePieceProcessor(model_proto=one.model)
    for form, one in FORMED.items()
    if isinstance(one, Subwords)
}


@given(text=MARKED)
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_what_is_read_is_what_unicode_says(form: Literal["nfc", "nfkc"], text: str) -> None:
    expected = unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text)
    one = FORMED[form]
    assert one.decode(one.encode(text)) == expected
    letters = Characters(sorted(set(expected)), form)
    assert letters.decode(letters.encode(text)) == expected


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_programs_without_attlas_read_the_model_in_its_form_too(form: str) -> None:
    letters = [chr(n) for n in range(0xA0, 0x3100) if unicodedata.decomposition(chr(n))]
    letters += [chr(n) for n in range(0xAC00, 0xD7A4, 11)]
    for text in [*COMPOSED, *letters]:
        for written in (text, unicodedata.normalize("NFD", text)):
            assert PLAIN[form].encode(f" {written}") == FORMED[form].encode(written), ascii(text)
