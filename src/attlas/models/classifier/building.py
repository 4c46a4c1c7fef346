"""From settings to a classifier."""

from torch import nn

from attlas.errors import AttlasError
from attlas.models.block import encoder_of, patterns_of, positions_of
from attlas.models.classifier.config import ClassifierConfig
from attlas.models.classifier.model import Classifier
from attlas.models.classifier.pooling import (
    AttentivePooling,
    FirstPooling,
    MaxPooling,
    MeanPooling,
    Pooling,
)
from attlas.models.embedding import Embedding


def build_classifier(config: ClassifierConfig, source_size: int, labels: int) -> Classifier:
    """A model with fresh parameters, drawn from torch's generator.

    source_size: how many ids the vocabulary has; labels: how many there are to choose from.
    """
    if source_size < 1:
        raise AttlasError(
            "a source vocabulary of at least one token",
            str(source_size),
            "pass the length of the vocabulary",
        )
    if labels < 2:
        raise AttlasError(
            "at least two labels to tell apart", str(labels), "check the label field of the data"
        )
    output = nn.Linear(config.width, labels)
    nn.init.xavier_uniform_(output.weight)
    nn.init.zeros_(output.bias)
    return Classifier(
        Embedding(source_size, config.width, "source"),
        positions_of(config),
        encoder_of(config, patterns_of(config.patterns, config.layers)),
        _pooling(config),
        output,
        config.dropout,
        config.word_dropout,
    )


def _pooling(config: ClassifierConfig) -> Pooling:
    match config.pooling:
        case "mean":
            return MeanPooling()
        case "max":
            return MaxPooling()
        case "first":
            return FirstPooling()
        case "attentive":
            return AttentivePooling(config.width)
