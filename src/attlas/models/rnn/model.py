"""The recurrent encoder–decoder."""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import (
    Additive,
    Concat,
    Dot,
    General,
    LocalMonotonic,
    LocalPredictive,
    ScoredAttention,
)
from attlas.models.embedding import Embedding, Output
from attlas.models.encoder_decoder import SequenceToSequence, check_rows, ids_of
from attlas.models.rnn.bahdanau import BahdanauDecoder, Readout
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.config import LocalConfig, RecurrentConfig
from attlas.models.rnn.decoder import Coverage, Decoder, PlainDecoder
from attlas.models.rnn.encoder import Bridge, Encoder, initialise
from attlas.models.rnn.luong import InputFeedingDecoder, LuongDecoder
from attlas.ops.dropout import Dropout


class RecurrentModel(SequenceToSequence[RecurrentState]):
    """Embeddings, an encoder, a decoder with or without attention, and the vocabulary layer.

    Dropout falls on both embeddings and on the features; `Encoder` and `Recurrence` have their own
    between layers. The attention, where there is one, is the layer "decoder.attention". Without a
    source embedding the languages share the target's.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        encoder: Encoder,
        decoder: Decoder,
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
        source: Int[Tensor, "batch slots"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> RecurrentState:
        source = ids_of(source, real)
        own = self.source_embedding
        embedding = self.target_embedding if own is None else own
        embedded = self.dropout(embedding(source))
        return self.decoder.start(self.encoder(embedded, real), real)

    def step(
        self, tokens: Int[Tensor, " batch"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        check_rows("token", state.rows, len(tokens))
        features, after = self.decoder.step(self._target(tokens), state)
        return self.logits(self.dropout(features)), after

    def features(
        self, target: Int[Tensor, "batch queries"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        if target.shape[1] == 0:
            raise AttlasError(
                "a target of at least one token", "an empty one", "begin it with the begin token"
            )
        check_rows("target", state.rows, len(target))
        features: Tensor = self.dropout(self.decoder.features(self._target(target), state))
        return features

    def logits(
        self, features: Float[Tensor, "*positions width"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        logits: Tensor = self.output(features, self.target_embedding.weight)
        return logits

    def between(self, layer: str) -> Literal["source", "target", "across"]:
        return "across"

    def _target(self, tokens: Int[Tensor, "*positions"]) -> Float[Tensor, "*positions embedding"]:
        embedded: Tensor = self.dropout(self.target_embedding(tokens))
        return embedded


# From settings to a recurrent model.


def build_recurrent(config: RecurrentConfig, source_size: int, target_size: int) -> RecurrentModel:
    """A model with fresh parameters, drawn from torch's generator.

    Sizes: how many ids each vocabulary has.
    """
    encoder = Encoder(
        config.cell,
        config.embedding,
        config.encoder_hidden,
        config.layers,
        config.bidirectional,
        config.dropout,
    )
    decoder = _decoder(config)
    model = RecurrentModel(
        None if config.tied_source else Embedding(source_size, config.embedding, "source"),
        Embedding(target_size, config.embedding, "target"),
        encoder,
        decoder,
        Output(decoder.width, config.embedding, target_size, tied=config.tied_output),
        config.dropout,
    )
    initialise(model)
    return model


def _decoder(config: RecurrentConfig) -> Decoder:
    if config.attention == "none":
        return PlainDecoder(_bridge(config), _recurrence(config, fed=0))
    attention = _attention(config)
    coverage = Coverage(_attention_hidden(config)) if config.coverage else None
    bridge = _bridge(config)
    if config.wiring == "bahdanau":
        width = config.readout_hidden or config.embedding
        widths = (config.hidden, config.embedding, config.source_width)
        readout = Readout(widths, width, config.readout)
        recurrence = _recurrence(config, fed=config.source_width)
        return BahdanauDecoder(bridge, recurrence, attention, coverage, readout)
    if config.input_feeding:
        recurrence = _recurrence(config, fed=config.hidden)
        return InputFeedingDecoder(bridge, recurrence, attention, coverage, config.source_width)
    recurrence = _recurrence(config, fed=0)
    return LuongDecoder(bridge, recurrence, attention, coverage, config.source_width)


def _recurrence(config: RecurrentConfig, fed: int) -> Recurrence:
    width = config.embedding + fed
    return Recurrence(config.cell, width, config.hidden, config.layers, config.dropout)


def _bridge(config: RecurrentConfig) -> Bridge:
    directions = 2 if config.bidirectional and config.attention == "none" else 1
    return Bridge(config.cell, config.encoder_hidden, config.hidden, config.layers, directions)


def _attention_hidden(config: RecurrentConfig) -> int:
    return config.attention_hidden or config.hidden


def _attention(config: RecurrentConfig) -> ScoredAttention:
    if config.attention == "local":
        return _local(config, config.local or LocalConfig())
    return _scored(config.attention, config)


def _scored(score: str, config: RecurrentConfig) -> ScoredAttention:
    query, source, dropout = config.hidden, config.source_width, config.attention_dropout
    hidden = _attention_hidden(config)
    if score == "additive":
        return Additive(query, source, hidden, dropout=dropout)
    if score == "concat":
        return Concat(query, source, hidden, dropout=dropout)
    if score == "general":
        return General(query, source, dropout=dropout)
    return Dot(dropout=dropout)


def _local(config: RecurrentConfig, local: LocalConfig) -> ScoredAttention:
    inner = _scored(local.score, config)
    if local.centre == "monotonic":
        return LocalMonotonic(inner, local.radius)
    return LocalPredictive(inner, local.radius, config.hidden, _attention_hidden(config))
