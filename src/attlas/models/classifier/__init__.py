"""The self-attention classifier."""

from attlas.models.classifier.building import build_classifier
from attlas.models.classifier.config import ClassifierConfig
from attlas.models.classifier.model import Classifier

__all__ = ["Classifier", "ClassifierConfig", "build_classifier"]
