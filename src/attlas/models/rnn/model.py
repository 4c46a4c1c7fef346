"""The recurrent encoder–decoder."""

from typing import Literal

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    ScoredAttention,
)
from attlas.models.embedding import Embedding, Output
from attlas.models.encoder_decoder import SequenceToSequence, check_rows, read_token_mask
from attlas.models.rnn.bahdanau import BahdanauDecoder, Readout
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.config import LocalConfig, RecurrentConfig
from attlas.models.rnn.decoder import (
    AttentionDecoder,
    Coverage,
    PlainDecoder,
    RecurrentDecoder,
)
from attlas.models.rnn.encoder import Bridge, RecurrentEncoder, initialise
from attlas.models.rnn.luong import InputFeedingDecoder, LuongDecoder
from attlas.ops.dropout import Dropout
from attlas.recording import AttentionHook


class RecurrentModel(SequenceToSequence[RecurrentState]):
    """Embeddings, an encoder, a decoder with or without attention, and the vocabulary layer.

    Dropout falls on both embeddings and on the features; `RecurrentEncoder` and `Recurrence` have
    their own between layers. The attention, where there is one, is the layer "decoder.attention".
    Without a source embedding the languages share the target's.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        encoder: RecurrentEncoder,
        decoder: RecurrentDecoder,
        output: Output,
        dropout: float,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.dropout = Dropout(dropout)

    def encode(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> RecurrentState:
        source, token_mask = read_token_mask(source, token_mask)
        source_embedding = self.source_embedding
        embedding = self.target_embedding if source_embedding is None else source_embedding
        embedded = self.dropout(embedding(source))
        return self.decoder.start(self.encoder(embedded, token_mask), token_mask)

    def step(
        self, tokens: Int[Tensor, " batch"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        check_rows("token", state.rows, len(tokens))
        features, after = self.decoder.step(self._target(tokens), state)
        return self.logits(self.dropout(features)), after

    def decode(
        self, target: Int[Tensor, "batch queries"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        if target.shape[1] == 0:
            raise AttlasError(
                "a target of at least one token", "an empty one", "begin it with the begin token"
            )
        check_rows("target", state.rows, len(target))
        features: Tensor = self.dropout(self.decoder.decode(self._target(target), state))
        return features

    def logits(
        self, features: Float[Tensor, "*positions dim"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        logits: Tensor = self.output(features, self.target_embedding.weight)
        return logits

    def attention_kind(self, layer: str) -> Literal["source", "target", "across"]:
        return "across"

    @property
    def weights_hook(self) -> AttentionHook | None:
        return self.decoder.attention.hook if isinstance(self.decoder, AttentionDecoder) else None

    def _target(self, tokens: Int[Tensor, "*positions"]) -> Float[Tensor, "*positions embed_dim"]:
        embedded: Tensor = self.dropout(self.target_embedding(tokens))
        return embedded


# From settings to a recurrent model.


def build_recurrent(config: RecurrentConfig, source_size: int, target_size: int) -> RecurrentModel:
    """A model with fresh parameters, drawn from torch's generator.

    Sizes: how many ids each vocabulary has.
    """
    encoder = RecurrentEncoder(
        config.cell,
        config.embed_dim,
        config.encoder_hidden_dim,
        config.layers,
        config.bidirectional,
        config.dropout,
    )
    decoder = _decoder(config)
    model = RecurrentModel(
        None if config.tie_source else Embedding(source_size, config.embed_dim, "source"),
        Embedding(target_size, config.embed_dim, "target"),
        encoder,
        decoder,
        Output(decoder.feature_dim, config.embed_dim, target_size, tie=config.tie_output),
        config.dropout,
    )
    initialise(model)
    return model


def _decoder(config: RecurrentConfig) -> RecurrentDecoder:
    if config.attention == "none":
        return PlainDecoder(_bridge(config), _recurrence(config, fed=0))
    attention = _attention(config)
    coverage = Coverage(_attention_hidden_dim(config)) if config.coverage else None
    bridge = _bridge(config)
    if config.decoder == "bahdanau":
        readout_dim = config.readout_dim or config.embed_dim
        widths = (config.hidden_dim, config.embed_dim, config.source_dim)
        readout = Readout(widths, readout_dim, config.readout)
        recurrence = _recurrence(config, fed=config.source_dim)
        return BahdanauDecoder(bridge, recurrence, attention, coverage, readout)
    if config.input_feeding:
        recurrence = _recurrence(config, fed=config.hidden_dim)
        return InputFeedingDecoder(bridge, recurrence, attention, coverage, config.source_dim)
    recurrence = _recurrence(config, fed=0)
    is_linear = config.readout == "linear"
    return LuongDecoder(bridge, recurrence, attention, coverage, config.source_dim, is_linear)


def _recurrence(config: RecurrentConfig, fed: int) -> Recurrence:
    input_dim = config.embed_dim + fed
    return Recurrence(config.cell, input_dim, config.hidden_dim, config.layers, config.dropout)


def _bridge(config: RecurrentConfig) -> Bridge:
    directions = 2 if config.bidirectional and config.attention == "none" else 1
    return Bridge(
        config.cell, config.encoder_hidden_dim, config.hidden_dim, config.layers, directions
    )


def _attention_hidden_dim(config: RecurrentConfig) -> int:
    return config.attention_hidden_dim or config.hidden_dim


def _attention(config: RecurrentConfig) -> ScoredAttention:
    if config.attention == "local":
        return _local(config, config.local or LocalConfig())
    return _build_score(config.attention, config)


def _build_score(score: str, config: RecurrentConfig) -> ScoredAttention:
    query, source, dropout = config.hidden_dim, config.source_dim, config.attention_dropout
    hidden_dim = _attention_hidden_dim(config)
    if score == "additive":
        return AdditiveAttention(query, source, hidden_dim, dropout=dropout)
    if score == "concat":
        return ConcatAttention(query, source, hidden_dim, dropout=dropout)
    if score == "general":
        return GeneralAttention(query, source, dropout=dropout)
    return DotAttention(dropout=dropout)


def _local(config: RecurrentConfig, local: LocalConfig) -> ScoredAttention:
    inner = _build_score(local.score, config)
    if local.centre == "monotonic":
        return LocalMonotonicAttention(inner, local.radius)
    return LocalPredictiveAttention(
        inner, local.radius, config.hidden_dim, _attention_hidden_dim(config)
    )
