"""Keys that are no slots of a text: what `nn.MultiheadAttention` learns, or zeros."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F

from attlas.recording.dense_reading import DenseReading
from attlas.recording.reading import Reading

_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def unslotted(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """How many keys a call of `F.multi_head_attention_forward` puts behind those of its text."""
    given = _SIGNATURE.bind(*args, **kwargs).arguments
    return (given.get("bias_k") is not None) + bool(given.get("add_zero_attn"))


def without_last(reading: Reading, count: int) -> DenseReading:
    """The weights of all slots but the last, which take their share of a softmax all the same."""
    queries, slots = reading.shape[2:]
    seen = reading.seen(0, queries)[..., : slots - count]
    weights = reading.rows(0, queries)[..., : slots - count]
    return DenseReading(weights, None if bool(seen.all()) else seen, reading.position)
