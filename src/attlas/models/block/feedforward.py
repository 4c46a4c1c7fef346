"""The position-wise feed-forward."""

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers import Dropout
from attlas.layers.linear import Linear


class FeedForward(nn.Module):
    """W₂ dropout(max(0, W₁ x + b₁)) + b₂    Vaswani et al., 2017, section 3.3, eq. 2.

    activation: "relu" as there; "gelu" in its place (Hendrycks & Gimpel, 2016); "swiglu":
    W₂ dropout(silu(W₁ x) · W₃ x) (Shazeer, 2020, eq. 6), which has a third matrix.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        activation: Literal["relu", "gelu", "swiglu"] = "relu",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = Linear(width, hidden, bias=bias)
        self.gate = Linear(width, hidden, bias=bias) if activation == "swiglu" else None
        self.outer = Linear(hidden, width, bias=bias)
        self.dropout = Dropout(dropout)
        for linear in (self.inner, self.gate, self.outer):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                if bias:
                    nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*positions width"]) -> Float[Tensor, "*positions width"]:
        """The same at every position."""
        inner = self.inner(x)
        if self.gate is not None:
            inner = F.silu(inner) * self.gate(x)
        elif self.activation == "gelu":
            inner = F.gelu(inner)
        else:
            # Not in place: a linear map of three axes ends in a view, whose backward would copy.
            inner = F.relu(inner)
        outer: Tensor = self.outer(self.dropout(inner))
        return outer
