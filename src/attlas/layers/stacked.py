"""Two batches as one."""

import torch
import torch.nn.functional as F
from jaxtyping import Shaped
from torch import Tensor


def stacked(
    one: Shaped[Tensor, "rows *sizes"],
    other: Shaped[Tensor, "other_rows *other_sizes"],
    fill: int = 0,
) -> Shaped[Tensor, "all_rows *most"]:
    """The rows of both, one after the other; the shorter on another axis is filled at its end."""
    sizes = [max(pair) for pair in zip(one.shape[1:], other.shape[1:], strict=True)]
    return torch.cat([_filled(part, sizes, fill) for part in (one, other)])


def _filled(
    part: Shaped[Tensor, "rows *sizes"], sizes: list[int], fill: int
) -> Shaped[Tensor, "rows *most"]:
    missing = [size - own for size, own in zip(sizes, part.shape[1:], strict=True)]
    if not any(missing):
        return part
    return F.pad(part, [n for last in reversed(missing) for n in (0, last)], value=fill)
