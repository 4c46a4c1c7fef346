"""The largest numbers of each row."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas._hardware import is_capturable

_BLOCK = 32  # columns


def largest(
    values: Float[Tensor, "rows columns"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """The `count` largest of each row (all, where there are fewer), best first, and their columns.

    Among equals the first column comes first, which `Tensor.topk` does not promise: what it chooses
    changes with the width of the row, and so with what stands in the same batch. Columns of −∞ come
    in any order.

    A wide row is cut into blocks, because their greatest numbers are found many times as fast as an
    order: a number that is among the n largest lies in one of the n blocks whose greatest numbers
    are largest, of equals the first.
    """
    blocks = values.shape[1] // _BLOCK
    if blocks < 4 * count:
        return _sorted_topk(values, count)
    head, tail = values[:, : blocks * _BLOCK], blocks * _BLOCK
    _, blocks_read = _sorted_topk(head.reshape(len(values), blocks, _BLOCK).amax(2), count)
    offsets = torch.arange(_BLOCK, device=values.device)
    # In the order of the columns, so that the first of equals is the first here too.
    indices = (blocks_read.sort(1).values.unsqueeze(2) * _BLOCK + offsets).flatten(1)
    remaining = torch.arange(tail, values.shape[1], device=values.device)
    indices = torch.cat([indices, remaining.expand(len(values), -1)], dim=1)
    best, columns = _sorted_topk(values.gather(1, indices), count)
    return best, indices.gather(1, columns)


def _sorted_topk(
    values: Float[Tensor, "rows columns"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    # One more than is asked for, to see whether the last one has an equal that was left out.
    best, columns = values.topk(min(count + 1, values.shape[1]), dim=1)
    tied = ((best[:, 1:] == best[:, :-1]) & ~best[:, 1:].isneginf()).any(dim=1)
    best, columns = best[:, :count], columns[:, :count]
    if is_capturable():  # nothing is asked of the device: always the slower way
        columns = _first(values, best, columns)
    elif tied.any():  # seldom, and a few times as slow; a stable sort of all is far slower
        rows = tied.nonzero().squeeze(1)
        columns = columns.index_put((rows,), _first(values[rows], best[rows], columns[rows]))
    return best, columns


def _first(
    values: Float[Tensor, "rows columns"],
    best: Float[Tensor, "rows count"],
    candidates: Int[Tensor, "rows count"],
) -> Int[Tensor, "rows count"]:
    """The first columns that hold the `best` values; `candidates` are any that do."""
    least, count = best[:, -1:], best.shape[1]
    positions = torch.arange(values.shape[1], dtype=torch.int32, device=values.device)
    equal = (
        torch.where(values == least, positions, len(positions)).topk(count, largest=False).values
    )
    is_above = best > least  # there is no choice among these, but for their order
    number = torch.arange(count, device=values.device) - is_above.sum(dim=1, keepdim=True)
    ids = torch.where(is_above, candidates, equal.gather(1, number.clamp(min=0)).long())
    ids, order = ids.sort(dim=1)
    by_value = best.gather(1, order).sort(dim=1, descending=True, stable=True).indices
    return ids.gather(1, by_value)
