"""What can be said of each query: one number for a row of weights w over the slots that it sees."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear

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
    return torch.where(block.sees, block.entropy.exp(), 0.0)


def visible(block: Block) -> Float[Tensor, "heads rows"]:
    """How many slots the query may see."""
    return block.visible.expand(block.weights.shape[:2])


def peak(block: Block) -> Float[Tensor, "heads rows"]:
    """max w."""
    return _nothing(block) if block.high == block.low else block.peak


def argmax(block: Block) -> Int[Tensor, "heads rows"]:
    """The slot of the greatest weight, the first of equals; −1 where none is seen."""
    if block.high == block.low:
        return torch.full(block.weights.shape[:2], -1, device=block.weights.device)
    return torch.where(block.sees, block.greatest + block.low, -1)


def above(threshold: float) -> OfRow:
    """How many weights are greater than `threshold`."""

    def of_row(block: Block) -> Float[Tensor, "heads rows"]:
        # As floats: to sum bools takes six times as long.
        return torch.gt(block.weights, threshold, out=block.scratch).sum(-1)

    return of_row


def distance(block: Block) -> Float[Tensor, "heads rows"]:
    """Σ_j w_j |i − j|, in slots: how far the query at position i looks."""
    first, rows = block.position, block.stop - block.start
    slots = torch.arange(block.low, block.high, device=block.weights.device)
    before = min(max(first - block.low, 0), len(slots))
    behind = min(max(first + rows - block.low, 0), len(slots))
    row = torch.arange(rows, device=block.weights.device)
    # Slots before and behind all of the rows are as far from each of them as from the nearest one,
    # and from that one to them; sums of such terms lose no digits, as Σ w j − i would.
    left, right = block.weights[..., :before], block.weights[..., behind:]
    total = _far(left, first - slots[:before], row)
    total += _far(right, slots[behind:] - (first + rows - 1), rows - 1 - row)
    inside = (first + row.unsqueeze(-1) - slots[before:behind]).abs().to(block.weights.dtype)
    total += torch.linalg.vecdot(block.weights[..., before:behind], inside)
    return total


def _far(
    weights: Float[Tensor, "heads rows slots"],
    to_nearest: Int[Tensor, " slots"],
    from_nearest: Int[Tensor, " rows"],
) -> Float[Tensor, "heads rows"]:
    both = torch.stack((to_nearest, torch.ones_like(to_nearest))).to(weights.dtype)
    sums = linear(weights, both)
    return sums[..., 0] + sums[..., 1] * from_nearest


def concentration(block: Block) -> Float[Tensor, "heads rows"]:
    """Gini's coefficient Σ_k (2k − n − 1) w_(k) / (n Σ w) of the n weights in ascending order.

    0: all are equal; (n − 1) / n: one has everything. 0 where nothing is seen. It is of what the
    slots have: beside a sink, which takes a part away, their weights sum to less than 1.
    """
    ascending = block.weights.sort(-1).values
    count = block.visible.unsqueeze(-1)
    places = torch.arange(1, block.high - block.low + 1, device=block.weights.device)
    rank = places - (block.high - block.low - count)  # hidden slots have zeros, which come first
    total = (ascending * (2 * rank - count - 1)).sum(-1)
    whole = ascending.sum(-1)
    return total / torch.where(whole == 0, 1.0, whole * block.visible.clamp(min=1))


def on_first(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the first real slot: an attention sink (Xiao et al., 2024)."""
    return _on(block, block.ends()[0])


def on_last(block: Block) -> Float[Tensor, "heads rows"]:
    """The weight of the last real slot."""
    return _on(block, block.ends()[1])


def on_offset(offset: int) -> OfRow:
    """The weight of the slot at i + offset: 0 is the query's own, −1 the one before."""

    def of_row(block: Block) -> Float[Tensor, "heads rows"]:
        row = torch.arange(block.stop - block.start, device=block.weights.device)
        column = row + block.position + offset - block.low
        inside = (column >= 0) & (column < block.high - block.low)
        if not bool(inside.any()):
            return _nothing(block)
        place = torch.where(inside, column, 0).expand(block.weights.shape[0], -1).unsqueeze(-1)
        return block.weights.gather(-1, place).squeeze(-1) * inside

    return of_row


def _on(block: Block, slot: int) -> Float[Tensor, "heads rows"]:
    if not block.low <= slot < block.high:
        return _nothing(block)
    return block.weights[..., slot - block.low]


def _nothing(block: Block) -> Float[Tensor, "heads rows"]:
    return block.weights.new_zeros(block.weights.shape[:2])
