"""Patterns: which query may look at which key, by position."""

from attlas.patterns.base import Bound, Pattern
from attlas.patterns.parsing import parse
from attlas.patterns.shapes import (
    Both,
    Causal,
    Either,
    Everywhere,
    Landmarks,
    Scattered,
    Strided,
    Window,
    both,
    causal,
    either,
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
