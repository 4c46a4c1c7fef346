"""How far the first token sees through the layers of an encoder."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.patterns import Pattern

_BLOCK = 4_000_000  # pairs of positions asked at once


def needed(patterns: Sequence[Pattern], slots: int) -> Int[Tensor, " slots"]:
    """The least length of a text in which the last vector of its first token depends on slot j.

    n_L(0) = 1, else ∞;  n_{l−1}(j) = max(j + 1, min n_l(i) over i = j and all i that see j in
    layer l). A text of length m passes on what its own slots hold, so n is the furthest slot on
    the way that goes least far. ∞ is slots + 1.

    patterns: of the layers, from the first to the last. Memory is bounded; time is that of one look
    at the dense mask of a layer at the most, and O(slots × window) for windows.
    """
    own = torch.arange(1, slots + 1)
    never = slots + 1
    least = torch.full((slots,), never)
    least[:1] = 1
    for pattern in reversed(patterns):
        found = least.clone()
        open_ = torch.nonzero(least > own).squeeze(1)  # the others cannot become less
        seers = torch.nonzero(least < never).squeeze(1)
        size = max(1, _BLOCK // max(1, slots))
        for start in range(0, len(seers), size):
            some = seers[start : start + size]
            seen = pattern(some.unsqueeze(1), open_).expand(len(some), len(open_))
            through = torch.where(seen, least[some].unsqueeze(1), never).amin(0)
            found[open_] = torch.minimum(found[open_], torch.maximum(through, own[open_]))
        least = found
    return least


def out_of_sight(patterns: Sequence[Pattern], lengths: Sequence[int]) -> list[int]:
    """Of texts of so many tokens, and END beside them, how many tokens the first one never sees."""
    least = needed(patterns, 1 + max(lengths, default=0))
    counted = {length: int((least[:length] > length + 1).sum()) for length in set(lengths)}
    return [counted[length] for length in lengths]
