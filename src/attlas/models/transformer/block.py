"""An encoder of attention alone."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiHead
from attlas.ops.dropout import Dropout
from attlas.ops.guards import hooked
from attlas.ops.linear import Linear, overseen
from attlas.recording.hooks import listened_to

# Texts of like length, encoded together.


_ROWS = 128  # texts that are encoded together: fewer are padded less, and take more calls
_SPARED = 0.1  # of all slots; less padding is not worth the calls

Encode = Callable[[Float[Tensor, "batch slots width"], Bool[Tensor, "batch slots"]], Tensor]


def by_length(
    encode: Encode, x: Float[Tensor, "batch slots width"], real: Bool[Tensor, "batch slots"]
) -> Float[Tensor, "batch slots width"]:
    """encode(x, real), without most of the padding: it is made of parts of the batch in turn, each
    as wide as its longest text. Behind that there are zeros.

    As a whole where that spares little, or where padding does not come behind the texts.
    """
    if real.shape != x.shape[:2] or not real.numel():
        return encode(x, real)  # which knows what is wrong with it, if anything is
    lengths = real.sum(1)
    order = lengths.argsort()
    parts = torch.split(order, _ROWS)
    widest = [int(lengths[part[-1]]) for part in parts]
    needed = sum(len(part) * width for part, width in zip(parts, widest, strict=True))
    behind = torch.arange(real.shape[1], device=real.device) < lengths.unsqueeze(1)
    if needed > (1 - _SPARED) * real.numel() or not torch.equal(behind, real):
        return encode(x, real)
    encoded = x.new_zeros(x.shape)
    for part, width in zip(parts, widest, strict=True):
        encoded[part, :width] = encode(x[part, :width], real[part, :width])
    return encoded


# The position-wise feed-forward.


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


# What is around every sublayer.


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


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with add & norm    Vaswani et al., 2017, figure 1."""

    def __init__(
        self,
        self_attention: MultiHead,
        around_self_attention: Residual,
        feedforward: FeedForward,
        around_feedforward: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention.tap.across = False
        self.around_self_attention = around_self_attention
        self.feedforward = feedforward
        self.around_feedforward = around_feedforward

    def forward(
        self,
        x: Float[Tensor, "batch slots width"],
        real: Bool[Tensor, "batch slots"] | None,
    ) -> Float[Tensor, "batch slots width"]:
        """One vector per source token in, one out."""
        y = self.around_self_attention.enter(x)
        read = self.self_attention(y, self.self_attention.remember(y, real))
        x = self.around_self_attention.leave(x, read)
        added = self.feedforward(self.around_feedforward.enter(x))
        return self.around_feedforward.leave(x, added)


class Encoder(nn.Module):
    """N layers, and behind pre-normed ones a last norm."""

    def __init__(self, layers: list[EncoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "batch slots width"],
        real: Bool[Tensor, "batch slots"] | None,
    ) -> Float[Tensor, "batch slots width"]:
        """What the decoder looks at."""
        for layer in self.layers:
            x = layer(x, real)
        return x if self.norm is None else self.norm(x)

    def in_parts(
        self,
        x: Float[Tensor, "batch slots width"],
        real: Bool[Tensor, "batch slots"] | None,
    ) -> Float[Tensor, "batch slots width"]:
        """`forward` without most of the padding, but for the rounding of floats, and for what
        comes of padding; as a whole where that would be noticed, or is of no use.
        """
        return self(x, real) if real is None or self._noticed(x) else by_length(self, x, real)

    def _noticed(self, x: Float[Tensor, "batch slots width"]) -> bool:
        """Whether somebody compiles or traces this, wants a gradient, or listens to what a layer
        gets, gives or looks at; or a GPU would have to wait for lengths.
        """
        return (
            x.device.type != "cpu"
            or type(x) is not Tensor
            or self.training
            or torch.is_grad_enabled()
            or overseen()
            or listened_to(self)
            or hooked(self.modules())
        )
