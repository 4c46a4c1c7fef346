"""Layer normalisation."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays


class NormParameters(NamedTuple):
    """What `layer_norm` has learned: the gain and the bias of each number of a position."""

    g: Float64[np.ndarray, " embed_dim"]
    b: Float64[np.ndarray, " embed_dim"]


@takes_arrays
def layer_norm(
    a: Float64[np.ndarray, "positions embed_dim"],
    g: Float64[np.ndarray, " embed_dim"],
    b: Float64[np.ndarray, " embed_dim"],
    epsilon: float = 1e-5,
) -> Float64[np.ndarray, "positions embed_dim"]:
    """g ⊙ (a − μ) / σ + b    Ba, Kiros & Hinton, Layer Normalization, 2016, eq. 3 and 4.

    μ and σ² are the mean and the variance over the width of each position alone. ε, which the paper
    leaves out, stands beside σ² and keeps a constant row finite.
    """
    mu = a.mean(axis=-1, keepdims=True)
    variance = ((a - mu) ** 2).mean(axis=-1, keepdims=True)
    return g * (a - mu) / np.sqrt(variance + epsilon) + b
