"""The Transformer."""

import math
from collections.abc import Callable
from typing import Literal, cast

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import LearnedPositions, Positions
from attlas.models.embedding import Embedding, Output
from attlas.models.encoder_decoder import SequenceToSequence, check_rows, check_source, ids_of
from attlas.models.transformer.block import Encoder
from attlas.models.transformer.config import patterns_of
from attlas.models.transformer.decoder import Decoder, DecoderLayer
from attlas.models.transformer.factory import (
    attention_of,
    encoder_of,
    feedforward_of,
    last_norm_of,
    positions_of,
    residual_of,
    self_attention_of,
)
from attlas.models.transformer.model_config import TransformerConfig
from attlas.models.transformer.state import TransformerState
from attlas.ops.dropout import Dropout, WordDropout
from attlas.patterns import both, causal, everywhere


class Transformer(SequenceToSequence[TransformerState]):
    """softmax(W decoder(y, encoder(x)) + b)    Vaswani et al., 2017, figure 1.

    Embeddings are scaled by √width (section 3.4), those of some words are left out if that is
    wanted, positions are added, then dropout falls on the sum. The attentions are the layers
    "encoder.layers.N.self_attention", "decoder.layers.N.self_attention" and
    "decoder.layers.N.cross_attention". Without a source embedding the languages share the target's.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        positions: tuple[Positions, Positions],
        encoder: Encoder,
        decoder: Decoder,
        output: Output,
        dropout: float,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.source_positions, self.target_positions = positions
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.dropout = Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)
        self.scale = math.sqrt(target_embedding.embedding_dim)

    @property
    def longest(self) -> int | None:
        positions = self.target_positions
        return positions.longest if isinstance(positions, LearnedPositions) else None

    def encode(
        self,
        source: Int[Tensor, "batch slots"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> TransformerState:
        return self._encoded(source, real, self.encoder)

    def begin(
        self, source: Int[Tensor, "batch slots"], real: Bool[Tensor, "batch slots"] | None = None
    ) -> TransformerState:
        replaced = type(self).encode is not Transformer.encode
        if replaced or not isinstance(self.encoder, Encoder):  # by somebody's own, or compiled
            return self.encode(source, real)
        return self._encoded(source, real, self.encoder.in_parts)

    def _encoded(
        self,
        source: Tensor,
        real: Tensor | None,
        encoder: Callable[[Tensor, Tensor | None], Tensor],
    ) -> TransformerState:
        check_source(source)
        source = ids_of(source, real)
        if real is not None and bool(real.all()):
            real = None  # a mask costs more than to ask
        own = self.source_embedding
        embedding = self.target_embedding if own is None else own
        embedded = self.word_dropout(embedding(source) * self.scale)
        x = self.dropout(self.source_positions(embedded))
        return self.decoder.start(encoder(x, real), real)

    def step(
        self, tokens: Int[Tensor, " batch"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch vocabulary"], TransformerState]:
        check_rows("token", state.rows, len(tokens))
        features, after = self.decoder.step(self._entering(tokens.unsqueeze(1), state)[:, 0], state)
        return self.logits(features), after

    def features(
        self, target: Int[Tensor, "batch queries"], state: TransformerState
    ) -> Float[Tensor, "batch queries width"]:
        if target.shape[1] == 0:
            raise AttlasError(
                "a target of at least one token", "an empty one", "begin it with the begin token"
            )
        check_rows("target", state.rows, len(target))
        features, _ = self.decoder(self._entering(target, state), state)
        return cast("Tensor", features)

    def logits(
        self, features: Float[Tensor, "*positions width"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        logits: Tensor = self.output(features, self.target_embedding.weight)
        return logits

    def between(self, layer: str) -> Literal["source", "target", "across"]:
        if layer.startswith("encoder."):
            return "source"
        return "across" if layer.endswith(".cross_attention") else "target"

    def _entering(
        self, target: Int[Tensor, "batch queries"], state: TransformerState
    ) -> Float[Tensor, "batch queries width"]:
        embedded = self.word_dropout(self.target_embedding(target) * self.scale)
        entering: Tensor = self.dropout(self.target_positions(embedded, state.position))
        return entering


# From settings to a Transformer.


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
