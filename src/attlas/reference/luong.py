"""Luong's attention: three scores, and where they may look.

Luong, Pham & Manning, Effective Approaches to Attention-based Neural Machine Translation, 2015.
h_t: decoder states, one row per target position. h_s: encoder states, one row per source position.
"""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.softmax import softmax


@takes_arrays
def dot(
    h_t: Float64[np.ndarray, "queries dim"], h_s: Float64[np.ndarray, "keys dim"]
) -> Float64[np.ndarray, "queries keys"]:
    """score(h_t, h_s) = h_tᵀ h_s    section 3.1."""
    return h_t @ h_s.T


@takes_arrays
def general(
    h_t: Float64[np.ndarray, "queries query_dim"],
    h_s: Float64[np.ndarray, "keys key_dim"],
    W_a: Float64[np.ndarray, "query_dim key_dim"],
) -> Float64[np.ndarray, "queries keys"]:
    """score(h_t, h_s) = h_tᵀ W_a h_s    section 3.1."""
    return h_t @ W_a @ h_s.T


@takes_arrays
def concat(
    h_t: Float64[np.ndarray, "queries query_dim"],
    h_s: Float64[np.ndarray, "keys key_dim"],
    W_a: Float64[np.ndarray, "hidden_dim both_dims"],
    v_a: Float64[np.ndarray, " hidden_dim"],
) -> Float64[np.ndarray, "queries keys"]:
    """score(h_t, h_s) = v_aᵀ tanh(W_a [h_t; h_s])    section 3.1."""
    pairs = [[np.concatenate([state, annotation]) for annotation in h_s] for state in h_t]
    return np.tanh(np.array(pairs) @ W_a.T) @ v_a


@takes_arrays
def global_attention(
    score: Float64[np.ndarray, "queries keys"],
    h_s: Float64[np.ndarray, "keys key_dim"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries key_dim"], Float64[np.ndarray, "queries keys"]]:
    """a_t(s) = exp(score(h_t, h_s)) / Σ_s′ exp(score(h_t, h_s′)),  c_t = Σ_s a_t(s) h_s    eq. 7.

    Returns the contexts c and the alignments a, as the local forms below do.
    """
    a = softmax(score, mask)
    return a @ h_s, a


@takes_arrays
def local_monotonic(
    score: Float64[np.ndarray, "queries keys"],
    h_s: Float64[np.ndarray, "keys key_dim"],
    D: int,
    query_offset: int = 0,
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries key_dim"], Float64[np.ndarray, "queries keys"]]:
    """Local-m: p_t = t; eq. 7 over the positions from p_t − D to p_t + D    section 3.2.

    Positions count from 0; `query_offset` is the position of the first query.
    """
    p = query_offset + np.arange(len(score), dtype=np.float64)
    return global_attention(score, h_s, _window(p, D, score, mask))


@takes_arrays
def predicted_positions(
    h_t: Float64[np.ndarray, "queries query_dim"],
    S: int,
    W_p: Float64[np.ndarray, "hidden_dim query_dim"],
    v_p: Float64[np.ndarray, " hidden_dim"],
) -> Float64[np.ndarray, " queries"]:
    """p_t = S · sigmoid(v_pᵀ tanh(W_p h_t))    eq. 9; S is the length of the source."""
    return S / (1.0 + np.exp(-np.tanh(h_t @ W_p.T) @ v_p))


@takes_arrays
def local_predictive(
    score: Float64[np.ndarray, "queries keys"],
    h_s: Float64[np.ndarray, "keys key_dim"],
    D: int,
    p: Float64[np.ndarray, " queries"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries key_dim"], Float64[np.ndarray, "queries keys"]]:
    """Local-p: a_t(s) = align(h_t, h_s) · exp(−(s − p_t)² / (2σ²)),  σ = D / 2    eq. 10.

    align is eq. 7 over the window around p_t. As in the paper these alignments sum to less than 1;
    `attlas.layers.LocalPredictiveAttention` divides them by their sum.
    """
    align = softmax(score, _window(p, D, score, mask))
    s, sigma = np.arange(score.shape[-1]), D / 2
    a = align * np.exp(-((s - p[:, np.newaxis]) ** 2) / (2 * sigma**2))
    return a @ h_s, a


@takes_arrays
def attentional_state(
    c: Float64[np.ndarray, "queries key_dim"],
    h_t: Float64[np.ndarray, "queries query_dim"],
    W_c: Float64[np.ndarray, "dim both_dims"],
) -> Float64[np.ndarray, "queries dim"]:
    """h̃_t = tanh(W_c [c_t; h_t])    eq. 5: what the decoder predicts from."""
    return np.tanh(np.concatenate([c, h_t], axis=-1) @ W_c.T)


def _window(
    p: Float64[np.ndarray, " queries"],
    D: int,
    score: Float64[np.ndarray, "queries keys"],
    mask: Bool[np.ndarray, "queries keys"] | None,
) -> Bool[np.ndarray, "queries keys"]:
    """Which positions lie in [p_t − D, p_t + D] and may be seen."""
    in_window = np.abs(np.arange(score.shape[-1]) - p[:, np.newaxis]) <= D
    return in_window if mask is None else in_window & mask
