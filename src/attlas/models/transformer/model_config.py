"""Settings of the Transformer."""

from typing import Literal, Self

from pydantic import model_validator

from attlas.models.config import Count
from attlas.models.transformer.config import BlockConfig, Patterns, check_patterns


class TransformerConfig(BlockConfig):
    """A Transformer, encoder and decoder."""

    kind: Literal["transformer"] = "transformer"
    encoder_layers: Count = 3
    """How many layers the encoder has."""
    decoder_layers: Count = 3
    """How many layers the decoder has."""
    encoder_patterns: Patterns = ("everywhere",)
    """Where the layers of the encoder may look: one pattern for all, or one for each."""
    decoder_patterns: Patterns = ("everywhere",)
    """The same for the self-attention of the decoder, which besides sees no later token."""
    tie_output: bool = True
    """Whether the matrix of the output layer is the target embedding."""
    tie_source: bool = False
    """Whether both languages share one embedding. Left out: as vocabulary.shared."""

    @model_validator(mode="after")
    def _patterns_fit(self) -> Self:
        check_patterns("encoder_", self.encoder_patterns, self.encoder_layers)
        check_patterns("decoder_", self.decoder_patterns, self.decoder_layers)
        return self
