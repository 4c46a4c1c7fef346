"""Classifying: from a text to its label."""

from attlas.inference.alignment import Link, pharaoh
from attlas.inference.classifier import Classification, TextClassifier
from attlas.inference.ctranslate2 import FastTranslator
from attlas.inference.ray import ColumnTranslator
from attlas.inference.translator import Translation, Translator

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
