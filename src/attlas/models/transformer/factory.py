"""From settings to the layers of an encoder, and to what other layers are made of."""

from torch import nn

from attlas.layers import (
    LearnedPositions,
    MultiHead,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.models.transformer.block import (
    Encoder,
    EncoderLayer,
    FeedForward,
    Residual,
    normalisation,
)
from attlas.models.transformer.config import BlockConfig
from attlas.patterns import Pattern


def encoder_of(config: BlockConfig, patterns: list[Pattern]) -> Encoder:
    """An encoder with one layer for each pattern."""
    layers = [
        EncoderLayer(
            self_attention_of(config, pattern),
            residual_of(config),
            feedforward_of(config),
            residual_of(config),
        )
        for pattern in patterns
    ]
    return Encoder(layers, last_norm_of(config))


def positions_of(config: BlockConfig) -> Positions:
    """What is added to embeddings; rotary positions act elsewhere."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.width)
        case "learned":
            return LearnedPositions(config.width, config.longest)
        case _:
            return NoPositions()


def self_attention_of(config: BlockConfig, pattern: Pattern) -> MultiHead:
    """Between the positions of one sequence, rotary ones among them."""
    rotary = config.positions == "rotary"
    positions = RotaryPositions(config.width // config.heads) if rotary else None
    return attention_of(config, pattern, positions)


def attention_of(
    config: BlockConfig, pattern: Pattern, positions: RotaryPositions | None = None
) -> MultiHead:
    """Between two sequences, or within one."""
    return MultiHead(
        config.width,
        config.heads,
        key_heads=config.key_heads,
        bias=config.bias,
        pattern=pattern,
        dropout=config.attention_dropout,
        positions=positions,
    )


def feedforward_of(config: BlockConfig) -> FeedForward:
    """What follows every attention."""
    return FeedForward(
        config.width,
        config.feedforward,
        activation=config.activation,
        bias=config.bias,
        dropout=config.feedforward_dropout,
    )


def residual_of(config: BlockConfig) -> Residual:
    """What is around every sublayer."""
    return Residual(
        config.width, norm=config.norm, placement=config.placement, dropout=config.dropout
    )


def last_norm_of(config: BlockConfig) -> nn.Module | None:
    """What stands behind all layers, where they are pre-normed."""
    return normalisation(config.norm, config.width) if config.placement == "pre" else None
