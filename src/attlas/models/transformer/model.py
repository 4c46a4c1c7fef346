"""The Transformer."""

import math
from collections.abc import Callable
from typing import Literal, cast

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attlas._hardware import is_capturable
from attlas.errors import AttlasError
from attlas.layers import LearnedPositions, Positions
from attlas.models.embedding import Embedding, Output
from attlas.models.encoder_decoder import (
    SequenceToSequence,
    check_rows,
    check_source,
    read_token_mask,
)
from attlas.models.transformer.block import TransformerEncoder
from attlas.models.transformer.config import parse_patterns
from attlas.models.transformer.decoder import DecoderLayer, TransformerDecoder
from attlas.models.transformer.factory import (
    build_attention,
    build_encoder,
    build_feed_forward,
    build_last_norm,
    build_positions,
    build_residual,
    build_self_attention,
)
from attlas.models.transformer.model_config import TransformerConfig
from attlas.models.transformer.state import TransformerState
from attlas.ops.dropout import Dropout, WordDropout
from attlas.patterns import both, causal, everywhere
from attlas.recording import AttentionHook


class Transformer(SequenceToSequence[TransformerState]):
    """softmax(W decoder(y, encoder(x)) + b)    Vaswani et al., 2017, figure 1.

    Embeddings are scaled by √width (section 3.4), word dropout is applied if set, positions are
    added, and dropout is applied to the sum. The attentions are the layers
    "encoder.layers.N.self_attention", "decoder.layers.N.self_attention" and
    "decoder.layers.N.cross_attention". Without a source embedding,
    both languages share the target's.

    Example:
        >>> import torch, attlas
        >>> config = attlas.models.TransformerConfig(embed_dim=16, num_heads=2, ffn_dim=32)
        >>> model = attlas.models.build(config, 100)  # a vocabulary of 100 ids
        >>> source, target = torch.randint(4, 100, (2, 5)), torch.randint(4, 100, (2, 3))
        >>> model(source, target).shape
        torch.Size([2, 3, 100])
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        positions: tuple[Positions, Positions],
        encoder: TransformerEncoder,
        decoder: TransformerDecoder,
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
    def max_positions(self) -> int | None:
        positions = self.target_positions
        return positions.max_positions if isinstance(positions, LearnedPositions) else None

    def encode(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> TransformerState:
        return self._encoded(source, token_mask, self.encoder)

    def encode_for_search(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> TransformerState:
        replaced = type(self).encode is not Transformer.encode
        if replaced or not isinstance(
            self.encoder, TransformerEncoder
        ):  # replaced by another forward, or compiled
            return self.encode(source, token_mask)
        return self._encoded(source, token_mask, self.encoder.forward_by_length)

    def _encoded(
        self,
        source: Tensor,
        token_mask: Tensor | None,
        encoder: Callable[[Tensor, Tensor | None], Tensor],
    ) -> TransformerState:
        check_source(source)
        source, token_mask = read_token_mask(source, token_mask)
        if token_mask is not None and not is_capturable() and bool(token_mask.all()):
            token_mask = None  # applying a mask costs more than this check
        source_embedding = self.source_embedding
        embedding = self.target_embedding if source_embedding is None else source_embedding
        embedded = self.word_dropout(embedding(source) * self.scale)
        x = self.dropout(self.source_positions(embedded))
        return self.decoder.start(encoder(x, token_mask), token_mask)

    def step(
        self, tokens: Int[Tensor, " batch"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch vocabulary"], TransformerState]:
        check_rows("token", state.rows, len(tokens))
        features, after = self.decoder.step(self._entering(tokens.unsqueeze(1), state)[:, 0], state)
        return self.logits(features), after

    def decode(
        self, target: Int[Tensor, "batch queries"], state: TransformerState
    ) -> Float[Tensor, "batch queries embed_dim"]:
        if target.shape[1] == 0:
            raise AttlasError(
                "a target of at least one token", "an empty one", "begin it with the begin token"
            )
        check_rows("target", state.rows, len(target))
        features, _ = self.decoder(self._entering(target, state), state)
        return cast("Tensor", features)

    def logits(
        self, features: Float[Tensor, "*positions embed_dim"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        logits: Tensor = self.output(features, self.target_embedding.weight)
        return logits

    def attention_kind(self, layer: str) -> Literal["source", "target", "across"]:
        if layer.startswith("encoder."):
            return "source"
        return "across" if layer.endswith(".cross_attention") else "target"

    @property
    def weights_hook(self) -> AttentionHook | None:
        return cast("DecoderLayer", self.decoder.layers[-1]).cross_attention.hook

    def _entering(
        self, target: Int[Tensor, "batch queries"], state: TransformerState
    ) -> Float[Tensor, "batch queries embed_dim"]:
        embedded = self.word_dropout(self.target_embedding(target) * self.scale)
        hidden: Tensor = self.dropout(self.target_positions(embedded, state.position))
        return hidden


# From settings to a Transformer.


def build_transformer(config: TransformerConfig, source_size: int, target_size: int) -> Transformer:
    """A model with fresh parameters, drawn from torch's generator: `Embedding` says how embeddings
    are, all matrices are uniform with the variance 2 / (in + out) (Glorot & Bengio, 2010).

    Sizes: how many ids each vocabulary has.
    """
    embed_dim = config.embed_dim
    return Transformer(
        None if config.tie_source else Embedding(source_size, embed_dim, "source"),
        Embedding(target_size, embed_dim, "target"),
        (build_positions(config), build_positions(config)),
        build_encoder(config, parse_patterns(config.encoder_patterns, config.encoder_layers)),
        _decoder(config),
        Output(embed_dim, embed_dim, target_size, tie=config.tie_output),
        config.dropout,
        config.word_dropout,
    )


def _decoder(config: TransformerConfig) -> TransformerDecoder:
    layers = [
        DecoderLayer(
            # Causal alone has kernels of its own, so it is not to be hidden in a composition.
            build_self_attention(
                config, causal if pattern in (everywhere, causal) else both(causal, pattern)
            ),
            build_residual(config),
            build_attention(config, everywhere),
            build_residual(config),
            build_feed_forward(config),
            build_residual(config) if config.ffn_dim else None,
        )
        for pattern in parse_patterns(config.decoder_patterns, config.decoder_layers)
    ]
    return TransformerDecoder(layers, build_last_norm(config))
