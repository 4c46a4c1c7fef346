"""Settings of the Transformer."""

from typing import Literal, Self

from pydantic import model_validator

from attlas.models.config import Count
from attlas.models.transformer.config import BlockConfig, Patterns, check_patterns


class TransformerConfig(BlockConfig):
    """A Transformer, encoder and decoder; see `BlockConfig` for what their layers are like.

    encoder_layers, decoder_layers: how many. encoder_patterns: where the encoder's layers may look;
    decoder_patterns: the same for the decoder's self-attention, which besides sees no later token.
    tie_output: the output layer's matrix is the target embedding. tie_source: both languages
    share one embedding; needs a shared vocabulary.
    """

    kind: Literal["transformer"] = "transformer"
    encoder_layers: Count = 3
    decoder_layers: Count = 3
    encoder_patterns: Patterns = ("everywhere",)
    decoder_patterns: Patterns = ("everywhere",)
    tie_output: bool = True
    tie_source: bool = False

    @model_validator(mode="after")
    def _patterns_fit(self) -> Self:
        check_patterns("encoder_", self.encoder_patterns, self.encoder_layers)
        check_patterns("decoder_", self.decoder_patterns, self.decoder_layers)
        return self
