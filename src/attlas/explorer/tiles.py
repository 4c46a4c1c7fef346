"""A piece of an attention map on its way to the page: binary, quantised, deflated."""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError

_MAGIC = b"ATLT"
_VERSION = 2
_HEADER = struct.Struct("<4sHBBIIIHHI")  # 28 bytes
_LEVELS = {8: "<u1", 16: "<u2"}  # numpy's names: little-endian, unsigned
_SAMPLED = 1
CURVES = {"linear": 1, "root": 2}

MEDIA_TYPE = "application/vnd.attlas.tile"


def pack(
    weights: Float[Tensor, "heads rows keys"],
    bits: int = 16,
    *,
    curve: str = "linear",
    pyramid_level: int = 0,
    sampled: bool = False,
    step: int = 1,
    effort: int = 6,
) -> bytes:
    """The bytes of a tile, whose heads have a scale each: weight = scale · (level / most)^power.

    The scale is the largest weight of the head, most = 2^bits − 2, and the power is 1 for the curve
    "linear", 2 for "root". The level 2^bits − 1 is a cell in which no query may look at any key;
    −inf in `weights`. Little-endian, a header of 28 bytes and then one zlib stream:

        offset  type     what
             0  char[4]  "ATLT"
             4  uint16   version of the format, 2
             6  uint8    bits of a level, 8 or 16
             7  uint8    power of the curve, 1 or 2
             8  uint32   heads
            12  uint32   rows      (queries, or pooled groups of them)
            16  uint32   keys      (or pooled groups of them)
            20  uint16   pyramid level
            22  uint16   1 where the weights were sampled, 0 where all of them were read
            24  uint32   bytes of the rest once inflated = heads · (4 + rows · keys · bits / 8)
            28  zlib     a float32 for each head, its scale; the levels, unsigned, in the order
                         [head][row][key]

    With 16 bits and the curve "linear" a weight of at most 1 is off by less than 0.000008. Zero
    stays exactly zero; `unpack` is the way back.

    Args:
        pyramid_level: n, where a cell stands for up to 2ⁿ × 2ⁿ weights.
        sampled: Whether not all of them were read.
        step: Levels are rounded to its multiples, so that they deflate better; the largest stays.
        effort: Of zlib, from 1 (fast) to 9 (small).

    Raises:
        AttlasError: For weights that are negative or not finite, and for other bits or curves.
    """
    if bits not in _LEVELS:
        raise AttlasError("8 or 16 bits", str(bits), "ask for one of these")
    if curve not in CURVES:
        raise AttlasError(f"a curve of {', '.join(CURVES)}", repr(curve), "ask for one of these")
    exact = weights.detach().to("cpu", torch.float64).numpy()
    hidden = exact == -np.inf
    exact = np.where(hidden, 0.0, exact)
    if not (np.isfinite(exact).all() and (exact >= 0).all()):
        raise AttlasError(
            "attention weights that are finite and not negative",
            "weights that are not",
            "look for NaN in the model's weights; it may have diverged in training",
        )
    most = 2**bits - 2
    # What the page multiplies with is the float32 of the header, so that is what is divided by;
    # where even that is zero, so is every weight.
    scales = exact.max(axis=(1, 2), initial=0.0).astype("<f4")
    shares = exact / np.where(scales == 0, 1.0, scales.astype(np.float64))[:, None, None]
    if curve == "root":
        shares = np.sqrt(shares)
    levels = np.rint(shares * (most / step)) * step
    levels = np.where(shares == 1, most, levels.clip(0, most))
    levels = np.where(hidden, most + 1, levels)
    raw = scales.tobytes() + levels.astype(_LEVELS[bits]).tobytes()
    shape, flags = weights.shape, _SAMPLED if sampled else 0
    header = _HEADER.pack(
        _MAGIC, _VERSION, bits, CURVES[curve], *shape, pyramid_level, flags, len(raw)
    )
    return header + zlib.compress(raw, effort)


@dataclass(frozen=True, slots=True)
class Tile:
    """What `pack` packed.

    Args:
        hidden: Where no query may look at any key; the weight there is 0.
    """

    weights: Float[Tensor, "heads rows keys"]
    hidden: Bool[Tensor, "heads rows keys"]
    pyramid_level: int
    sampled: bool


def read_tile(tile: bytes) -> Tile:
    """A tile that was packed; each weight within half a level of what it was."""
    try:
        header = _HEADER.unpack_from(tile)
        magic, version, bits, power, heads, rows, num_keys, pyramid_level, flags, size = header
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"it begins with {magic!r}, version {version}")
        raw = zlib.decompress(tile[_HEADER.size :])
        cells = heads * rows * num_keys
        whole = len(raw) == size == 4 * heads + cells * bits // 8
        if bits not in _LEVELS or power not in CURVES.values() or not whole:
            raise ValueError("its sizes contradict each other")
    except (struct.error, zlib.error, ValueError) as error:
        raise AttlasError(
            f"a whole tile of version {_VERSION}",
            f"something else ({error})",
            "ask for the tile again",
        ) from None
    scales = np.frombuffer(raw, "<f4", count=heads).astype(np.float64)[:, None, None]
    levels = np.frombuffer(raw, _LEVELS[bits], offset=4 * heads).reshape(heads, rows, num_keys)
    most = 2**bits - 2
    hidden = levels == most + 1
    weights = np.where(hidden, 0.0, scales * (levels / most) ** power)
    return Tile(
        torch.from_numpy(weights.astype(np.float32)),
        torch.from_numpy(hidden),
        pyramid_level,
        bool(flags & _SAMPLED),
    )


def unpack(tile: bytes) -> Float[Tensor, "heads rows keys"]:
    """The weights of a tile; 0 where no query may look."""
    return read_tile(tile).weights


def pyramid_level(size: tuple[int, int], cells: tuple[int, int]) -> int:
    """The n for which a cell of a window of this size stands for at most 2ⁿ × 2ⁿ weights."""
    largest = max(-(-whole // part) for whole, part in zip(size, cells, strict=True))
    return (largest - 1).bit_length()
