"""Positional encodings: sinusoidal, learned, rotary."""

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.errors import AttlasError

Offset = int | Int[Tensor, " rows"]


class Positions(nn.Module, ABC):
    """Positions that are added to embeddings; `offset` is the position of the first one.

    A tensor `offset` holds the position of each row, which has one token.
    """

    @abstractmethod
    def forward(
        self, embedded: Float[Tensor, "batch positions embed_dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch positions embed_dim"]:
        """The embeddings with their positions: a whole sequence, or one token at step `offset`."""


class NoPositions(Positions):
    """The embeddings as they are: order comes from elsewhere (rotary, recurrence) or nowhere."""

    def forward(
        self, embedded: Float[Tensor, "batch positions embed_dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch positions embed_dim"]:
        return embedded


class SinusoidalPositions(Positions):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)).

    d: the width, even. No parameters and no longest length. Vaswani et al., 2017, section 3.5.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.embed_dim = _check_even(embed_dim, "sinusoidal positions")

    def forward(
        self, embedded: Float[Tensor, "batch positions embed_dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch positions embed_dim"]:
        if isinstance(offset, Tensor):
            angles = _angles_of(offset, self.embed_dim, 10_000.0)
            return embedded + _interleaved(angles).unsqueeze(1).to(embedded.dtype)
        # A step of a decoder, of which there are many.
        if embedded.shape[1] == 1 and not _is_traced(embedded):
            return embedded + _cached_sinusoid(offset, self.embed_dim, embedded.device).to(
                embedded.dtype
            )
        encoding = self.encoding(embedded.shape[1], offset, embedded.device)
        return embedded + encoding.to(embedded.dtype)

    def encoding(
        self, count: int, offset: int = 0, device: torch.device | None = None
    ) -> Float[Tensor, "positions embed_dim"]:
        """PE of positions first … first + count − 1."""
        return _sinusoids(count, offset, self.embed_dim, device)


class LearnedPositions(Positions):
    """e + w_p, one learned vector w per position    Gehring et al., ConvS2S, 2017, section 3.1.

    Drawn from N(0, 1/width), as the vectors of tokens are, so that w begins with a norm of 1.
    """

    def __init__(self, embed_dim: int, max_positions: int) -> None:
        if max_positions < 1:
            raise AttlasError(
                "a longest length ≥ 1 for learned positions", str(max_positions), "use e.g. 512"
            )
        super().__init__()
        self.max_positions = max_positions
        self.vectors = nn.Embedding(max_positions, embed_dim)
        nn.init.normal_(self.vectors.weight, std=embed_dim**-0.5)

    def forward(
        self, embedded: Float[Tensor, "batch positions embed_dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch positions embed_dim"]:
        """The embeddings plus their vectors. Raises `AttlasError` for a position beyond the
        table.
        """
        if isinstance(offset, Tensor):  # to check it would ask the device for numbers
            return embedded + F.embedding(offset, self.vectors.weight).unsqueeze(1)
        stop = offset + embedded.shape[1]
        if offset < 0 or stop > self.max_positions:
            raise AttlasError(
                f"positions within 0 … {self.max_positions - 1}, which is all that was learned",
                f"positions {offset} … {stop - 1}",
                "shorten the input, or train with a greater longest length",
            )
        position_vectors: Tensor = self.vectors.weight[offset:stop]
        return embedded + position_vectors


class RotaryPositions(nn.Module):
    """(x₂ᵢ, x₂ᵢ₊₁) turned by the angle p · base^(−2i/d)    Su et al., RoFormer, 2021, eq. 34.

    Rotates the queries and keys of each head, so that q · k depends only on their distance. d: the
    width of a head, even. No parameters and no longest length.
    """

    def __init__(self, head_dim: int, base: float = 10_000.0) -> None:
        if not 1.0 < base < math.inf:
            raise AttlasError("a rotary base above 1", str(base), "use 10000, as the paper does")
        super().__init__()
        self.head_dim = _check_even(head_dim, "rotary positions")
        self.base = base

    def forward(
        self, vectors: Float[Tensor, "*heads positions head_dim"], offset: Offset = 0
    ) -> Float[Tensor, "*heads positions head_dim"]:
        """The rotated vectors; `offset` is the position of the first one, or as a tensor that of
        each row of (rows, heads, 1, head_dim).
        """
        if isinstance(offset, Tensor):
            angles = _angles_of(offset, self.head_dim, self.base)[:, None, None]
        else:
            angles = _angles(vectors.shape[-2], offset, self.head_dim, self.base, vectors.device)
        sine, cosine = angles.sin().to(vectors.dtype), angles.cos().to(vectors.dtype)
        even, odd = vectors[..., 0::2], vectors[..., 1::2]
        rotated = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return rotated.flatten(-2)


def _sinusoids(
    count: int, offset: int, dim: int, device: torch.device | None
) -> Float[Tensor, "positions embed_dim"]:
    angles = _angles(count, offset, dim, 10_000.0, device)
    return _interleaved(angles)


def _interleaved(angles: Float[Tensor, "*rows half_dim"]) -> Float[Tensor, "*rows dim"]:
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


@lru_cache(maxsize=1024)
def _cached_sinusoid(position: int, dim: int, device: torch.device) -> Float[Tensor, "1 embed_dim"]:
    with torch.inference_mode(False):  # what is kept may meet a gradient later
        return _sinusoids(1, position, dim, device)


def _is_traced(embedded: Tensor) -> bool:
    """Return True if torch makes a program of what is done here (export, compile, fake tensors).

    What is made meanwhile may have no numbers in it: it is not to be kept, and what was kept has no
    place in the program.
    """
    return torch.compiler.is_compiling() or type(embedded) is not Tensor


def _angles(
    count: int, offset: int, dim: int, base: float, device: torch.device | None
) -> Float[Tensor, "positions half_dim"]:
    return _angles_of(torch.arange(offset, offset + count, device=device), dim, base)


def _angles_of(
    positions: Int[Tensor, " positions"], dim: int, base: float
) -> Float[Tensor, "positions half_dim"]:
    """p · base^(−2i/d). In float64 where there is one: at p = 10⁵ float32 is off by 0.01 radian."""
    dtype = torch.float32 if positions.device.type == "mps" else torch.float64
    positions = positions.to(dtype)
    pairs = torch.arange(0, dim, 2, device=positions.device).to(dtype)
    return positions.unsqueeze(1) * torch.exp(pairs * (-math.log(base) / dim))


def _check_even(dim: int, name: str) -> int:
    if dim < 2 or dim % 2:
        raise AttlasError(
            f"an even width for {name}", str(dim), "they fill pairs of numbers; use an even width"
        )
    return dim
