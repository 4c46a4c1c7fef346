"""Dropout of attention weights, or of anything else."""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays


@takes_arrays
def dropout(
    x: Float64[np.ndarray, "..."], keep_mask: Bool[np.ndarray, "..."], p: float
) -> Float64[np.ndarray, "..."]:
    """y = x ⊙ kept / (1 − p), where each of `keep_mask` is False with probability p.

    Srivastava et al., 2014, section 4, scaled in training rather than in the test. Of attention
    weights, after the softmax (Vaswani et al., 2017, section 5.4, in the authors' code): what is
    left of a row does not sum to 1, but does so in expectation.
    """
    return x * keep_mask / (1.0 - p)
