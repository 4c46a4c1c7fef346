"""Multi-head attention."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.rms_norm import rms_norm
from attlas.reference.scaled_dot_product import scaled_dot_product


class MultiHeadParameters(NamedTuple):
    """What `multi_head` has learned."""

    W_Q: Float64[np.ndarray, "heads embed_dim d_k"]
    W_K: Float64[np.ndarray, "kv_heads key_dim d_k"]
    W_V: Float64[np.ndarray, "kv_heads key_dim d_v"]
    W_O: Float64[np.ndarray, "heads_times_d_v out_dim"]
    b_Q: Float64[np.ndarray, "heads d_k"] | None = None
    b_K: Float64[np.ndarray, "kv_heads d_k"] | None = None
    b_V: Float64[np.ndarray, "kv_heads d_v"] | None = None
    b_O: Float64[np.ndarray, " out_dim"] | None = None
    g_Q: Float64[np.ndarray, " d_k"] | None = None
    g_K: Float64[np.ndarray, " d_k"] | None = None


@takes_arrays
def multi_head(
    Q: Float64[np.ndarray, "queries embed_dim"],
    K: Float64[np.ndarray, "keys key_dim"],
    V: Float64[np.ndarray, "keys key_dim"],
    W_Q: Float64[np.ndarray, "heads embed_dim d_k"],
    W_K: Float64[np.ndarray, "kv_heads key_dim d_k"],
    W_V: Float64[np.ndarray, "kv_heads key_dim d_v"],
    W_O: Float64[np.ndarray, "heads_times_d_v out_dim"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
    *,
    b_Q: Float64[np.ndarray, "heads d_k"] | None = None,
    b_K: Float64[np.ndarray, "kv_heads d_k"] | None = None,
    b_V: Float64[np.ndarray, "kv_heads d_v"] | None = None,
    b_O: Float64[np.ndarray, " out_dim"] | None = None,
    g_Q: Float64[np.ndarray, " d_k"] | None = None,
    g_K: Float64[np.ndarray, " d_k"] | None = None,
) -> tuple[Float64[np.ndarray, "queries out_dim"], Float64[np.ndarray, "heads queries keys"]]:
    """MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O    Vaswani et al., 2017, section 3.2.2.

    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V); Q = K = V is self-attention. With fewer key heads
    than heads, neighbours share one (Ainslie et al., GQA, 2023, section 2.2; with a single one:
    Shazeer, 2019). The paper's projections have no biases; those of `b_Q` … `b_O` are added to what
    W^Q … W^O give. With the gains `g_Q` and `g_K` the queries and keys of each head are normed:
    RMSNorm(Q W_i^Q) and RMSNorm(K W_i^K) (Henry et al., Query-Key Normalization for Transformers,
    2020, with RMSNorm in place of the L2 norm, as Qwen3 and Gemma 3 have it).
    """
    heads, _, d_k = W_Q.shape
    kv_heads, _, d_v = W_V.shape
    b_Q = np.zeros((heads, d_k)) if b_Q is None else b_Q
    b_K = np.zeros((kv_heads, d_k)) if b_K is None else b_K
    b_V = np.zeros((kv_heads, d_v)) if b_V is None else b_V
    b_O = np.zeros(W_O.shape[1]) if b_O is None else b_O
    sharing = heads // kv_heads  # heads to a key head; 1 in the paper
    contexts, weights = [], []
    for i in range(heads):
        kv = i // sharing
        queries, keys = Q @ W_Q[i] + b_Q[i], K @ W_K[kv] + b_K[kv]
        queries = queries if g_Q is None else rms_norm(queries, g_Q)
        keys = keys if g_K is None else rms_norm(keys, g_K)
        context, of_head = scaled_dot_product(queries, keys, V @ W_V[kv] + b_V[kv], mask)
        contexts.append(context)
        weights.append(of_head)
    return np.concatenate(contexts, axis=-1) @ W_O + b_O, np.stack(weights)
