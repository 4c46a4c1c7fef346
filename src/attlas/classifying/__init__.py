"""Classifying: from a text to its label."""

from attlas.classifying.classification import Classification
from attlas.classifying.text_classifier import TextClassifier

__all__ = ["Classification", "TextClassifier"]
