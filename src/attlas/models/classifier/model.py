"""The self-attention classifier."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas.layers import Dropout, LearnedPositions, Positions, WordDropout
from attlas.models.block import Encoder, EncoderLayer
from attlas.models.classifier.pooling import FirstPooling, Pooling
from attlas.models.classifier.reach import out_of_sight
from attlas.models.embedding import Embedding
from attlas.models.source import check_source, ids_of


class Classifier(nn.Module):
    """softmax(W pool(encoder(x)) + b): ids of a text in, one logit per label out.

    The attentions are the layers "encoder.layers.N.self_attention" and, where the pooling is
    attentive, "pooling.attention".
    """

    def __init__(
        self,
        embedding: Embedding,
        positions: Positions,
        encoder: Encoder,
        pooling: Pooling,
        output: nn.Linear,
        dropout: float,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.encoder = encoder
        self.pooling = pooling
        self.output = output
        self.dropout = Dropout(dropout)
        self.word_dropout = WordDropout(word_dropout)
        self.scale = math.sqrt(embedding.embedding_dim)

    @property
    def longest(self) -> int | None:
        """How many tokens it can read, END among them; None: any number."""
        return self.positions.longest if isinstance(self.positions, LearnedPositions) else None

    def overlooked(self, lengths: Sequence[int]) -> list[int]:
        """Of texts of so many tokens, and END beside them, how many play no part in the logits.

        With a pooling that reads the first token alone, those that it does not see through the
        patterns of all layers; with any other, none.
        """
        if not isinstance(self.pooling, FirstPooling):
            return [0] * len(lengths)
        layers = [layer for layer in self.encoder.layers if isinstance(layer, EncoderLayer)]
        return out_of_sight([layer.self_attention.pattern for layer in layers], lengths)

    def forward(
        self, source: Int[Tensor, "batch slots"], real: Bool[Tensor, "batch slots"] | None = None
    ) -> Float[Tensor, "batch labels"]:
        """The logits of each text. real: True = a token; None = no padding.

        The position of a token is that of its slot: padding before it counts.
        """
        check_source(source)
        source = ids_of(source, real)
        known = torch.ones_like(source, dtype=torch.bool) if real is None else real
        mask = None if bool(known.all()) else known
        embedded = self.word_dropout(self.embedding(source) * self.scale)
        x = self.dropout(self.positions(embedded))
        pooled = self.pooling(self.encoder(x, mask), known)
        logits: Tensor = self.output(self.dropout(pooled))
        return logits
