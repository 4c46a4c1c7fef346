"""Random numbers that are a function of a seed and of how many came before."""

from jaxtyping import Float, Int
from torch import Tensor

from attlas.decoding.prediction import sums

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS = 53  # of a number of float64


def chance(seeds: Int[Tensor, " rows"], number: int) -> Float[Tensor, " rows"]:
    """For each seed the random number that comes after so many: in [0, 1), the same everywhere.

    SplitMix64 (Steele, Lea & Flood, 2014): z = seed + (number + 1) · γ, whose bits are mixed by
    z ← (z ⊕ z ≫ 30) · a,  z ← (z ⊕ z ≫ 27) · b,  z ← z ⊕ z ≫ 31; all numbers at once, and none of
    those before. Of the type of `sums`.
    """
    mixed = _mixed(seeds + _signed((number + 1) * _STEP))
    drawn = _shifted(mixed, 64 - _BITS).to(sums(seeds.device)) * 2.0**-_BITS
    return drawn.clamp(max=1.0 - 1e-6)  # below 1 also after rounding


def _mixed(z: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    z = (z ^ _shifted(z, 30)) * _signed(_FIRST)
    z = (z ^ _shifted(z, 27)) * _signed(_SECOND)
    return z ^ _shifted(z, 31)


def _shifted(z: Int[Tensor, " rows"], bits: int) -> Int[Tensor, " rows"]:
    """z ≫ bits of numbers without a sign, which torch has not."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    """The same 64 bits, the first of which is a sign."""
    low = number % 2**64
    return low - 2**64 if low >= 2**63 else low
