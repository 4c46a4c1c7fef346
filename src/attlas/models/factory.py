"""Build a model from its settings."""

from typing import Annotated, Any

from pydantic import Field

from attlas.errors import AttlasError, ConfigError, quoted
from attlas.models.classifier import ClassifierConfig
from attlas.models.encoder_decoder import SequenceToSequence
from attlas.models.rnn.config import RecurrentConfig
from attlas.models.rnn.model import build_recurrent
from attlas.models.transformer.model import build_transformer
from attlas.models.transformer.model_config import TransformerConfig

TranslatorConfig = RecurrentConfig | TransformerConfig
ModelConfig = Annotated[
    RecurrentConfig | TransformerConfig | ClassifierConfig, Field(discriminator="kind")
]
"""The settings of any model; `kind` says which."""


def build(
    config: TranslatorConfig, source_size: int, target_size: int | None = None
) -> SequenceToSequence[Any]:
    """A model that translates, with fresh parameters, drawn from torch's generator.

        model = build(RecurrentConfig(cell="gru", embed_dim=64, hidden_dim=128), 100)

    The sizes are those of the vocabularies, in ids; target_size = None: as source_size. For a
    classifier see `build_classifier`.
    """
    if not isinstance(config, RecurrentConfig | TransformerConfig):
        raise ConfigError(
            "the settings of an encoder–decoder, as a TransformerConfig or a RecurrentConfig",
            f"the class {config.__name__}" if isinstance(config, type) else quoted(config),
            "pass such as attlas.models.TransformerConfig(embed_dim=256)",
        )
    target_size = source_size if target_size is None else target_size
    for side, size in (("source", source_size), ("target", target_size)):
        if size < 1:
            raise AttlasError(
                f"a {side} vocabulary of at least one token",
                str(size),
                "pass the length of the vocabulary",
            )
    if config.tie_source and source_size != target_size:
        raise ConfigError(
            "one joint vocabulary for tie_source = true",
            f"{source_size} source and {target_size} target tokens",
            "make the vocabulary joint, or set tie_source = false",
        )
    if isinstance(config, TransformerConfig):
        return build_transformer(config, source_size, target_size)
    return build_recurrent(config, source_size, target_size)
