"""Correlation: do greater weights go to the keys that matter more?"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import AttentionRows, AttentionTarget, total_variation
from attlas.errors import AttlasError

# Kendall's rank correlation.


def kendall_tau(first: Float[Tensor, "..."], second: Float[Tensor, "..."]) -> float:
    """τ_b = (C − D) / √((n₀ − n₁) (n₀ − n₂)), from −1 (reversed) to 1 (the same order).

    C and D: the pairs of items that both put into the same, or the opposite order; n₀ = n (n − 1) /
    2 pairs in all, of which n₁ tie in the first and n₂ in the second. NaN if one of them ties
    in every pair. Kendall, The Treatment of Ties in Ranking Problems, 1945.

    Args:
        first, second: (items), what each of them says of every item. Exact, in O(n log n): with n₃
            pairs that tie in both, C − D = n₀ − n₁ − n₂ + n₃ − 2 · (the exchanges that sort the
            second when the first is in order), Knight, 1966.

    Raises:
        AttlasError: For unequal lengths, and for NaN.
    """
    if first.ndim != 1 or first.shape != second.shape:
        raise AttlasError(
            "two lists of one length",
            f"shapes {tuple(first.shape)} and {tuple(second.shape)}",
            "compare the same items",
        )
    if bool(first.isnan().any() | second.isnan().any()):
        raise AttlasError("numbers that have an order", "NaN", "leave such items out")
    first_ranks, second_ranks = _ranks(first), _ranks(second)
    count = len(first_ranks)
    pairs, joint = count * (count - 1) // 2, first_ranks * (count + 1) + second_ranks
    tied_ours, tied_theirs, tied_both = _tied(first_ranks), _tied(second_ranks), _tied(joint)
    untied = (pairs - tied_ours) * (pairs - tied_theirs)
    if not untied:
        return nan
    exchanges = _inversions(second_ranks[np.argsort(joint, kind="stable")])
    return (pairs - tied_ours - tied_theirs + tied_both - 2 * exchanges) / sqrt(untied)


def _ranks(values: Float[Tensor, " items"]) -> NDArray[np.int64]:
    """0, 1, … in ascending order; equals share one."""
    ranks: Int[Tensor, " items"] = torch.unique(values.detach().cpu(), return_inverse=True)[1]
    return ranks.numpy()


def _tied(ranks: NDArray[np.int64]) -> int:
    """Σ t (t − 1) / 2 over the groups of t equals."""
    counts = np.unique(ranks, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: NDArray[np.int64]) -> int:
    """The number of inversions, pairs with the greater before the smaller, in O(n log n).

    The highest differing bit decides about two numbers. So the list is sorted by the higher bits,
    and within a group of equal ones each 1 before a 0 is counted, bit by bit.
    """
    total, positions = 0, np.arange(len(ranks))
    for bit in reversed(range(int(ranks.max()).bit_length())):
        group, half_group, bit_set = ranks >> (bit + 1), ranks >> bit, (ranks >> bit) & 1
        first = _beginnings(group)
        set_before = np.cumsum(bit_set) - bit_set
        set_before = set_before - set_before[first]  # before it, in its group
        total += int(set_before[bit_set == 0].sum())
        rank_in_group = np.where(bit_set == 1, set_before, positions - first - set_before)
        sorted_ranks = np.empty_like(ranks)
        sorted_ranks[_beginnings(half_group) + rank_in_group] = ranks
        ranks = sorted_ranks
    return total


def _beginnings(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the group of each item begins, when groups stand in ascending order."""
    sizes = np.bincount(groups)
    starts: NDArray[np.int64] = (np.cumsum(sizes) - sizes)[groups]
    return starts


@dataclass(frozen=True, slots=True)
class Correlation:
    """Kendall's τ_b between the weights of the visible keys and how much they matter.

    Args:
        tau: −1 … 1 of each example; NaN where the weights, or what matters, are all equal, or fewer
            than two keys are visible.
    """

    tau: Float[Tensor, " batch"]
    weights: Float[Tensor, "batch keys"]
    importance: Float[Tensor, "batch keys"]
    visible: Bool[Tensor, "batch keys"]


def gradient_correlation(
    model: nn.Module, call: Callable[[], Tensor], target: AttentionTarget | None = None
) -> Correlation:
    """τ_b(a, g), g_j = |Σ_r ∂p(ŷ) / ∂α_rj|, ŷ the label that is decided for.

    After Jain & Wallace, 2019, section 4.1, who take the gradient with respect to the input, the
    weights held fixed. This one asks about the weights themselves, as Serrano & Smith, 2019,
    section 5.2, do: each by itself, without the rest giving way.

    Args:
        call: Runs the model on a batch and returns the logits of each example, (batch, labels); it
            runs four times, in eval mode.
        target: Which rows; of several, a key's weight a is its mean.

    Raises:
        AttlasError: As of `AttentionRows` and `weight_gradient`.
    """
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    return _correlation(rows, rows.gradients().sum(1).abs())


def product_correlation(
    model: nn.Module, call: Callable[[], Tensor], target: AttentionTarget | None = None
) -> Correlation:
    """τ_b(a, g),  g_j = |Σ_r α_rj ∂p(ŷ) / ∂α_rj|: what the output would lose with the key's
    weight, to first order    Serrano & Smith, 2019, section 5.2.

    Otherwise as `gradient_correlation`.
    """
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    return _correlation(rows, (rows.gradients() * rows.weights).sum(1).abs())


def leave_one_out_correlation(
    model: nn.Module, call: Callable[[], Tensor], target: AttentionTarget | None = None
) -> Correlation:
    """τ_b(a, d),  d_j = ½ Σ_y |p(y) − p(y without key j)|: its weight is 0, and the others
    are made to sum to what they all did.

    After Jain & Wallace, 2019, section 4.1, who take the token out of the text; here it stays, and
    is not looked at. The call runs once for each key; otherwise as `gradient_correlation`.
    """
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    output_changes = torch.zeros_like(rows.vector)
    with torch.no_grad():
        for key in range(output_changes.shape[1]):
            erased_mask = torch.zeros_like(rows.visible)
            erased_mask[:, key] = True
            output_changes[:, key] = total_variation(
                rows.output, rows.output_of(rows.without(erased_mask))
            )
    return _correlation(rows, output_changes)


def _correlation(rows: AttentionRows, importance: Float[Tensor, "batch keys"]) -> Correlation:
    taus = [
        kendall_tau(weights[visible], matters[visible])
        for weights, matters, visible in zip(rows.vector, importance, rows.visible, strict=True)
    ]
    tau = torch.tensor(taus).to(importance)
    return Correlation(tau, rows.vector, importance, rows.visible)
