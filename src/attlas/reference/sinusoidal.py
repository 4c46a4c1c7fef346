"""Sinusoidal positions."""

import numpy as np
from jaxtyping import Float64


def sinusoidal(positions: int, embed_dim: int) -> Float64[np.ndarray, "positions embed_dim"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)),  PE(pos, 2i + 1) = cos(pos / 10000^(2i/d)).

    d: the width, even. Row pos is what is added to the embedding at that position. The wavelengths
    grow from 2π to 10000 · 2π. Vaswani et al., 2017, section 3.5.
    """
    pos = np.arange(positions)[:, np.newaxis]
    two_i = np.arange(0, embed_dim, 2)
    angle = pos / 10_000.0 ** (two_i / embed_dim)
    PE = np.empty((positions, embed_dim))
    PE[:, 0::2] = np.sin(angle)
    PE[:, 1::2] = np.cos(angle)
    return PE
