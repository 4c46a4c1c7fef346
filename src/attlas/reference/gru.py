"""The gated recurrent unit."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.sigmoid import sigmoid


class GRUParameters(NamedTuple):
    """What a GRU has learned: matrices W of the input, U of the state; biases b, and c inside."""

    W_r: Float64[np.ndarray, "hidden_dim input_dim"]
    W_z: Float64[np.ndarray, "hidden_dim input_dim"]
    W_n: Float64[np.ndarray, "hidden_dim input_dim"]
    U_r: Float64[np.ndarray, "hidden_dim hidden_dim"]
    U_z: Float64[np.ndarray, "hidden_dim hidden_dim"]
    U_n: Float64[np.ndarray, "hidden_dim hidden_dim"]
    b_r: Float64[np.ndarray, " hidden_dim"]
    b_z: Float64[np.ndarray, " hidden_dim"]
    b_n: Float64[np.ndarray, " hidden_dim"]
    c_n: Float64[np.ndarray, " hidden_dim"]


@takes_arrays
def gru_cell(
    x: Float64[np.ndarray, " input_dim"], h: Float64[np.ndarray, " hidden_dim"], p: GRUParameters
) -> Float64[np.ndarray, " hidden_dim"]:
    """h′ = z ⊙ h + (1 − z) ⊙ n    Cho et al., Learning Phrase Representations, 2014, eq. 5–8.

    r = σ(W_r x + U_r h + b_r): how much of the old state the new one sees.
    z = σ(W_z x + U_z h + b_z): how much of the old state stays.
    n = tanh(W_n x + b_n + r ⊙ (U_n h + c_n)). The paper has U_n (r ⊙ h) in place of r ⊙ (U_n h);
    cuDNN, PyTorch and attlas reset behind the matrix, so that one product serves all three gates.
    """
    r = sigmoid(p.W_r @ x + p.U_r @ h + p.b_r)
    z = sigmoid(p.W_z @ x + p.U_z @ h + p.b_z)
    n = np.tanh(p.W_n @ x + p.b_n + r * (p.U_n @ h + p.c_n))
    return z * h + (1.0 - z) * n


@takes_arrays
def gru(
    x: Float64[np.ndarray, "positions input_dim"],
    h_0: Float64[np.ndarray, " hidden_dim"],
    p: GRUParameters,
) -> Float64[np.ndarray, "positions hidden_dim"]:
    """h_t = GRU(x_t, h_{t−1}), for t = 1 … T: the state after each position.

    The backward direction of a bidirectional encoder is gru(x[::-1], h_0, p)[::-1].
    """
    h, states = h_0, np.empty((len(x), len(h_0)))
    for t, x_t in enumerate(x):
        h = states[t] = gru_cell(x_t, h, p)
    return states
