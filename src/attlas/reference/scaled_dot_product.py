"""Scaled dot-product attention."""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.softmax import softmax


@takes_arrays
def scaled_dot_product(
    Q: Float64[np.ndarray, "queries d_k"],
    K: Float64[np.ndarray, "keys d_k"],
    V: Float64[np.ndarray, "keys value_dim"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries value_dim"], Float64[np.ndarray, "queries keys"]]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V    Vaswani et al., 2017, eq. 1.

    Returns what each query reads, and the weights with which it reads.
    """
    d_k = K.shape[-1]
    # A product of d_k terms of variance 1 has variance d_k; the root brings it back to 1, where
    # the softmax is not yet flat at one position (the paper's footnote 4).
    scores = Q @ K.T / np.sqrt(d_k)
    weights = softmax(scores, mask)
    return weights @ V, weights
