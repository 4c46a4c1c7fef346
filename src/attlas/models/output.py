"""The vocabulary layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers.linear import Linear, linear


class Output(nn.Module):
    """logits = W f + b, one row of W per target token.

    Tied, W is the target embedding E (Press & Wolf, 2017), and where the features are not as wide
    as it, a bottleneck B lies before it: logits = E B f + b. The embedding is lent with each call,
    so that a model holds and saves it once.
    """

    def __init__(self, width: int, embedding: int, vocabulary: int, *, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.empty(vocabulary, width))
        self.bottleneck = (
            Linear(width, embedding, bias=False) if tied and width != embedding else None
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)

    def forward(
        self,
        features: Float[Tensor, "*positions width"],
        embedding: Float[Tensor, "vocabulary embedding"],
    ) -> Float[Tensor, "*positions vocabulary"]:
        """One logit per target token."""
        if self.weight is not None:
            return linear(features, self.weight, self.bias)
        narrow = features if self.bottleneck is None else self.bottleneck(features)
        return linear(narrow, embedding, self.bias)
