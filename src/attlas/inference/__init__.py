"""From a text to its translation or its label: a model with its vocabulary and its search."""

from typing import TYPE_CHECKING, Any

from attlas.inference.alignment import Link, pharaoh
from attlas.inference.classifier import Classification, TextClassifier
from attlas.inference.ray import ColumnTranslator
from attlas.inference.translator import Translation, Translator

if TYPE_CHECKING:
    from attlas.inference.ctranslate2 import FastTranslator
    from attlas.inference.huggingface_images import observe_images

__all__ = [
    "Classification",
    "ColumnTranslator",
    "FastTranslator",
    "Link",
    "TextClassifier",
    "Translation",
    "Translator",
    "observe_images",
    "pharaoh",
]


def __getattr__(name: str) -> Any:
    if name == "FastTranslator":  # it knows the formats of exports, which no other search needs
        from attlas.inference.ctranslate2 import FastTranslator

        return FastTranslator
    if name == "observe_images":  # it opens images, which no text needs
        from attlas.inference.huggingface_images import observe_images

        return observe_images
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
