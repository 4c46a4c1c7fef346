"""What is asked of one map: (batch, heads, length, width).

Beside it what a model's own kernel takes for such a map, and what holding the matrix would take.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from cases import PASSES, Shape, Suite, Work, drawn
from torch import Tensor

from attlas.patterns import causal, everywhere
from attlas.recording import FactoredAttentionMap

THRESHOLD = 0.01
CELLS = 1024


def attention_map(shape: Shape, *, ahead: bool) -> FactoredAttentionMap:
    """A map of random vectors, as wide as those of trained models are."""
    query, key, _ = (leaf.detach() for leaf in drawn(shape, shape, shape))
    return FactoredAttentionMap(query, key, shape[-1] ** -0.5, everywhere if ahead else causal, 0)


def requested(
    question: Callable[[FactoredAttentionMap], Tensor], *, ahead: bool
) -> Callable[[Shape], Work]:
    """A reading is asked."""

    def work(shape: Shape) -> Work:
        one = attention_map(shape, ahead=ahead)
        return Work(lambda: question(one), [])

    return work


def every_statistic(one: FactoredAttentionMap) -> Tensor:
    """What the dense way has as well, in one pass."""
    summary = one.summary(threshold=THRESHOLD)
    return torch.stack([torch.as_tensor(getattr(summary, name)) for name in NAMES]).float()


NAMES = (
    "entropy", "normalized_entropy", "effective_keys", "num_visible", "count_above", "max_weight",
    "argmax", "distance",
    "first_weight", "last_weight", "self_weight", "previous_weight", "next_weight", "received",
)  # fmt: skip


def dense_statistics(weights: Tensor, *, ahead: bool) -> Tensor:
    """The same of a matrix that is held."""
    length = weights.shape[-1]
    place = torch.arange(length)
    entropy = torch.special.entr(weights).sum(-1)
    seen = torch.full((length,), length) if ahead else place + 1
    num_visible = seen.float().expand_as(entropy)
    max_weight, argmax = weights.max(-1)
    far = [
        torch.linalg.vecdot(some, (rows.unsqueeze(-1) - place).abs().float())
        for some, rows in zip(weights.split(256, -2), place.split(256), strict=True)
    ]
    diagonal = [
        F.pad(weights.diagonal(shift, -2, -1), (max(0, -shift), max(0, shift)))
        for shift in (0, -1, 1)
    ]
    found = (
        entropy, entropy / num_visible.log().clamp(min=1e-30), entropy.exp(), num_visible,
        (weights > THRESHOLD).sum(-1).float(), max_weight, argmax.float(), torch.cat(far, -1),
        weights[..., 0], weights[..., -1], *diagonal, weights.sum(-2),
    )  # fmt: skip
    return torch.stack(found)


def of_matrix(question: Callable[[Tensor], Tensor], *, ahead: bool) -> Callable[[Shape], Work]:
    """The matrix is made, and then asked."""

    def work(shape: Shape) -> Work:
        one = attention_map(shape, ahead=ahead)

        def run() -> Tensor:
            scores = one.query @ one.keys.mT * one.scale
            if not ahead:
                scores.masked_fill_(
                    one.pattern.mask(shape[2], shape[2], 0).logical_not(), -torch.inf
                )
            return question(torch.softmax(scores, -1))

        return Work(run, [])

    return work


ROWS = tuple(name for name in NAMES if name not in ("count_above", "received"))
"""What a row says without the sum of all its weights being known first."""


def row_statistics(one: FactoredAttentionMap) -> Tensor:
    """What one pass over the scores of a row gives."""
    summary = one.summary(*ROWS)
    return torch.stack([torch.as_tensor(getattr(summary, name)) for name in ROWS]).float()


def entropies(one: FactoredAttentionMap) -> Tensor:
    """One statistic alone."""
    return one.entropy()


def pooled_by_hand(weights: Tensor) -> Tensor:
    """Means of square cells."""
    side = max(1, weights.shape[-1] // CELLS)
    return F.avg_pool2d(weights, side)


def fused(*, ahead: bool) -> Callable[[Shape], Work]:
    """The model's own work: one call of the fused kernel."""

    def work(shape: Shape) -> Work:
        leaves = [leaf.detach() for leaf in drawn(shape, shape, shape)]
        return Work(lambda: F.scaled_dot_product_attention(*leaves, is_causal=not ahead), [])

    return work


def by_hand(*, ahead: bool) -> Callable[[Shape], Work]:
    """softmax(q kᵀ / √d) v, written down."""

    def work(shape: Shape) -> Work:
        value = drawn(shape, shape, shape)[2].detach()
        return of_matrix(lambda weights: weights @ value, ahead=ahead)(shape)

    return work


FUSED, HAND, HELD = (
    "F.scaled_dot_product_attention",
    "softmax(q kᵀ) v by hand",
    "the same statistics of the held matrix",
)


def summaries(*, ahead: bool) -> Suite:
    """All quick statistics at once."""
    dense = of_matrix(lambda weights: dense_statistics(weights, ahead=ahead), ahead=ahead)
    return Suite(
        "batch × heads × length × width",
        {
            "attention_map.summary()": requested(every_statistic, ahead=ahead),
            "attention_map.summary(…), of rows": requested(row_statistics, ahead=ahead),
            "attention_map.entropy()": requested(entropies, ahead=ahead),
            FUSED: fused(ahead=ahead),
            HAND: by_hand(ahead=ahead),
            HELD: dense,
        },
        dense,
        quick=((1, 1, 4096, 64),),
        more=((1, 8, 4096, 64), (1, 1, 16384, 64)),
        memory=((1, 8, 4096, 64), (1, 1, 16384, 64)),
        others=("attention_map.summary(…), of rows", "attention_map.entropy()", FUSED, HAND),
        passes=PASSES[:1],
        blocks=7,
    )


def overview(one: FactoredAttentionMap) -> Tensor:
    """The whole map in 1,024 × 1,024 cells."""
    cells = min(CELLS, one.shape[2])
    return one.pool(shape=(cells, cells))


def zoomed(one: FactoredAttentionMap) -> Tensor:
    """A window of it, cell by cell."""
    middle = one.shape[2] // 2
    cells = min(CELLS, middle)
    return one.pool((middle, middle + cells), (middle - cells, middle), (cells, cells))


def largest() -> Suite:
    """The longest map that the held matrix survives with 24 GB: it takes 17 of them."""
    dense = of_matrix(lambda weights: dense_statistics(weights, ahead=True), ahead=True)
    return Suite(
        "batch × heads × length × width",
        {"attention_map.summary()": requested(every_statistic, ahead=True), HELD: dense},
        dense,
        quick=((1, 1, 4096, 64),),
        more=((1, 1, 32768, 64),),
        memory=((1, 1, 32768, 64),),
        passes=PASSES[:1],
        blocks=1,
    )


MAPS = {
    "summary": summaries(ahead=True),
    "causal summary": summaries(ahead=False),
    "the longest that can be held": largest(),
    "overview": Suite(
        "batch × heads × length × width",
        {
            "attention_map.pool()": requested(overview, ahead=True),
            FUSED: fused(ahead=True),
            "pooling the held matrix": of_matrix(pooled_by_hand, ahead=True),
        },
        of_matrix(pooled_by_hand, ahead=True),
        quick=((1, 1, 4096, 64),),
        more=((1, 1, 16384, 64),),
        memory=((1, 1, 16384, 64),),
        others=(FUSED,),
        passes=PASSES[:1],
        blocks=7,
    ),
    "very long": Suite(
        "batch × heads × length × width",
        {
            "attention_map.summary()": requested(every_statistic, ahead=True),
            FUSED: fused(ahead=True),
            "attention_map.pool()": requested(overview, ahead=True),
            "attention_map.pool(), zoomed": requested(zoomed, ahead=True),
        },
        fused(ahead=True),
        quick=((1, 1, 8192, 64),),
        more=((1, 1, 131072, 64),),
        memory=((1, 1, 131072, 64),),
        others=(
            "attention_map.summary()",
            FUSED,
            "attention_map.pool()",
            "attention_map.pool(), zoomed",
        ),
        passes=PASSES[:1],
        blocks=1,
    ),
}
