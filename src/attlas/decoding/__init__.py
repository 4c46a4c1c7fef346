"""Decoding: greedy, beam search and sampling, written once over one `step` protocol."""

from attlas.decoding.config import DecodingConfig
from attlas.decoding.decode import SearchInput, decode, decode_all
from attlas.decoding.scoring import Hypothesis

__all__ = [
    "DecodingConfig",
    "Hypothesis",
    "SearchInput",
    "decode",
    "decode_all",
]
