"""An encoder of attention alone."""

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiHead
from attlas.layers.linear import overseen
from attlas.models.block.by_length import by_length
from attlas.models.block.feedforward import FeedForward
from attlas.models.block.residual import Residual


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
        """What the decoder looks at; of padding, anything."""
        if real is None or not self._apart(x):
            return self._together(x, real)
        return by_length(self._together, x, real)

    def _together(
        self,
        x: Float[Tensor, "batch slots width"],
        real: Bool[Tensor, "batch slots"] | None,
    ) -> Float[Tensor, "batch slots width"]:
        for layer in self.layers:
            x = layer(x, real)
        return x if self.norm is None else self.norm(x)

    def _apart(self, x: Float[Tensor, "batch slots width"]) -> bool:
        """Whether parts of a batch may be encoded one after the other: on a CPU, where nobody wants
        a gradient, traces, or listens to what a layer gets, gives or looks at.
        """
        taps = [cast("EncoderLayer", layer).self_attention.tap for layer in self.layers]
        return not (
            x.device.type != "cpu"
            or self.training
            or torch.is_grad_enabled()
            or torch.compiler.is_compiling()
            or overseen()
            or any(tap.heard or tap.intervened for tap in taps)
            or any(part._forward_hooks or part._forward_pre_hooks for part in self.modules())
        )
