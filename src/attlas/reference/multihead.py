"""Multi-head attention."""

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference.scaled_dot_product import scaled_dot_product


def multi_head(
    Q: Float64[np.ndarray, "queries embed_dim"],
    K: Float64[np.ndarray, "keys key_dim"],
    V: Float64[np.ndarray, "keys key_dim"],
    W_Q: Float64[np.ndarray, "heads head_dim d_k"],
    W_K: Float64[np.ndarray, "kv_heads key_dim d_k"],
    W_V: Float64[np.ndarray, "kv_heads key_dim d_v"],
    W_O: Float64[np.ndarray, "heads_times_d_v out_dim"],
    mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[Float64[np.ndarray, "queries out_dim"], Float64[np.ndarray, "heads queries keys"]]:
    """MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O    Vaswani et al., 2017, section 3.2.2.

    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V); Q = K = V is self-attention. With fewer key heads
    than heads, neighbours share one (Ainslie et al., GQA, 2023, section 2.2; with a single one:
    Shazeer, 2019). The paper's projections have no biases.
    """
    sharing = len(W_Q) // len(W_K)  # heads to a key head; 1 in the paper
    heads = [
        scaled_dot_product(Q @ W_Q[i], K @ W_K[i // sharing], V @ W_V[i // sharing], mask)
        for i in range(len(W_Q))
    ]
    read = np.concatenate([context for context, _ in heads], axis=-1)
    return read @ W_O, np.stack([weights for _, weights in heads])
