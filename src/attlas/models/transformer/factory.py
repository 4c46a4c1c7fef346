"""Build layers of the Transformer from settings."""

from torch import nn

from attlas.layers import (
    LearnedPositions,
    MultiheadAttention,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.models.transformer.block import (
    EncoderLayer,
    FeedForward,
    Residual,
    TransformerEncoder,
    make_norm,
)
from attlas.models.transformer.config import BlockConfig
from attlas.patterns import Pattern


def build_encoder(config: BlockConfig, patterns: list[Pattern]) -> TransformerEncoder:
    """An encoder with one layer for each pattern."""
    layers = [
        EncoderLayer(
            build_self_attention(config, pattern),
            build_residual(config),
            build_feed_forward(config),
            build_residual(config) if config.ffn_dim else None,
        )
        for pattern in patterns
    ]
    return TransformerEncoder(layers, build_last_norm(config))


def build_positions(config: BlockConfig) -> Positions:
    """The positions that are added to embeddings; rotary ones act in attention."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.embed_dim)
        case "learned":
            return LearnedPositions(config.embed_dim, config.max_positions)
        case _:
            return NoPositions()


def build_self_attention(config: BlockConfig, pattern: Pattern) -> MultiheadAttention:
    """Self-attention, with rotary positions if chosen."""
    rotary = config.positions == "rotary"
    positions = RotaryPositions(config.embed_dim // config.num_heads) if rotary else None
    return build_attention(config, pattern, positions)


def build_attention(
    config: BlockConfig, pattern: Pattern, positions: RotaryPositions | None = None
) -> MultiheadAttention:
    """Multi-head attention."""
    return MultiheadAttention(
        config.embed_dim,
        config.num_heads,
        num_kv_heads=config.num_kv_heads,
        bias=_attention_bias(config.bias),
        pattern=pattern,
        dropout=config.attention_dropout,
        positions=positions,
        qk_norm=config.qk_norm,
    )


def _attention_bias(bias: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
    """Which maps of an attention have a bias, as the layer takes it."""
    return bias if isinstance(bias, bool) else tuple(name for name in bias if name != "ffn")


def build_feed_forward(config: BlockConfig) -> FeedForward | None:
    """The feed-forward; None if ffn_dim is 0."""
    if not config.ffn_dim:
        return None
    return FeedForward(
        config.embed_dim,
        config.ffn_dim,
        activation=config.activation,
        bias=config.bias if isinstance(config.bias, bool) else "ffn" in config.bias,
        dropout=config.ffn_dropout,
    )


def build_residual(config: BlockConfig) -> Residual:
    """The residual connection around a sublayer."""
    return Residual(
        config.embed_dim,
        norm_type=config.norm_type,
        norm=config.norm,
        dropout=config.dropout,
        residual=config.residual,
    )


def build_last_norm(config: BlockConfig) -> nn.Module | None:
    """The norm after all layers, if they are pre-norm."""
    return make_norm(config.norm_type, config.embed_dim) if config.norm == "pre" else None
