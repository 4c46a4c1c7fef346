"""Erasure: does the decision stay without the keys of the greatest weights?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import AttentionRows, AttentionTarget, jensen_shannon
from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class ErasedKey:
    """An erased key, and its effect.

    Args:
        key: Its number; −1 = none, because there was none to choose.
        weight: Its weight.
        flipped: Whether another label is decided for.
        divergence: Jensen–Shannon of the outputs in nats, 0 … ln 2.
    """

    key: Int[Tensor, "*draws batch"]
    weight: Float[Tensor, "*draws batch"]
    flipped: Bool[Tensor, "*draws batch"]
    divergence: Float[Tensor, "*draws batch"]


@dataclass(frozen=True, slots=True)
class SingleErasure:
    """Erasure of the key of the greatest weight, and of random other keys, draw by draw."""

    greatest: ErasedKey
    random: ErasedKey

    @property
    def gap(self) -> Float[Tensor, "draws batch"]:
        """ΔJS = JS(p, q of the greatest) − JS(p, q of a random one)    eq. 1; below 0 where the
        random key mattered more.
        """
        return self.greatest.divergence - self.random.divergence


@dataclass(frozen=True, slots=True)
class DecisionFlips:
    """When the decision of each example flipped as keys were erased in some order.

    Args:
        count: Keys erased by then, 0 = it never flipped.
        fraction: The same of those that could be seen, NaN where it never flipped.
    """

    count: Int[Tensor, " batch"]
    fraction: Float[Tensor, " batch"]


def single_erasure(
    model: nn.Module,
    call: Callable[[], Tensor],
    target: AttentionTarget | None = None,
    *,
    seed: int,
    draws: int = 1,
) -> SingleErasure:
    """α_i* = 0 with i* = argmax_j a_j, and α_r = 0 for a random r ≠ i*; the rest made to sum to 1.

    Where weights tell what matters, erasing i* flips decisions that erasing r does not. Serrano &
    Smith, Is Attention Interpretable?, 2019, sections 4.1 and 4.2. Of several rows, a key's weight
    is its mean, and it is erased in each of them.

    Args:
        call: Runs the model on a batch and returns the logits of each example, (batch, labels); it
            runs draws + 4 times, in eval mode.
        target: Which rows; None = all of the model's only layer.

    Raises:
        AttlasError: As of `AttentionRows`.
    """
    if draws < 1:
        raise AttlasError("at least one draw", str(draws), "use e.g. 1")
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        largest = _erased(rows, rows.vector, rows.visible)
        first = F.one_hot(largest.key.clamp(min=0), rows.visible.shape[1])
        others = rows.visible & (first == 0)
        erasures = [_erased(rows, _noise(others, generator), others) for _ in range(draws)]
    return SingleErasure(
        largest,
        ErasedKey(
            torch.stack([draw.key for draw in erasures]),
            torch.stack([draw.weight for draw in erasures]),
            torch.stack([draw.flipped for draw in erasures]),
            torch.stack([draw.divergence for draw in erasures]),
        ),
    )


def multi_erasure(
    model: nn.Module,
    call: Callable[[], Tensor],
    target: AttentionTarget | None = None,
    *,
    seed: int,
) -> dict[str, DecisionFlips]:
    """min k such that the decision flips without the k first keys of an order; 1 … n − 1.

    Orders: "weight", descending a_j; "gradient", descending Σ_r ∂p(ŷ)/∂α_rj; "weight × gradient",
    descending Σ_r α_rj ∂p(ŷ)/∂α_rj; "random". A good order flips the decision soon. Serrano &
    Smith, 2019, sections 5.1 and 5.2. At least one of n keys stays.

    Args:
        call: As of `single_erasure`; it runs up to 4 n times.

    Raises:
        AttlasError: As of `AttentionRows`.
    """
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    slopes = rows.gradients()
    noise = _noise(rows.visible, torch.Generator().manual_seed(seed))
    scores = {
        "weight": rows.vector,
        "gradient": slopes.sum(1),
        "weight × gradient": (slopes * rows.weights).sum(1),
        "random": noise,
    }
    return flips(rows, scores)


def flips(
    rows: AttentionRows, scores: Mapping[str, Float[Tensor, "batch keys"]]
) -> dict[str, DecisionFlips]:
    """When the decision flips as keys are erased by descending score; among equals, the first."""
    with torch.no_grad():
        return {name: _flips(rows, score) for name, score in scores.items()}


def _flips(rows: AttentionRows, score: Float[Tensor, "batch keys"]) -> DecisionFlips:
    hidden = score.masked_fill(~rows.visible, -torch.inf)
    # Hidden keys come last, also after visible ones of score −∞.
    order = hidden.argsort(dim=-1, descending=True, stable=True)
    order = order.gather(1, (~rows.visible).gather(1, order).int().argsort(dim=-1, stable=True))
    ranks = order.argsort(-1)
    total = rows.visible.sum(-1)
    count = torch.zeros_like(total)
    for number in range(1, int(total.max())):
        unflipped = (count == 0) & (number < total)
        if not bool(unflipped.any()):
            break
        flipped = rows.flipped(rows.output_of(rows.without(ranks < number)))
        count = torch.where(unflipped & flipped, number, count)
    fraction = count / total
    return DecisionFlips(count, fraction.masked_fill(count == 0, torch.nan))


def _erased(
    rows: AttentionRows, score: Float[Tensor, "batch keys"], among: Bool[Tensor, "batch keys"]
) -> ErasedKey:
    """Erase the key with the greatest score among these, where there is one."""
    has_key = among.any(-1)
    key = score.masked_fill(~among, -torch.inf).argmax(-1)
    erased_mask = F.one_hot(key, among.shape[1]).bool() & has_key[:, None]
    output = rows.output_of(rows.without(erased_mask))
    weight = rows.vector.gather(1, key[:, None]).squeeze(1)
    return ErasedKey(
        torch.where(has_key, key, -1),
        torch.where(has_key, weight, 0.0),
        rows.flipped(output) & has_key,
        torch.where(has_key, jensen_shannon(rows.output, output), 0.0),
    )


def _noise(like: Bool[Tensor, "batch keys"], generator: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=generator).to(like.device)
