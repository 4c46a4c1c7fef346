"""The largest of many numbers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def largest(
    values: Float[Tensor, "rows columns"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """The `count` largest of each row (all, where there are fewer), best first, and their columns.

    Among equals the first column comes first, which `Tensor.topk` does not promise: what it chooses
    changes with the width of the row, and so with what stands in the same batch. Columns of −∞ come
    in any order.
    """
    # One more than is asked for, to see whether the last one has an equal that was left out.
    best, columns = values.topk(min(count + 1, values.shape[1]), dim=1)
    tied = ((best[:, 1:] == best[:, :-1]) & ~best[:, 1:].isneginf()).any(dim=1)
    best, columns = best[:, :count], columns[:, :count]
    if tied.any():  # seldom, and then a few times as slow; a stable sort of all is far slower still
        rows = tied.nonzero().squeeze(1)
        columns = columns.index_put((rows,), _first(values[rows], best[rows], columns[rows]))
    return best, columns


def _first(
    values: Float[Tensor, "rows columns"],
    best: Float[Tensor, "rows count"],
    found: Int[Tensor, "rows count"],
) -> Int[Tensor, "rows count"]:
    """The first columns that hold the `best` values; `found` are any that do."""
    least, count = best[:, -1:], best.shape[1]
    places = torch.arange(values.shape[1], dtype=torch.int32, device=values.device)
    equal = torch.where(values == least, places, len(places)).topk(count, largest=False).values
    above = best > least  # there is no choice among these, but for their order
    number = torch.arange(count, device=values.device) - above.sum(dim=1, keepdim=True)
    chosen = torch.where(above, found, equal.gather(1, number.clamp(min=0)).long())
    chosen, order = chosen.sort(dim=1)
    by_value = best.gather(1, order).sort(dim=1, descending=True, stable=True).indices
    return chosen.gather(1, by_value)
