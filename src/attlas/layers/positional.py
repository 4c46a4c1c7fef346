"""How a model without recurrence knows the order of its tokens."""

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.errors import AttlasError


class Positions(nn.Module, ABC):
    """Positions that are added to embeddings; `first` is the position of the first one."""

    @abstractmethod
    def forward(
        self, embedded: Float[Tensor, "batch positions width"], first: int = 0
    ) -> Float[Tensor, "batch positions width"]:
        """The embeddings with their positions: a whole sequence, or one token at step `first`."""


class NoPositions(Positions):
    """The embeddings as they are: order comes from elsewhere (rotary, recurrence) or nowhere."""

    def forward(
        self, embedded: Float[Tensor, "batch positions width"], first: int = 0
    ) -> Float[Tensor, "batch positions width"]:
        return embedded


class SinusoidalPositions(Positions):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)).

    d: the width, even. No parameters and no longest length. Vaswani et al., 2017, section 3.5.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = _even(width, "sinusoidal positions")

    def forward(
        self, embedded: Float[Tensor, "batch positions width"], first: int = 0
    ) -> Float[Tensor, "batch positions width"]:
        # A step of a decoder, of which there are many.
        if embedded.shape[1] == 1 and not _traced(embedded):
            return embedded + _one(first, self.width, embedded.device).to(embedded.dtype)
        encoding = self.encoding(embedded.shape[1], first, embedded.device)
        return embedded + encoding.to(embedded.dtype)

    def encoding(
        self, count: int, first: int = 0, device: torch.device | None = None
    ) -> Float[Tensor, "positions width"]:
        """PE of positions first … first + count − 1."""
        return _sinusoids(count, first, self.width, device)


class LearnedPositions(Positions):
    """e + w_p, one learned vector w per position    Gehring et al., ConvS2S, 2017, section 3.1.

    Drawn from N(0, 1/width), as the vectors of tokens are, so that w begins with a norm of 1.
    """

    def __init__(self, width: int, longest: int) -> None:
        if longest < 1:
            raise AttlasError(
                "a longest length ≥ 1 for learned positions", str(longest), "use e.g. 512"
            )
        super().__init__()
        self.longest = longest
        self.vectors = nn.Embedding(longest, width)
        nn.init.normal_(self.vectors.weight, std=width**-0.5)

    def forward(
        self, embedded: Float[Tensor, "batch positions width"], first: int = 0
    ) -> Float[Tensor, "batch positions width"]:
        """`AttlasError` where a position was never learned."""
        stop = first + embedded.shape[1]
        if first < 0 or stop > self.longest:
            raise AttlasError(
                f"positions within 0 … {self.longest - 1}, which is all that was learned",
                f"positions {first} … {stop - 1}",
                "shorten the input, or train with a greater longest length",
            )
        added: Tensor = self.vectors.weight[first:stop]
        return embedded + added


class RotaryPositions(nn.Module):
    """(x₂ᵢ, x₂ᵢ₊₁) turned by the angle p · base^(−2i/d)    Su et al., RoFormer, 2021, eq. 34.

    Turns the queries and the keys of each head, so that q · k depends on their distance alone.
    d: the width of a head, even. No parameters and no longest length.
    """

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        if not 1.0 < base < math.inf:
            raise AttlasError("a rotary base above 1", str(base), "use 10000, as the paper does")
        super().__init__()
        self.width = _even(width, "rotary positions")
        self.base = base

    def forward(
        self, vectors: Float[Tensor, "*heads positions width"], first: int = 0
    ) -> Float[Tensor, "*heads positions width"]:
        """The same vectors, turned; `first` is the position of the first one."""
        angles = _angles(vectors.shape[-2], first, self.width, self.base, vectors.device)
        sine, cosine = angles.sin().to(vectors.dtype), angles.cos().to(vectors.dtype)
        even, odd = vectors[..., 0::2], vectors[..., 1::2]
        turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return turned.flatten(-2)


def _sinusoids(
    count: int, first: int, width: int, device: torch.device | None
) -> Float[Tensor, "positions width"]:
    angles = _angles(count, first, width, 10_000.0, device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


@lru_cache(maxsize=1024)
def _one(position: int, width: int, device: torch.device) -> Float[Tensor, "1 width"]:
    with torch.inference_mode(False):  # what is kept may meet a gradient later
        return _sinusoids(1, position, width, device)


def _traced(embedded: Tensor) -> bool:
    """Whether torch makes a program of what is done here (export, compile, fake tensors).

    What is made meanwhile may have no numbers in it: it is not to be kept, and what was kept has no
    place in the program.
    """
    return torch.compiler.is_compiling() or type(embedded) is not Tensor


def _angles(
    count: int, first: int, width: int, base: float, device: torch.device | None
) -> Float[Tensor, "positions half_width"]:
    """p · base^(−2i/d). In float64 where there is one: at p = 10⁵ float32 is off by 0.01 radian."""
    apple = device is not None and device.type == "mps"
    exact = torch.float32 if apple else torch.float64
    positions = torch.arange(first, first + count, device=device).to(exact)
    pairs = torch.arange(0, width, 2, device=device).to(exact)
    return positions.unsqueeze(1) * torch.exp(pairs * (-math.log(base) / width))


def _even(width: int, what: str) -> int:
    if width < 2 or width % 2:
        raise AttlasError(
            f"an even width for {what}", str(width), "they fill pairs of numbers; use an even width"
        )
    return width
