"""From the encoder to the decoder's initial state."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers.linear import Linear


class Bridge(nn.Module):
    """s_0 = tanh(W_s ←h_1)    Bahdanau, Cho & Bengio, 2015, appendix A.2.2, for every layer.

    With an LSTM a second matrix makes the memory cell from the encoder's. directions = 1: W_s reads
    the backward direction's state, or the last state of a unidirectional encoder; 2: the forward
    direction's last state beside it, for a decoder that has nothing else of the source.
    """

    def __init__(
        self,
        cell: Literal["gru", "lstm"],
        width: int,
        hidden: int,
        layers: int,
        directions: int,
    ) -> None:
        super().__init__()
        self.directions = directions
        parts = 1 if cell == "gru" else 2  # matrices of h for every layer, then of c
        self.matrices = nn.ModuleList(
            Linear(directions * width, hidden) for _ in range(parts * layers)
        )

    def forward(
        self, final: tuple[Float[Tensor, "batch layers directions width"], ...]
    ) -> tuple[Float[Tensor, "batch layers hidden"], ...]:
        """The decoder's initial state."""
        read = torch.cat(final, dim=1)[:, :, -self.directions :].flatten(2).unbind(1)
        made = [torch.tanh(of(x)) for of, x in zip(self.matrices, read, strict=True)]
        return torch.stack(made, dim=1).chunk(len(final), dim=1)
