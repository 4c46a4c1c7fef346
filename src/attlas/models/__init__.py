"""Models: encoder–decoders and the classifier; ids in, logits out."""

from attlas.models.classifier import Classifier, ClassifierConfig, build_classifier
from attlas.models.encoder_decoder import (
    Joinable,
    SequenceToSequence,
    State,
    sampled_logits,
)
from attlas.models.factory import ModelConfig, TranslatorConfig, build
from attlas.models.rnn.cells import RecurrentState
from attlas.models.rnn.config import LocalConfig, RecurrentConfig
from attlas.models.rnn.model import RecurrentModel
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.model_config import TransformerConfig
from attlas.models.transformer.state import TransformerState

__all__ = [
    "Classifier",
    "ClassifierConfig",
    "Joinable",
    "LocalConfig",
    "ModelConfig",
    "RecurrentConfig",
    "RecurrentModel",
    "RecurrentState",
    "SequenceToSequence",
    "State",
    "Transformer",
    "TransformerConfig",
    "TransformerState",
    "TranslatorConfig",
    "build",
    "build_classifier",
    "sampled_logits",
]
