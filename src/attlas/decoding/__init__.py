"""Decoding: greedy, beam search and sampling, written once over one `step` protocol."""

from attlas.decoding.config import DecodingConfig
from attlas.decoding.decode import Asked, decode, decode_all
from attlas.decoding.scoring import Hypothesis

__all__ = [
    "Asked",
    "DecodingConfig",
    "Hypothesis",
    "decode",
    "decode_all",
]
