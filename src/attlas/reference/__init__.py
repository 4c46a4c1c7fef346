"""Attention from scratch in NumPy, to be read beside the papers: each mechanism, and the whole
Transformer.

One sentence at a time, float64, the papers' letters and equation numbers, no batches and no
kernels: rows are positions. A mask is True where looking is allowed. The tests hold every
mechanism of `attlas.layers` against these, `attlas.models.Transformer`, and PyTorch's layers.

To read in this order: `softmax`, `additive`, `luong`; `scaled_dot_product`, `multihead`;
`layer_norm`, `rms_norm`, `residual`, `feed_forward`, `encoder_layer`, `decoder_layer`;
`sinusoidal`, `transformer`. `gru` and `lstm` are what came before.
"""

from attlas.reference import patterns
from attlas.reference.additive import additive
from attlas.reference.decoder_layer import (
    DecoderLayerParameters,
    decoder_layer,
    pre_norm_decoder_layer,
)
from attlas.reference.dropout import dropout
from attlas.reference.encoder_layer import (
    EncoderLayerParameters,
    encoder_layer,
    pre_norm_encoder_layer,
)
from attlas.reference.feed_forward import FeedForwardParameters, feed_forward
from attlas.reference.gru import GRUParameters, gru, gru_cell
from attlas.reference.layer_norm import NormParameters, layer_norm
from attlas.reference.lstm import LSTMParameters, lstm, lstm_cell
from attlas.reference.luong import (
    attentional_state,
    concat,
    dot,
    general,
    global_attention,
    local_monotonic,
    local_predictive,
    predicted_positions,
)
from attlas.reference.multihead import MultiHeadParameters, multi_head
from attlas.reference.residual import add_and_norm, residual
from attlas.reference.rms_norm import rms_norm
from attlas.reference.rotary import rotary
from attlas.reference.scaled_dot_product import scaled_dot_product
from attlas.reference.sigmoid import sigmoid
from attlas.reference.sinusoidal import sinusoidal
from attlas.reference.softmax import softmax
from attlas.reference.transformer import (
    TransformerParameters,
    embed,
    transformer,
    transformer_decoder,
    transformer_encoder,
)

__all__ = [
    "DecoderLayerParameters",
    "EncoderLayerParameters",
    "FeedForwardParameters",
    "GRUParameters",
    "LSTMParameters",
    "MultiHeadParameters",
    "NormParameters",
    "TransformerParameters",
    "add_and_norm",
    "additive",
    "attentional_state",
    "concat",
    "decoder_layer",
    "dot",
    "dropout",
    "embed",
    "encoder_layer",
    "feed_forward",
    "general",
    "global_attention",
    "gru",
    "gru_cell",
    "layer_norm",
    "local_monotonic",
    "local_predictive",
    "lstm",
    "lstm_cell",
    "multi_head",
    "patterns",
    "pre_norm_decoder_layer",
    "pre_norm_encoder_layer",
    "predicted_positions",
    "residual",
    "rms_norm",
    "rotary",
    "scaled_dot_product",
    "sigmoid",
    "sinusoidal",
    "softmax",
    "transformer",
    "transformer_decoder",
    "transformer_encoder",
]
