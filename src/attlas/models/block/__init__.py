"""What the layers of a Transformer and of a classifier are made of."""

from attlas.models.block.building import (
    attention_of,
    encoder_of,
    feedforward_of,
    last_norm_of,
    positions_of,
    residual_of,
    self_attention_of,
)
from attlas.models.block.config import BlockConfig
from attlas.models.block.encoder import Encoder, EncoderLayer
from attlas.models.block.feedforward import FeedForward
from attlas.models.block.patterns import Patterns, check_patterns, patterns_of
from attlas.models.block.residual import Residual, Vectors

__all__ = [
    "BlockConfig",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Patterns",
    "Residual",
    "Vectors",
    "attention_of",
    "check_patterns",
    "encoder_of",
    "feedforward_of",
    "last_norm_of",
    "patterns_of",
    "positions_of",
    "residual_of",
    "self_attention_of",
]
