"""Root mean square layer normalisation."""

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays


@takes_arrays
def rms_norm(
    a: Float64[np.ndarray, "positions embed_dim"],
    g: Float64[np.ndarray, " embed_dim"],
    epsilon: float = 1e-6,
) -> Float64[np.ndarray, "positions embed_dim"]:
    """g ⊙ a / RMS(a),  RMS(a) = √(Σ a² / n)    Zhang & Sennrich, RMSNorm, 2019, eq. 4.

    n is the width. ε, which the paper leaves out, stands beside the mean of the squares and keeps a
    row of zeros finite.
    """
    return g * a / np.sqrt((a**2).mean(axis=-1, keepdims=True) + epsilon)
