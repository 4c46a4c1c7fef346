"""Patterns: which query may look at which slot, asked of positions alone."""

from attlas.patterns.bound import Bound
from attlas.patterns.compositions import Both, Either, both, either
from attlas.patterns.parsing import parse
from attlas.patterns.pattern import Pattern
from attlas.patterns.shapes import (
    Causal,
    Everywhere,
    Landmarks,
    Scattered,
    Strided,
    Window,
    causal,
    everywhere,
    landmarks,
    scattered,
    strided,
    window,
)

__all__ = [
    "Both",
    "Bound",
    "Causal",
    "Either",
    "Everywhere",
    "Landmarks",
    "Pattern",
    "Scattered",
    "Strided",
    "Window",
    "both",
    "causal",
    "either",
    "everywhere",
    "landmarks",
    "parse",
    "scattered",
    "strided",
    "window",
]
