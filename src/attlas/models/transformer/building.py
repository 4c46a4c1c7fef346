"""From settings to a Transformer."""

from torch import nn

from attlas.layers import (
    LearnedPositions,
    MultiHead,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.models.embedding import Embedding
from attlas.models.output import Output
from attlas.models.transformer.config import BlockConfig, TransformerConfig
from attlas.models.transformer.decoder import Decoder, DecoderLayer
from attlas.models.transformer.encoder import Encoder, EncoderLayer
from attlas.models.transformer.feedforward import FeedForward
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.residual import Residual, normalisation
from attlas.patterns import Pattern, both, causal, everywhere, parse


def build_transformer(config: TransformerConfig, source_size: int, target_size: int) -> Transformer:
    """A model with fresh parameters, drawn from torch's generator: `Embedding` says how embeddings
    are, all matrices are uniform with the variance 2 / (in + out) (Glorot & Bengio, 2010).

    Sizes: how many ids each vocabulary has.
    """
    width = config.width
    return Transformer(
        None if config.tied_source else Embedding(source_size, width, "source"),
        Embedding(target_size, width, "target"),
        (positions_of(config), positions_of(config)),
        encoder_of(config, patterns_of(config.encoder_patterns, config.encoder_layers)),
        _decoder(config),
        Output(width, width, target_size, tied=config.tied_output),
        config.dropout,
    )


def encoder_of(config: BlockConfig, patterns: list[Pattern]) -> Encoder:
    """An encoder with one layer for each pattern."""
    layers = [
        EncoderLayer(
            _self_attention(config, pattern),
            _residual(config),
            _feedforward(config),
            _residual(config),
        )
        for pattern in patterns
    ]
    return Encoder(layers, _last_norm(config))


def positions_of(config: BlockConfig) -> Positions:
    """What is added to embeddings; rotary positions act elsewhere."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.width)
        case "learned":
            return LearnedPositions(config.width, config.longest)
        case _:
            return NoPositions()


def patterns_of(texts: tuple[str, ...], layers: int) -> list[Pattern]:
    """One pattern per layer."""
    parsed = [parse(text) for text in texts]
    return parsed * layers if len(parsed) == 1 else parsed


def _decoder(config: TransformerConfig) -> Decoder:
    patterns = patterns_of(config.decoder_patterns, config.decoder_layers)
    layers = [
        DecoderLayer(
            _self_attention(config, causal if own == everywhere else both(causal, own)),
            _residual(config),
            _attention(config, everywhere, positions=None),
            _residual(config),
            _feedforward(config),
            _residual(config),
        )
        for own in patterns
    ]
    return Decoder(layers, _last_norm(config))


def _self_attention(config: BlockConfig, pattern: Pattern) -> MultiHead:
    rotary = config.positions == "rotary"
    positions = RotaryPositions(config.width // config.heads) if rotary else None
    return _attention(config, pattern, positions)


def _attention(
    config: BlockConfig, pattern: Pattern, positions: RotaryPositions | None
) -> MultiHead:
    return MultiHead(
        config.width,
        config.heads,
        key_heads=config.key_heads,
        bias=config.bias,
        pattern=pattern,
        dropout=config.attention_dropout,
        positions=positions,
    )


def _feedforward(config: BlockConfig) -> FeedForward:
    return FeedForward(
        config.width,
        config.feedforward,
        activation=config.activation,
        bias=config.bias,
        dropout=config.feedforward_dropout,
    )


def _residual(config: BlockConfig) -> Residual:
    return Residual(
        config.width, norm=config.norm, placement=config.placement, dropout=config.dropout
    )


def _last_norm(config: BlockConfig) -> nn.Module | None:
    return normalisation(config.norm, config.width) if config.placement == "pre" else None
