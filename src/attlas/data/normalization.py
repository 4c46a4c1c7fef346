"""Unicode normal forms: one spelling for texts that can be encoded in several ways."""

import tempfile
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import Literal

Normalization = Literal["none", "nfc", "nfkc"]
"""The form in which a text is read: as it is, composed (é for e and U+0301), or composed with
compatible characters made one (ﬁ is fi, a full-width Ａ is A)."""

_FORMS: dict[Normalization, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}


def normalized(text: str, form: Normalization) -> str:
    """The text in this form of Unicode."""
    return text if form == "none" else unicodedata.normalize(_FORMS[form], text)


@cache
def sentencepiece_rules(form: Normalization) -> bytes:
    """The end of a sentencepiece model that brings a text into this form by itself.

    A model is a protobuf message: later fields are merged into earlier ones, here the
    normalizer_spec. A program without attlas gets the same ids, except for sequences of accents
    without a composed character, which sentencepiece does not change.
    """
    import sentencepiece

    if form == "none":
        return b""
    sentencepiece.set_min_log_level(2)
    if form == "nfkc":
        normalizer = sentencepiece.SentencePieceNormalizer(rule_name="nfkc")
    else:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="ascii") as file:
            for decomposed, composed in _compositions():
                file.write(f"{_points(decomposed)}\t{_points(composed)}\n")
            file.flush()
            normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=file.name)
    model: bytes = normalizer.serialized_model_proto()
    return model


def form_of_model(processor: object) -> Normalization:
    """The form into which a sentencepiece model brings a text by itself; found by trying it."""
    normalize = processor.normalize  # type: ignore[attr-defined]
    if "e\u0301" in normalize("e\u0301"):
        return "none"
    return "nfkc" if "ﬁ" not in normalize("ﬁ") else "nfc"


WITHOUT_RULES = b"\x1a\x02\x12\x00"
"""The end of a sentencepiece model whose rules are none: its normalizer_spec (field 3) has an empty
precompiled_charsmap (field 2)."""


def _compositions() -> Iterator[tuple[str, str]]:
    """Every sequence that NFC writes as one other character or sequence, with that."""
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:  # halves of surrogate pairs
            continue
        character = chr(point)
        composed = unicodedata.normalize("NFC", character)
        parts = unicodedata.normalize("NFD", character)
        if composed != character:
            yield character, composed
        elif parts != character:
            yield from ((way, character) for way in sorted(_spellings_of(parts, character)))


def _spellings_of(parts: str, character: str) -> set[str]:
    """In how many ways a character may be written: its marks in any order, some composed."""
    orders = {parts[0] + "".join(marks) for marks in permutations(parts[1:])}
    orders |= {
        unicodedata.normalize("NFC", way[:end]) + way[end:]
        for way in list(orders)
        for end in range(2, len(way))
    }
    return {
        way for way in orders if way != character and unicodedata.normalize("NFC", way) == character
    }


def _points(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
