"""The Transformer's encoder, and its blocks: feed-forward, residual, norm."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiheadAttention
from attlas.ops.dropout import Dropout
from attlas.ops.linear import Linear, is_traced_or_transformed
from attlas.recording.hooks import has_hooks, is_observed

# Encoding texts of similar length together.


_ROWS = 128  # texts that are encoded together: fewer are padded less, and take more calls
_SPARED = 0.1  # of all positions; less padding is not worth the calls

Encode = Callable[[Float[Tensor, "batch keys embed_dim"], Bool[Tensor, "batch keys"]], Tensor]


def encode_by_length(
    encode: Encode, x: Float[Tensor, "batch keys embed_dim"], token_mask: Bool[Tensor, "batch keys"]
) -> Float[Tensor, "batch keys embed_dim"]:
    """encode(x, token_mask) without most of the padding: the batch is encoded in parts, each as
    wide as its longest text. The rest is zero.

    The whole batch at once if that saves little, or if padding is not on the right.
    """
    if token_mask.shape != x.shape[:2] or not token_mask.numel():
        return encode(x, token_mask)  # which knows what is wrong with it, if anything is
    lengths = token_mask.sum(1)
    order = lengths.argsort()
    parts = torch.split(order, _ROWS)
    widest = [int(lengths[part[-1]]) for part in parts]
    num_computed = sum(len(part) * length for part, length in zip(parts, widest, strict=True))
    is_token = torch.arange(token_mask.shape[1], device=token_mask.device) < lengths.unsqueeze(1)
    if num_computed > (1 - _SPARED) * token_mask.numel() or not torch.equal(is_token, token_mask):
        return encode(x, token_mask)
    encoded = x.new_zeros(x.shape)
    for part, length in zip(parts, widest, strict=True):
        encoded[part, :length] = encode(x[part, :length], token_mask[part, :length])
    return encoded


# The position-wise feed-forward.


class FeedForward(nn.Module):
    """W₂ dropout(max(0, W₁ x + b₁)) + b₂ Vaswani et al., 2017, section 3.3, eq. 2.

    Args:
        activation: "relu" as there; "gelu" in its place (Hendrycks & Gimpel, 2016); "swiglu": W₂
            dropout(silu(W₁ x) · W₃ x) (Shazeer, 2020, eq. 6), which has a third matrix.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_dim: int,
        *,
        activation: Literal["relu", "gelu", "swiglu"] = "relu",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = Linear(embed_dim, ffn_dim, bias=bias)
        self.gate = Linear(embed_dim, ffn_dim, bias=bias) if activation == "swiglu" else None
        self.outer = Linear(ffn_dim, embed_dim, bias=bias)
        self.dropout = Dropout(dropout)
        for linear in (self.inner, self.gate, self.outer):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                if bias:
                    nn.init.zeros_(linear.bias)

    def forward(
        self, x: Float[Tensor, "*positions embed_dim"]
    ) -> Float[Tensor, "*positions embed_dim"]:
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


# The residual connection and the norm around a sublayer.


Vectors = Float[Tensor, "*positions embed_dim"]


class Residual(nn.Module):
    """post: norm(x + dropout(f(x)))    Vaswani et al., 2017, section 3.1.
    pre: x + dropout(f(norm(x)))    Xiong et al., On Layer Normalization, 2020.

    y = f(enter(x)); x = leave(x, y). norm_type = "none" leaves the norm out, residual = False what
    came in: without both it is dropout(f(x)).
    """

    def __init__(
        self,
        embed_dim: int,
        *,
        norm_type: Literal["layer", "rms", "none"],
        norm: Literal["pre", "post"],
        dropout: float,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.norm = make_norm(norm_type, embed_dim)
        self.before = norm == "pre"
        self.residual = residual
        self.dropout = Dropout(dropout)

    def enter(self, x: Vectors) -> Vectors:
        """The input of the sublayer."""
        return self.norm(x) if self.before and self.norm is not None else x

    def leave(self, x: Vectors, y: Vectors) -> Vectors:
        """Add the sublayer's output to its input."""
        x = x + self.dropout(y) if self.residual else self.dropout(y)
        return x if self.before or self.norm is None else self.norm(x)


def make_norm(norm_type: Literal["layer", "rms", "none"], embed_dim: int) -> nn.Module | None:
    """LayerNorm (Ba et al., 2016) or RMSNorm (Zhang & Sennrich, 2019), with a learned scale; None
    where there is to be none.
    """
    if norm_type == "none":
        return None
    return nn.LayerNorm(embed_dim) if norm_type == "layer" else nn.RMSNorm(embed_dim, eps=1e-6)


def fed_forward(x: Vectors, feed_forward: nn.Module | None, around: Residual | None) -> Vectors:
    """Apply the feed-forward with its residual connection; return x if there is none."""
    if feed_forward is None or around is None:
        return x
    return around.leave(x, feed_forward(around.enter(x)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with add & norm    Vaswani et al., 2017, figure 1.

    Without a feed-forward it is the attention alone.
    """

    def __init__(
        self,
        self_attention: MultiheadAttention,
        around_self_attention: Residual,
        feed_forward: FeedForward | None,
        around_feed_forward: Residual | None,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention.hook.cross_attention = False
        self.around_self_attention = around_self_attention
        self.feed_forward = feed_forward
        self.around_feed_forward = around_feed_forward

    def forward(
        self,
        x: Float[Tensor, "batch keys embed_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None,
    ) -> Float[Tensor, "batch keys embed_dim"]:
        """One vector per source token in, one out."""
        y = self.around_self_attention.enter(x)
        attended = self.self_attention.attend(y, self.self_attention.project_kv(y, token_mask))
        x = self.around_self_attention.leave(x, attended)
        return fed_forward(x, self.feed_forward, self.around_feed_forward)


class TransformerEncoder(nn.Module):
    """N layers, and behind pre-normed ones a last norm."""

    def __init__(self, layers: list[EncoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "batch keys embed_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None,
    ) -> Float[Tensor, "batch keys embed_dim"]:
        """The encoded source."""
        for layer in self.layers:
            x = layer(x, token_mask)
        return x if self.norm is None else self.norm(x)

    def forward_by_length(
        self,
        x: Float[Tensor, "batch keys embed_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None,
    ) -> Float[Tensor, "batch keys embed_dim"]:
        """`forward` without most of the padding: the same up to rounding, except in padding. The
        whole batch at once if the difference could be observed, or if it saves nothing.
        """
        return (
            self(x, token_mask)
            if token_mask is None or self._is_observed(x)
            else encode_by_length(self, x, token_mask)
        )

    def _is_observed(self, x: Float[Tensor, "batch keys embed_dim"]) -> bool:
        """Return True under tracing, with gradients, with hooks or listeners, and on a GPU, which
        would have to wait for lengths.
        """
        return (
            x.device.type != "cpu"
            or type(x) is not Tensor
            or self.training
            or torch.is_grad_enabled()
            or is_traced_or_transformed()
            or is_observed(self)
            or has_hooks(self.modules())
        )
