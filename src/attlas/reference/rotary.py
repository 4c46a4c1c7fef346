"""Rotary positions."""

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays


@takes_arrays
def rotary(
    x: Float64[np.ndarray, "positions embed_dim"], offset: int = 0
) -> Float64[np.ndarray, "positions embed_dim"]:
    """f(x, m) = x e^{imθ}    Su et al., RoFormer, 2021, eq. 12 and 15.

    Each pair of numbers (x₂ᵢ, x₂ᵢ₊₁) is a complex number, and the vector at position m is turned
    by mθᵢ, θᵢ = 10000^(−2i/d). Turned queries and keys have products that depend on their distance
    alone. d: the width, even. `offset` is the position of the first row.
    """
    m = offset + np.arange(len(x))[:, np.newaxis]
    theta = 10_000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    rotated = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * m * theta)
    return np.stack([rotated.real, rotated.imag], axis=-1).reshape(x.shape)
