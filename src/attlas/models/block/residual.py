"""What is around every sublayer."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers import Dropout

Vectors = Float[Tensor, "*positions width"]


class Residual(nn.Module):
    """post: norm(x + dropout(f(x)))    Vaswani et al., 2017, section 3.1.
    pre: x + dropout(f(norm(x)))    Xiong et al., On Layer Normalization, 2020.

    y = f(enter(x)); x = leave(x, y).
    """

    def __init__(
        self,
        width: int,
        *,
        norm: Literal["layer", "rms"],
        placement: Literal["pre", "post"],
        dropout: float,
    ) -> None:
        super().__init__()
        self.norm = normalisation(norm, width)
        self.before = placement == "pre"
        self.dropout = Dropout(dropout)

    def enter(self, x: Vectors) -> Vectors:
        """What the sublayer gets."""
        return self.norm(x) if self.before else x

    def leave(self, x: Vectors, y: Vectors) -> Vectors:
        """What the sublayer gave, added to what came."""
        x = x + self.dropout(y)
        return x if self.before else self.norm(x)


def normalisation(kind: Literal["layer", "rms"], width: int) -> nn.Module:
    """LayerNorm (Ba et al., 2016) or RMSNorm (Zhang & Sennrich, 2019), with a learned scale."""
    return nn.LayerNorm(width) if kind == "layer" else nn.RMSNorm(width, eps=1e-6)
