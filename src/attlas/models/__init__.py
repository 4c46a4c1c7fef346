"""Models: encoder–decoders and the classifier; ids in, logits out."""

from attlas.models.building import ModelConfig, TranslatorConfig, build
from attlas.models.classifier import Classifier, ClassifierConfig, build_classifier
from attlas.models.recurrent import LocalConfig, RecurrentConfig, RecurrentModel, RecurrentState
from attlas.models.sequence_to_sequence import Joinable, SequenceToSequence, State
from attlas.models.transformer import Transformer, TransformerConfig, TransformerState

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
]
