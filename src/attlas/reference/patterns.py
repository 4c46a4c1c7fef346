"""Patterns: which keys j a query i may look at, pair by pair."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

Rule = Callable[[int, int], bool]
"""Whether the query at position i sees the key at position j, both counted from 0."""


def mask(
    sees: Rule, queries: int, num_keys: int, query_offset: int = 0
) -> Bool[np.ndarray, "queries keys"]:
    """M_ij = sees(i, j), of queries at the positions query_offset, query_offset + 1, …"""
    rows = [[sees(query_offset + i, j) for j in range(num_keys)] for i in range(queries)]
    return np.array(rows, dtype=bool).reshape(queries, num_keys)


def everywhere(i: int, j: int) -> bool:
    """Every query sees every key    Vaswani et al., 2017, section 3.2.3, "encoder"."""
    return True


def causal(i: int, j: int) -> bool:
    """j ≤ i: no query looks ahead    Vaswani et al., 2017, section 3.2.3."""
    return j <= i


def window(radius: int) -> Rule:
    """|i − j| ≤ radius    Beltagy et al., Longformer, 2020, section 3.1, "sliding window"."""
    return lambda i, j: abs(i - j) <= radius


def strided(stride: int) -> Rule:
    """(i − j) mod stride = 0    Child et al., Sparse Transformers, 2019, section 4.3."""
    return lambda i, j: (i - j) % stride == 0


def landmarks(*positions: int) -> Rule:
    """i ∈ L or j ∈ L    Beltagy et al., 2020, section 3.1, "global attention"."""
    return lambda i, j: i in positions or j in positions


def scattered(share: float, seed: int = 0) -> Rule:
    """h(i, j, seed) < share, or i = j    Zaheer et al., Big Bird, 2020, section 2, "random".

    h: two rounds of xor with the upper half and a product, in 32 bits, as a number in [0, 1).
    """

    def sees(i: int, j: int) -> bool:
        hashed = i * 73_856_093 + j * 19_349_663 + seed * 83_492_791
        for multiplier in (0x45D9F3B, 0x119DE1F3):
            hashed %= 2**32
            hashed = (hashed ^ (hashed >> 16)) * multiplier % 2**32
        hashed ^= hashed >> 16
        return i == j or hashed < int(share * 2**32)

    return sees


def both(*rules: Rule) -> Rule:
    """Seen where every rule allows it: a causal window is both(causal, window(r))."""
    return lambda i, j: all(sees(i, j) for sees in rules)


def either(*rules: Rule) -> Rule:
    """Seen where any rule allows it: Longformer's is either(window(r), landmarks(0))."""
    return lambda i, j: any(sees(i, j) for sees in rules)
