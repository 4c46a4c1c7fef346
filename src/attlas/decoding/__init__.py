"""Decoding: greedy, beam search and sampling, written once over one `step` protocol."""

from attlas.decoding.alignment import Link, pharaoh
from attlas.decoding.column import ColumnTranslator
from attlas.decoding.config import DecodingConfig
from attlas.decoding.decode import Asked, decode, decode_all
from attlas.decoding.hypothesis import Hypothesis
from attlas.decoding.translation import Translation
from attlas.decoding.translator import Translator

__all__ = [
    "Asked",
    "ColumnTranslator",
    "DecodingConfig",
    "Hypothesis",
    "Link",
    "Translation",
    "Translator",
    "decode",
    "decode_all",
    "pharaoh",
]
