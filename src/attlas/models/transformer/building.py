"""From settings to a Transformer."""

from attlas.models.block import (
    attention_of,
    encoder_of,
    feedforward_of,
    last_norm_of,
    patterns_of,
    positions_of,
    residual_of,
    self_attention_of,
)
from attlas.models.embedding import Embedding
from attlas.models.output import Output
from attlas.models.transformer.config import TransformerConfig
from attlas.models.transformer.decoder import Decoder, DecoderLayer
from attlas.models.transformer.model import Transformer
from attlas.patterns import both, causal, everywhere


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
        config.word_dropout,
    )


def _decoder(config: TransformerConfig) -> Decoder:
    layers = [
        DecoderLayer(
            # Causal alone has kernels of its own, so it is not to be hidden in a composition.
            self_attention_of(config, causal if own in (everywhere, causal) else both(causal, own)),
            residual_of(config),
            attention_of(config, everywhere),
            residual_of(config),
            feedforward_of(config),
            residual_of(config),
        )
        for own in patterns_of(config.decoder_patterns, config.decoder_layers)
    ]
    return Decoder(layers, last_norm_of(config))
