"""Rows that share what is remembered."""

import torch
from jaxtyping import Int
from torch import Tensor


def shared(
    rows: Int[Tensor, " chosen"], each: int, kept: int
) -> tuple[Int[Tensor, " memories"] | None, int]:
    """Which memories the chosen rows have, None = all `kept` of them in order; and how many
    neighbouring rows share one from now on, where `each` did before.

    The greatest number that fits: the hypotheses of a sentence stand side by side, and as long as
    they only change places among themselves, every memory stays where it is.
    """
    memories = rows // each
    each = _alike(memories)
    memories = memories[::each]
    if len(memories) == kept and torch.equal(memories, torch.arange(kept, device=rows.device)):
        return None, each
    return memories, each


def _alike(memories: Int[Tensor, " rows"]) -> int:
    """The greatest n for which each n neighbours are equal; the rows are a multiple of n."""
    if len(memories) < 2:
        return 1
    changes = memories[1:] != memories[:-1]
    each = int(changes.to(torch.int8).argmax()) + 1 if bool(changes.any()) else len(memories)
    if len(memories) % each:
        return 1
    return each if bool((memories.view(-1, each) == memories[::each, None]).all()) else 1
