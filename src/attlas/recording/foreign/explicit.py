"""Attention that a model writes out: softmax(…) times values, whoever wrote it."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.recording.dense_reading import DenseReading
from attlas.recording.foreign.folds import Fold, Folds
from attlas.recording.foreign.fused import factored
from attlas.recording.foreign.heads import heads_of
from attlas.recording.foreign.scored import Scored
from attlas.recording.foreign.sight import Sight, sight_of
from attlas.recording.foreign.weighed import Weighed
from attlas.recording.place import Place
from attlas.recording.reading import Reading

_MATRIX = 2  # axes


def explicit_reading(
    known: Weighed,
    weights: Float[Tensor, "*batch queries slots"],
    fold: Fold,
    module: nn.Module,
    sight: Callable[..., Sight] = sight_of,
) -> Reading:
    """What is read of `weights @ values`, where the weights are known to come from a softmax.

    Queries and keys where the scores are a product, times a number, plus masks; the weights
    themselves, before dropout, where something else was done to the scores.
    """
    origin = weights if known.origin is None else known.origin
    scores = known.scores
    if scores is None or not _makes(scores, origin):
        return _held(fold.open(origin))
    mask = scores.mask()
    return factored(
        fold.open(scores.left),
        fold.open(scores.right.transpose(-1, -2), shared=True),
        scores.scale,
        None if mask is None else fold.open(mask),
        module,
        sight,
        scores.softcap,
        1 if scores.content is None else scores.content.repeats,
    )


def fold_of(
    known: Weighed,
    weights: Float[Tensor, "*batch queries slots"],
    values: Float[Tensor, "..."],
    place: Place,
    folds: Folds,
) -> Fold:
    """Where the heads of these weights are, which are multiplied with values that may have more
    axes."""
    origin = weights if known.origin is None else known.origin
    scores, rows = known.scores, origin.shape[:-2]
    evidence, queries = [values], origin.shape[-2] if origin.ndim > 1 else 1
    if scores is not None and _makes(scores, origin):
        evidence = [scores.left, scores.right.transpose(-1, -2), values]
    if origin.shape == weights.shape and values.ndim > _MATRIX and values.ndim >= weights.ndim:
        rows = torch.broadcast_shapes(rows, values.shape[:-2])  # type: ignore[no-untyped-call]
    evidence = [one for one in evidence if one.ndim >= _MATRIX]
    return heads_of(rows, evidence, place, folds, queries)


def _makes(scores: Scored, weights: Tensor) -> bool:
    """Whether these scores have a row for each row of the weights."""
    left, right = scores.left.shape[:-2], scores.right.shape[:-2]
    one_each = len(left) == weights.ndim - 2 == len(right)
    rows = scores.left.shape[-2], scores.right.shape[-1]  # a mask may have more, and repeat them
    return one_each and (*map(max, left, right), *rows) == weights.shape


def _held(weights: Float[Tensor, "batch heads queries slots"]) -> DenseReading:
    """The map itself: a slot that no head looks at, exactly 0 after a softmax, was hidden."""
    shown = (weights != 0).any(1, keepdim=True)
    return DenseReading(weights, None if bool(shown.all()) else shown, None)


def rewritten(
    known: Weighed,
    weights: Float[Tensor, "*batch queries slots"],
    reading: Reading,
    fold: Fold,
    change: Callable[[Tensor, Tensor], Tensor],
) -> Float[Tensor, "*batch queries slots"]:
    """Other weights in place of these: `change(weights, seen) → weights`, before dropout."""
    origin = weights if known.origin is None else known.origin
    seen = reading.seen(0, reading.shape[2])
    changed = fold.close(change(fold.open(origin), seen))
    changed = changed.reshape(origin.shape) if changed.numel() == origin.numel() else changed
    return known.again(changed.to(origin.dtype))


def is_softmax_of_rows(result: Tensor, dim: int | None, scores: Scored | None) -> bool:
    """Whether a softmax over this axis may be one over slots: of two axes only where it is known
    to be of queries and keys."""
    last = dim in (-1, result.ndim - 1)
    axes = result.ndim > 2 or (result.ndim == 2 and scores is not None)
    return last and axes and result.is_floating_point()
