"""The softmax over what may be seen."""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays


@takes_arrays
def softmax(
    scores: Float64[np.ndarray, "*rows keys"],
    mask: Bool[np.ndarray, "*#rows #keys"] | None = None,
) -> Float64[np.ndarray, "*rows keys"]:
    """α_ij = exp(e_ij) / Σ_k exp(e_ik)    Bahdanau, Cho & Bengio, 2015, eq. 6.

    j and k run over the positions that query i may see; the other weights are 0, and so are all of
    a query that sees nothing.
    """
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)  # exp(−∞) = 0
    # exp(e − c) / Σ exp(e − c) is the same for any c; with the maximum nothing overflows.
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isinf(highest), 0.0, highest))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0.0, 1.0, total)
