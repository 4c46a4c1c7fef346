"""Layers: every attention mechanism behind one interface."""

from attlas.layers.additive import AdditiveAttention
from attlas.layers.base import Attention, ScoredAttention
from attlas.layers.functional import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_with_weights,
)
from attlas.layers.local import LocalAttention, LocalMonotonicAttention, LocalPredictiveAttention
from attlas.layers.multihead import MultiheadAttention
from attlas.layers.multiplicative import ConcatAttention, DotAttention, GeneralAttention
from attlas.layers.positional import (
    LearnedPositions,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.layers.scaled_dot_product import DotProductAttention, ScaledDotProductAttention

__all__ = [
    "AdditiveAttention",
    "Attention",
    "ConcatAttention",
    "DotAttention",
    "DotProductAttention",
    "GeneralAttention",
    "LearnedPositions",
    "LocalAttention",
    "LocalMonotonicAttention",
    "LocalPredictiveAttention",
    "MultiheadAttention",
    "NoPositions",
    "Positions",
    "RotaryPositions",
    "ScaledDotProductAttention",
    "ScoredAttention",
    "SinusoidalPositions",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_with_weights",
]
