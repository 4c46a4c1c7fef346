"""From one vector per token to one for the whole text."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import Additive

Vectors = Float[Tensor, "batch slots width"]
Pooled = Float[Tensor, "batch width"]
Real = Bool[Tensor, "batch slots"]


class Pooling(nn.Module, ABC):
    """Many vectors in, one out; padding plays no part, and a text without a token pools to 0."""

    @abstractmethod
    def forward(self, vectors: Vectors, real: Real) -> Pooled:
        """The vector of each text. real: True = a token."""


class MeanPooling(Pooling):
    """Σ_s x_s / n over the n tokens."""

    def forward(self, vectors: Vectors, real: Real) -> Pooled:
        count = real.sum(1, keepdim=True).clamp(min=1)
        return vectors.masked_fill(~real.unsqueeze(-1), 0.0).sum(1) / count


class MaxPooling(Pooling):
    """max_s x_s in each place    Collobert & Weston, 2008."""

    def forward(self, vectors: Vectors, real: Real) -> Pooled:
        greatest = vectors.masked_fill(~real.unsqueeze(-1), -torch.inf).amax(1)
        return greatest.masked_fill(~real.any(1, keepdim=True), 0.0)


class FirstPooling(Pooling):
    """x of the first token, which has looked at the others    as BERT does; Devlin et al., 2019."""

    def forward(self, vectors: Vectors, real: Real) -> Pooled:
        first = real.to(torch.int8).argmax(1)
        rows = torch.arange(len(vectors), device=vectors.device)
        return vectors[rows, first].masked_fill(~real.any(1, keepdim=True), 0.0)


class AttentivePooling(Pooling):
    """Σ_s α_s x_s,  α = softmax_s(v · tanh(W u + U x_s)), u learned    Yang et al., Hierarchical
    Attention Networks, 2016, eq. 5–7, whose bias is W u here. The attention can be observed.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(width))
        nn.init.normal_(self.query, std=width**-0.5)
        self.attention = Additive(width, width, width)
        self.attention.tap.across = True  # a learned query looks at the text

    def forward(self, vectors: Vectors, real: Real) -> Pooled:
        asked = self.query.expand(len(vectors), 1, -1)
        read: Tensor = self.attention(asked, self.attention.remember(vectors, real))
        return read.squeeze(1)
