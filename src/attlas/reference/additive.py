"""Additive attention."""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.softmax import softmax


@takes_arrays
def additive(
    s: Float64[np.ndarray, "queries query_dim"],
    h: Float64[np.ndarray, "keys key_dim"],
    W_a: Float64[np.ndarray, "hidden_dim query_dim"],
    U_a: Float64[np.ndarray, "hidden_dim key_dim"],
    v_a: Float64[np.ndarray, " hidden_dim"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries key_dim"], Float64[np.ndarray, "queries keys"]]:
    """c_i = Σ_j α_ij h_j    Bahdanau, Cho & Bengio, 2015, eq. 5.

    Returns the contexts c and the weights α.

    Args:
        s: The decoder's states; row i is s_{i−1}, the query of word i.
        h: The encoder's annotations.
    """
    of_state = s @ W_a.T  # W_a s_{i−1}
    of_annotation = h @ U_a.T  # U_a h_j: does not depend on i, so the paper computes it once
    pairs = (
        of_state[:, np.newaxis, :] + of_annotation[np.newaxis, :, :]
    )  # (queries, keys, hidden_dim)
    e = np.tanh(pairs) @ v_a  # e_ij = v_aᵀ tanh(W_a s_{i−1} + U_a h_j)    appendix A.1.2
    alpha = softmax(e, mask)  # eq. 6
    return alpha @ h, alpha  # eq. 5
