"""The position-wise feed-forward network."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays


class FeedForwardParameters(NamedTuple):
    """What `feed_forward` has learned."""

    W_1: Float64[np.ndarray, "embed_dim ffn_dim"]
    b_1: Float64[np.ndarray, " ffn_dim"]
    W_2: Float64[np.ndarray, "ffn_dim embed_dim"]
    b_2: Float64[np.ndarray, " embed_dim"]


@takes_arrays
def feed_forward(
    x: Float64[np.ndarray, "positions embed_dim"],
    W_1: Float64[np.ndarray, "embed_dim ffn_dim"],
    b_1: Float64[np.ndarray, " ffn_dim"],
    W_2: Float64[np.ndarray, "ffn_dim embed_dim"],
    b_2: Float64[np.ndarray, " embed_dim"],
) -> Float64[np.ndarray, "positions embed_dim"]:
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂    Vaswani et al., 2017, section 3.3, eq. 2.

    Each position alone, and all of them with the same matrices.
    """
    return np.maximum(0.0, x @ W_1 + b_1) @ W_2 + b_2
