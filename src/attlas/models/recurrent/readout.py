"""The output layer of Bahdanau's decoder."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers.linear import Linear


class Readout(nn.Module):
    """t_ij = max(t̃_ij, t̃_i,j+l),  t̃_i = U s_i + V E y_{i−1} + C c_i    ("maxout").

    Bahdanau, Cho & Bengio, 2015, appendix A.2.2. The appendix reads the state s_{i−1}, equation 4
    of the paper s_i; here it is s_i, which knows the context. The two of a pair lie l apart, which
    renumbers the paper's rows 2j − 1 and 2j and changes nothing else. "tanh": t_i = tanh(t̃_i).
    """

    def __init__(self, widths: tuple[int, int, int], hidden: int, kind: Literal["maxout", "tanh"]):
        super().__init__()
        self.pieces = 2 if kind == "maxout" else 1
        self.width = hidden
        self.of_all = Linear(sum(widths), self.pieces * hidden)

    def forward(
        self,
        state: Float[Tensor, "*rows hidden"],
        embedded: Float[Tensor, "*rows embedding"],
        context: Float[Tensor, "*rows source_width"],
    ) -> Float[Tensor, "*rows width"]:
        """The features of every row."""
        mixed: Tensor = self.of_all(torch.cat([state, embedded, context], dim=-1))
        if self.pieces == 1:
            return torch.tanh(mixed)
        return torch.maximum(*mixed.chunk(2, dim=-1))
