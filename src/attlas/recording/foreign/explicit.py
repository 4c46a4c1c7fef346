"""Attention that a model writes out: softmax(…) times values, whoever wrote it."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.recording.dense_reading import DenseReading
from attlas.recording.foreign.fused import factored
from attlas.recording.foreign.heads import heads_of, with_heads
from attlas.recording.foreign.lineage import Weighed
from attlas.recording.foreign.sight import Sight, sight_of
from attlas.recording.reading import Reading


def explicit_reading(
    known: Weighed,
    weights: Float[Tensor, "*batch queries slots"],
    values: Float[Tensor, "*batch slots width"],
    module: nn.Module,
    sight: Callable[..., Sight] = sight_of,
) -> Reading:
    """What is read of `weights @ values`, where the weights are known to come from a softmax.

    Queries and keys where the scores are a product, times a number, plus masks; the weights
    themselves, before dropout, where something else was done to the scores.
    """
    origin = weights if known.origin is None else known.origin
    scores = known.scores
    if scores is None or scores.left.ndim != origin.ndim:
        heads = heads_of(values, module) if origin.ndim == 3 else 1
        return DenseReading(with_heads(origin, heads))
    heads = heads_of(scores.left, module)
    mask = scores.mask()
    return factored(
        with_heads(scores.left, heads),
        with_heads(scores.right.transpose(-1, -2), heads),
        scores.scale,
        None if mask is None else with_heads(mask, heads),
        module,
        sight,
    )


def rewritten(
    known: Weighed,
    weights: Float[Tensor, "*batch queries slots"],
    module: nn.Module,
    reading: Reading,
    change: Callable[[Tensor, Tensor], Tensor],
) -> Float[Tensor, "*batch queries slots"]:
    """Other weights in place of these: `change(weights, seen) → weights`, before dropout."""
    origin = weights if known.origin is None else known.origin
    seen = reading.seen(0, reading.shape[2])
    changed = change(origin.reshape(reading.shape), seen)
    return known.again(changed.reshape(origin.shape).to(origin.dtype))


def is_weights(result: Tensor, dim: int | None) -> bool:
    """Whether a softmax over this axis may be one over slots."""
    last = dim in (-1, result.ndim - 1)
    return last and result.ndim in (3, 4) and torch.is_floating_point(result)
