"""The logistic sigmoid."""

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays


@takes_arrays
def sigmoid(a: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """σ(a) = 1 / (1 + exp(−a)) = (1 + tanh(a / 2)) / 2.

    The second form never overflows.
    """
    return (1.0 + np.tanh(a / 2.0)) / 2.0
