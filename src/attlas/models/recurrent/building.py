"""From settings to a recurrent model."""

from attlas.layers import (
    Additive,
    Concat,
    Dot,
    General,
    LocalMonotonic,
    LocalPredictive,
    ScoredAttention,
)
from attlas.models.embedding import Embedding
from attlas.models.output import Output
from attlas.models.recurrent.bahdanau import BahdanauDecoder
from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.config import LocalConfig, RecurrentConfig
from attlas.models.recurrent.coverage import Coverage
from attlas.models.recurrent.decoder import Decoder
from attlas.models.recurrent.encoder import Encoder
from attlas.models.recurrent.initial import initialise
from attlas.models.recurrent.luong import InputFeedingDecoder, LuongDecoder
from attlas.models.recurrent.model import RecurrentModel
from attlas.models.recurrent.plain import PlainDecoder
from attlas.models.recurrent.readout import Readout
from attlas.models.recurrent.recurrence import Recurrence


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
