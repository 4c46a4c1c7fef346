"""Layers: every attention mechanism behind one interface: remember, read, weigh."""

from attlas.layers.additive import Additive
from attlas.layers.base import Attention, ScoredAttention
from attlas.layers.functional import attend, attend_with_weights
from attlas.layers.local import Local, LocalMonotonic, LocalPredictive
from attlas.layers.multihead import MultiHead
from attlas.layers.multiplicative import Concat, Dot, General
from attlas.layers.positional import (
    LearnedPositions,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.layers.scaled_dot_product import FusedAttention, ScaledDotProduct

__all__ = [
    "Additive",
    "Attention",
    "Concat",
    "Dot",
    "FusedAttention",
    "General",
    "LearnedPositions",
    "Local",
    "LocalMonotonic",
    "LocalPredictive",
    "MultiHead",
    "NoPositions",
    "Positions",
    "RotaryPositions",
    "ScaledDotProduct",
    "ScoredAttention",
    "SinusoidalPositions",
    "attend",
    "attend_with_weights",
]
