"""An encoder of attention alone."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiHead
from attlas.layers.linear import overseen
from attlas.models.block.by_length import by_length
from attlas.models.block.feedforward import FeedForward
from attlas.models.block.hooked import hooked
from attlas.models.block.residual import Residual
from attlas.recording.tap import listened_to


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
