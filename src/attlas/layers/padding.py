"""Padding: the slots that hold no token."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from attlas.errors import AttlasError


def check_real(real: Shaped[Tensor, "..."], shape: tuple[int, ...]) -> None:
    """Errors: `AttlasError` where `real` is not one bool for each of the slots of this shape."""
    if real.dtype != torch.bool or real.shape != shape:
        raise AttlasError(
            f"real of bool and shape {tuple(shape)}, True = a token",
            f"{str(real.dtype).removeprefix('torch.')} of shape {tuple(real.shape)}",
            "compare the ids with that of padding, or a mask of numbers with 0",
        )


def without_junk(
    source: Float[Tensor, "batch slots width"], real: Shaped[Tensor, "..."] | None
) -> Float[Tensor, "batch slots width"]:
    """The source with zeros in its padding: 0 · NaN is NaN, so weights of zero are not enough.

    Errors: `AttlasError` where `real` is not one bool per slot.
    """
    if real is None:
        return source
    check_real(real, source.shape[:-1])
    return source.masked_fill(~real.unsqueeze(-1), 0.0)
