"""From a text to its translation or its label: a model with its vocabulary and its search."""

from typing import TYPE_CHECKING, Any

from attlas.inference.alignment import Link, pharaoh
from attlas.inference.classifier import Classification, TextClassifier
from attlas.inference.ray import ColumnTranslator
from attlas.inference.translator import Translation, Translator

if TYPE_CHECKING:
    from attlas.inference.ctranslate2 import FastTranslator

__all__ = [
    "Classification",
    "ColumnTranslator",
    "FastTranslator",
    "Link",
    "TextClassifier",
    "Translation",
    "Translator",
    "pharaoh",
]


def __getattr__(name: str) -> Any:
    if name == "FastTranslator":  # it knows the formats of exports, which no other search needs
        from attlas.inference.ctranslate2 import FastTranslator

        return FastTranslator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
