"""Texts of like length, encoded together."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_ROWS = 128  # texts that are encoded together: fewer are padded less, and take more calls
_SPARED = 0.1  # of all slots; less padding is not worth the calls

Encode = Callable[[Float[Tensor, "batch slots width"], Bool[Tensor, "batch slots"]], Tensor]


def by_length(
    encode: Encode, x: Float[Tensor, "batch slots width"], real: Bool[Tensor, "batch slots"]
) -> Float[Tensor, "batch slots width"]:
    """encode(x, real), without most of the padding: it is made of parts of the batch in turn, each
    as wide as its longest text. Behind that there are zeros.

    As a whole where that spares little, or where padding does not come behind the texts.
    """
    if real.shape != x.shape[:2] or not real.numel():
        return encode(x, real)  # which knows what is wrong with it, if anything is
    lengths = real.sum(1)
    order = lengths.argsort()
    parts = torch.split(order, _ROWS)
    widest = [int(lengths[part[-1]]) for part in parts]
    needed = sum(len(part) * width for part, width in zip(parts, widest, strict=True))
    behind = torch.arange(real.shape[1], device=real.device) < lengths.unsqueeze(1)
    if needed > (1 - _SPARED) * real.numel() or not torch.equal(behind, real):
        return encode(x, real)
    encoded = x.new_zeros(x.shape)
    for part, width in zip(parts, widest, strict=True):
        encoded[part, :width] = encode(x[part, :width], real[part, :width])
    return encoded
