"""What can be said of each query: one number for a row of weights w over the slots that it sees."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas.recording.streaming.block import Block

OfRow = Callable[[Block], Tensor]
"""A number for each row of a block: (heads, rows)."""


def entropy(block: Block) -> Float[Tensor, "heads rows"]:
    """−Σ w log w, in nats: how spread out a query looks."""
    return block.entropy


def evenness(block: Block) -> Float[Tensor, "heads rows"]:
    """Entropy / log n of the n slots that the query may see, from 0 to 1; 0 where n < 2."""
    most = block.visible.clamp(min=1).log()
    return torch.where(most > 0, block.entropy / most.clamp(min=1e-30), 0.0)


def effective(block: Block) -> Float[Tensor, "heads rows"]:
    """exp(entropy): so many slots, looked at evenly, would be as uncertain; 0 for none."""
    return torch.where(block.mass > 0, block.entropy.exp(), 0.0)


def visible(block: Block) -> Float[Tensor, "heads rows"]:
    """How many slots the query may see."""
    return block.visible.expand_as(block.mass)


def peak(block: Block) -> Float[Tensor, "heads rows"]:
    """max w."""
    if block.high == block.low:
        return torch.zeros_like(block.mass)
    return block.parts.amax(-1) * block.share


def argmax(block: Block) -> Int[Tensor, "heads rows"]:
    """The slot of the greatest weight, the first of equals; −1 where none is seen."""
    if block.high == block.low:
        return torch.full_like(block.mass, -1, dtype=torch.long)
    return torch.where(block.mass > 0, block.parts.argmax(-1) + block.low, -1)


def above(threshold: float) -> OfRow:
    """How many weights are greater than `threshold`."""

    def of_row(block: Block) -> Float[Tensor, "heads rows"]:
        least = threshold * torch.where(block.mass > 0, block.mass, 1.0)
        return (block.parts > least.unsqueeze(-1)).sum(-1, dtype=block.mass.dtype)

    return of_row


def distance(block: Block) -> Float[Tensor, "heads rows"]:
    """Σ_j w_j |i − j|, in slots: how far the query at position i looks."""
    first, rows = block.position, block.stop - block.start
    slots = torch.arange(block.low, block.high, device=block.mass.device)
    before = min(max(first - block.low, 0), len(slots))
    behind = min(max(first + rows - block.low, 0), len(slots))
    row = torch.arange(rows, device=block.mass.device)
    # Slots before and behind all of the rows are as far from each of them as from the nearest one,
    # and from that one to them; sums of such terms lose no digits, as Σ w j − i would.
    left, right = block.parts[..., :before], block.parts[..., behind:]
    total = _far(left, first - slots[:before], row)
    total += _far(right, slots[behind:] - (first + rows - 1), rows - 1 - row)
    inside = (first + row.unsqueeze(-1) - slots[before:behind]).abs().to(block.mass.dtype)
    total += torch.linalg.vecdot(block.parts[..., before:behind], inside)
    return total * block.share


def _far(
    parts: Float[Tensor, "heads rows slots"],
    to_nearest: Int[Tensor, " slots"],
    from_nearest: Int[Tensor, " rows"],
) -> Float[Tensor, "heads rows"]:
    both = torch.stack((to_nearest, torch.ones_like(to_nearest)), -1).to(parts.dtype)
    sums = parts @ both
    return sums[..., 0] + sums[..., 1] * from_nearest


def concentration(block: Block) -> Float[Tensor, "heads rows"]:
    """Gini's coefficient Σ_k (2k − n − 1) w_(k) / (n Σ w) of the n weights in ascending order.

    0: all are equal; (n − 1) / n: one has everything. 0 where nothing is seen.
    """
    ascending = block.parts.sort(-1).values
    count = block.visible.unsqueeze(-1)
    places = torch.arange(1, block.high - block.low + 1, device=block.mass.device)
    rank = places - (block.high - block.low - count)  # hidden slots have zeros, which come first
    total = (ascending * (2 * rank - count - 1)).sum(-1)
    return total * block.share / block.visible.clamp(min=1)


def on_first(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the first real slot: an attention sink (Xiao et al., 2024)."""
    return _on(block, block.ends[0])


def on_last(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the last real slot."""
    return _on(block, block.ends[1])


def on_offset(offset: int) -> OfRow:
    """The weight of the slot at i + offset: 0 is the query's own, −1 the one before."""

    def of_row(block: Block) -> Float[Tensor, "heads rows"]:
        rows = block.stop - block.start
        column = torch.arange(rows, device=block.mass.device) + block.position + offset - block.low
        inside = (column >= 0) & (column < block.high - block.low)
        if not bool(inside.any()):
            return torch.zeros_like(block.mass)
        place = torch.where(inside, column, 0).expand(block.parts.shape[0], -1).unsqueeze(-1)
        return block.parts.gather(-1, place).squeeze(-1) * block.share * inside

    return of_row


def _on(block: Block, slot: int) -> Float[Tensor, "heads rows"]:
    if not block.low <= slot < block.high:
        return torch.zeros_like(block.mass)
    return block.parts[..., slot - block.low] * block.share
