"""The residual connection, and "Add & Norm"."""

import numpy as np
from jaxtyping import Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.layer_norm import layer_norm


@takes_arrays
def residual(
    x: Float64[np.ndarray, "positions embed_dim"], y: Float64[np.ndarray, "positions embed_dim"]
) -> Float64[np.ndarray, "positions embed_dim"]:
    """x + F(x) He et al., Deep Residual Learning, 2016, eq. 1.

    Args:
        y: What a sublayer F made of x, so that F learns the difference alone.
    """
    return x + y


@takes_arrays
def add_and_norm(
    x: Float64[np.ndarray, "positions embed_dim"],
    y: Float64[np.ndarray, "positions embed_dim"],
    g: Float64[np.ndarray, " embed_dim"],
    b: Float64[np.ndarray, " embed_dim"],
) -> Float64[np.ndarray, "positions embed_dim"]:
    """LayerNorm(x + Sublayer(x))    Vaswani et al., 2017, section 3.1: post-norm.

    Pre-norm is x + Sublayer(LayerNorm(x)); it keeps a path from the last layer to the first on
    which nothing is normalised (Xiong et al., On Layer Normalization in the Transformer
    Architecture, 2020, figure 1).

    Args:
        y: The output of the sublayer for x.
    """
    return layer_norm(residual(x, y), g, b)
