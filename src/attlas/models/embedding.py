"""Embedding and output layers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.ops.linear import Linear, linear


class Embedding(nn.Embedding):
    """One vector per token of a vocabulary, drawn from N(0, 1/width), so that its norm is 1.

    Args:
        side: Whose ids these are, "source" or "target", for the error about an id outside of it.
    """

    def __init__(self, num_embeddings: int, embed_dim: int, side: str) -> None:
        super().__init__(num_embeddings, embed_dim)
        self.side = side

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)

    def forward(self, ids: Int[Tensor, "*positions"]) -> Float[Tensor, "*positions embed_dim"]:
        """The vectors of these ids."""
        try:
            return super().forward(ids)
        except IndexError:
            invalid = ids[(ids < 0) | (ids >= self.num_embeddings)]
            raise AttlasError(
                f"{self.side} ids from 0 to {self.num_embeddings - 1}",
                str(int(invalid[0])),
                "number the text with the vocabulary that this model was built for",
            ) from None


# The vocabulary layer.


class Output(nn.Module):
    """logits = W f + b, one row of W per target token.

    Tied, W is the target embedding E (Press & Wolf, 2017), and where the features are not as wide
    as it, a bottleneck B lies before it: logits = E B f + b. The embedding is lent with each call,
    so that a model holds and saves it once.
    """

    def __init__(self, feature_dim: int, embed_dim: int, vocab_size: int, *, tie: bool) -> None:
        super().__init__()
        self.weight = None if tie else nn.Parameter(torch.empty(vocab_size, feature_dim))
        self.bottleneck = (
            Linear(feature_dim, embed_dim, bias=False) if tie and feature_dim != embed_dim else None
        )
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)

    def forward(
        self,
        features: Float[Tensor, "*positions feature_dim"],
        embedding: Float[Tensor, "vocabulary embed_dim"],
    ) -> Float[Tensor, "*positions vocabulary"]:
        """One logit per target token."""
        if self.weight is not None:
            return linear(features, self.weight, self.bias)
        narrow = features if self.bottleneck is None else self.bottleneck(features)
        return linear(narrow, embedding, self.bias)
