"""Long short-term memory."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.sigmoid import sigmoid


class LSTMParameters(NamedTuple):
    """What an LSTM has learned: matrices W of the input, U of the state; biases b.

    i: the input gate; f: the forget gate; g: what is new; o: the output gate.
    """

    W_i: Float64[np.ndarray, "hidden_dim input_dim"]
    W_f: Float64[np.ndarray, "hidden_dim input_dim"]
    W_g: Float64[np.ndarray, "hidden_dim input_dim"]
    W_o: Float64[np.ndarray, "hidden_dim input_dim"]
    U_i: Float64[np.ndarray, "hidden_dim hidden_dim"]
    U_f: Float64[np.ndarray, "hidden_dim hidden_dim"]
    U_g: Float64[np.ndarray, "hidden_dim hidden_dim"]
    U_o: Float64[np.ndarray, "hidden_dim hidden_dim"]
    b_i: Float64[np.ndarray, " hidden_dim"]
    b_f: Float64[np.ndarray, " hidden_dim"]
    b_g: Float64[np.ndarray, " hidden_dim"]
    b_o: Float64[np.ndarray, " hidden_dim"]


@takes_arrays
def lstm_cell(
    x: Float64[np.ndarray, " input_dim"],
    h: Float64[np.ndarray, " hidden_dim"],
    c: Float64[np.ndarray, " hidden_dim"],
    p: LSTMParameters,
) -> tuple[Float64[np.ndarray, " hidden_dim"], Float64[np.ndarray, " hidden_dim"]]:
    """c′ = f ⊙ c + i ⊙ g,  h′ = o ⊙ tanh(c′)    Hochreiter & Schmidhuber, 1997; Gers et al., 2000.

    i, f, o = σ(W x + U h + b), each with its own W, U and b; g = tanh(W_g x + U_g h + b_g). The
    first paper has no forget gate: f = 1. Returns h′ and c′.
    """
    i = sigmoid(p.W_i @ x + p.U_i @ h + p.b_i)
    f = sigmoid(p.W_f @ x + p.U_f @ h + p.b_f)
    g = np.tanh(p.W_g @ x + p.U_g @ h + p.b_g)
    o = sigmoid(p.W_o @ x + p.U_o @ h + p.b_o)
    c = f * c + i * g
    return o * np.tanh(c), c


@takes_arrays
def lstm(
    x: Float64[np.ndarray, "positions input_dim"],
    h_0: Float64[np.ndarray, " hidden_dim"],
    c_0: Float64[np.ndarray, " hidden_dim"],
    p: LSTMParameters,
) -> tuple[
    Float64[np.ndarray, "positions hidden_dim"], Float64[np.ndarray, "positions hidden_dim"]
]:
    """h_t, c_t = LSTM(x_t, h_{t−1}, c_{t−1}), for t = 1 … T: h and c after each position."""
    h, c = h_0, c_0
    states, cells = np.empty((len(x), len(h_0))), np.empty((len(x), len(h_0)))
    for t, x_t in enumerate(x):
        h, c = states[t], cells[t] = lstm_cell(x_t, h, c, p)
    return states, cells
