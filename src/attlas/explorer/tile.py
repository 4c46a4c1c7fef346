"""A piece of an attention map on its way to the page: binary, quantised, deflated."""

import struct
import zlib

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError

_MAGIC = b"ATLT"
_VERSION = 1
_HEADER = struct.Struct("<4sHHIIIfI")  # 28 bytes
_LEVELS = {8: "<u1", 16: "<u2"}  # numpy's names: little-endian, unsigned

MEDIA_TYPE = "application/vnd.attlas.tile"


def pack(weights: Float[Tensor, "heads rows slots"], bits: int = 16) -> bytes:
    """The bytes of a tile: level = round(weight / scale), scale = largest weight / (2^bits − 1).

    Little-endian, a header of 28 bytes and then one zlib stream:

        offset  type     what
             0  char[4]  "ATLT"
             4  uint16   version of the format, 1
             6  uint16   bits of a level, 8 or 16
             8  uint32   heads
            12  uint32   rows      (queries, or pooled groups of them)
            16  uint32   slots     (or pooled groups of them)
            20  float32  scale     weight = level · scale
            24  uint32   bytes of the levels once inflated = heads · rows · slots · bits / 8
            28  zlib     the levels, unsigned, in the order [head][row][slot]

    |weight − level · scale| ≤ scale / 2, up to the rounding of float32: with 16 bits a weight of at
    most 1 is off by less than 0.000008. Zero stays exactly zero; `unpack` is the way back.

    Errors: `AttlasError` for weights that are negative or not finite, and for other bits.
    """
    if bits not in _LEVELS:
        raise AttlasError("8 or 16 bits", str(bits), "ask for one of these")
    exact = weights.detach().to("cpu", torch.float64).numpy()
    if not (np.isfinite(exact).all() and (exact >= 0).all()):
        raise AttlasError(
            "attention weights that are finite and not negative",
            "weights that are not",
            "look for NaN in the model's weights; it may have diverged in training",
        )
    most = 2**bits - 1
    # What the page multiplies with is the float32 of the header, so that is what is divided by;
    # where even that is zero, so is every weight.
    scale = float(np.float32(exact.max(initial=0.0) / most))
    levels = np.rint(exact / (scale or 1.0)).clip(0, most)
    raw = levels.astype(_LEVELS[bits]).tobytes()
    heads, rows, slots = weights.shape
    header = _HEADER.pack(_MAGIC, _VERSION, bits, heads, rows, slots, scale, len(raw))
    return header + zlib.compress(raw, 6)


def unpack(tile: bytes) -> Float[Tensor, "heads rows slots"]:
    """The weights of a tile, each within scale / 2 of what was packed."""
    try:
        magic, version, bits, heads, rows, slots, scale, size = _HEADER.unpack_from(tile)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"it begins with {magic!r}, version {version}")
        raw = zlib.decompress(tile[_HEADER.size :])
        if bits not in _LEVELS or not len(raw) == size == heads * rows * slots * bits // 8:
            raise ValueError("its sizes contradict each other")
    except (struct.error, zlib.error, ValueError) as error:
        raise AttlasError(
            "a whole tile of version 1", f"something else ({error})", "ask for the tile again"
        ) from None
    levels = np.frombuffer(raw, _LEVELS[bits]).astype(np.float32)
    return torch.from_numpy(levels * np.float32(scale)).reshape(heads, rows, slots)
