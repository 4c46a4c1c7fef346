"""Layers: every attention mechanism behind one interface: remember, read, weigh."""

from attlas.layers.additive import Additive
from attlas.layers.attend import attend, attend_with_weights
from attlas.layers.attention import Attention, ScoredAttention
from attlas.layers.dropout import Dropout, WordDropout
from attlas.layers.fused import FusedAttention
from attlas.layers.local import Local, LocalMonotonic, LocalPredictive
from attlas.layers.memory import Memory
from attlas.layers.multihead import MultiHead
from attlas.layers.multiplicative import Concat, Dot, General
from attlas.layers.positions import (
    LearnedPositions,
    NoPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from attlas.layers.scaled_dot_product import ScaledDotProduct

__all__ = [
    "Additive",
    "Attention",
    "Concat",
    "Dot",
    "Dropout",
    "FusedAttention",
    "General",
    "LearnedPositions",
    "Local",
    "LocalMonotonic",
    "LocalPredictive",
    "Memory",
    "MultiHead",
    "NoPositions",
    "Positions",
    "RotaryPositions",
    "ScaledDotProduct",
    "ScoredAttention",
    "SinusoidalPositions",
    "WordDropout",
    "attend",
    "attend_with_weights",
]
