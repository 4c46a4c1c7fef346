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
from attlas.models.transformer.config import TransformerConfig
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
        (_positions(config), _positions(config)),
        Encoder([_encoder_layer(config, p) for p in _encoder_patterns(config)], _last_norm(config)),
        Decoder([_decoder_layer(config, p) for p in _decoder_patterns(config)], _last_norm(config)),
        Output(width, width, target_size, tied=config.tied_output),
        config.dropout,
    )


def _encoder_layer(config: TransformerConfig, pattern: Pattern) -> EncoderLayer:
    return EncoderLayer(
        _self_attention(config, pattern), _residual(config), _feedforward(config), _residual(config)
    )


def _decoder_layer(config: TransformerConfig, pattern: Pattern) -> DecoderLayer:
    return DecoderLayer(
        _self_attention(config, pattern),
        _residual(config),
        _attention(config, everywhere, positions=None),
        _residual(config),
        _feedforward(config),
        _residual(config),
    )


def _self_attention(config: TransformerConfig, pattern: Pattern) -> MultiHead:
    rotary = config.positions == "rotary"
    positions = RotaryPositions(config.width // config.heads) if rotary else None
    return _attention(config, pattern, positions)


def _attention(
    config: TransformerConfig, pattern: Pattern, positions: RotaryPositions | None
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


def _feedforward(config: TransformerConfig) -> FeedForward:
    return FeedForward(
        config.width,
        config.feedforward,
        activation=config.activation,
        bias=config.bias,
        dropout=config.feedforward_dropout,
    )


def _residual(config: TransformerConfig) -> Residual:
    return Residual(
        config.width, norm=config.norm, placement=config.placement, dropout=config.dropout
    )


def _last_norm(config: TransformerConfig) -> nn.Module | None:
    return normalisation(config.norm, config.width) if config.placement == "pre" else None


def _positions(config: TransformerConfig) -> Positions:
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.width)
        case "learned":
            return LearnedPositions(config.width, config.longest)
        case _:
            return NoPositions()


def _encoder_patterns(config: TransformerConfig) -> list[Pattern]:
    return _each(config.encoder_patterns, config.encoder_layers)


def _decoder_patterns(config: TransformerConfig) -> list[Pattern]:
    patterns = _each(config.decoder_patterns, config.decoder_layers)
    return [causal if p == everywhere else both(causal, p) for p in patterns]


def _each(patterns: tuple[str, ...], layers: int) -> list[Pattern]:
    parsed = [parse(text) for text in patterns]
    return parsed * layers if len(parsed) == 1 else parsed
