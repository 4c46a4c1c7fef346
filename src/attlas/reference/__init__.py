"""The mechanisms once more, from scratch in NumPy, to be read beside the papers.

One sentence at a time, float64, the papers' letters and equation numbers, no batches and no
kernels: rows are positions. A mask is True where looking is allowed. The tests hold every
mechanism of `attlas.layers` against these.
"""

from attlas.reference import patterns
from attlas.reference.additive import additive
from attlas.reference.dropout import dropout
from attlas.reference.layer_norm import layer_norm
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
from attlas.reference.multihead import multi_head
from attlas.reference.rotary import rotary
from attlas.reference.scaled_dot_product import scaled_dot_product
from attlas.reference.sinusoidal import sinusoidal
from attlas.reference.softmax import softmax

__all__ = [
    "additive",
    "attentional_state",
    "concat",
    "dot",
    "dropout",
    "general",
    "global_attention",
    "layer_norm",
    "local_monotonic",
    "local_predictive",
    "multi_head",
    "patterns",
    "predicted_positions",
    "rotary",
    "scaled_dot_product",
    "sinusoidal",
    "softmax",
]
