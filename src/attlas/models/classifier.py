"""The self-attention classifier."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Self, cast

import torch
from jaxtyping import Bool, Float, Int, Shaped
from pydantic import model_validator
from torch import Tensor, nn

from attlas.errors import AttlasError, DataError
from attlas.layers import AdditiveAttention, LearnedPositions, Positions
from attlas.models.config import Count, refuse_settings
from attlas.models.embedding import Embedding
from attlas.models.encoder_decoder import (
    check_ids,
    padding_mask,
    read_token_mask,
    with_weights,
)
from attlas.models.transformer.block import EncoderLayer, TransformerEncoder
from attlas.models.transformer.config import BlockConfig, Patterns, check_patterns, parse_patterns
from attlas.models.transformer.factory import build_encoder, build_positions
from attlas.ops.dropout import Dropout, WordDropout
from attlas.patterns import Pattern
from attlas.recording.hooks import AttentionHook

# Settings of the classifier.


class ClassifierConfig(BlockConfig):
    """A self-attention classifier."""

    kind: Literal["classifier"] = "classifier"
    layers: Count = 1
    """How many layers there are."""
    patterns: Patterns = ("everywhere",)
    """Where they may look; with a window, time and memory grow with length × window."""
    pooling: Literal["mean", "max", "first", "attentive"] = "mean"
    """How the vectors of all tokens become one; "first" wants patterns in which the first token
    sees the others.
    """

    @model_validator(mode="after")
    def _patterns_fit(self) -> Self:
        check_patterns("", self.patterns, self.layers)
        return self


# Pooling: from one vector per token to one per text.


Vectors = Float[Tensor, "batch keys embed_dim"]
Pooled = Float[Tensor, "batch embed_dim"]
TokenMask = Bool[Tensor, "batch keys"]


class Pooling(nn.Module, ABC):
    """Many vectors in, one out; padding plays no part, and a text without a token pools to 0."""

    @abstractmethod
    def forward(self, vectors: Vectors, token_mask: TokenMask) -> Pooled:
        """The vector of each text.

        Args:
            token_mask: True = a token.
        """


class MeanPooling(Pooling):
    """Σ_s x_s / n over the n tokens."""

    def forward(self, vectors: Vectors, token_mask: TokenMask) -> Pooled:
        count = token_mask.sum(1, keepdim=True).clamp(min=1)
        return vectors.masked_fill(~token_mask.unsqueeze(-1), 0.0).sum(1) / count


class MaxPooling(Pooling):
    """max_s x_s in each place    Collobert & Weston, 2008."""

    def forward(self, vectors: Vectors, token_mask: TokenMask) -> Pooled:
        maximum = vectors.masked_fill(~token_mask.unsqueeze(-1), -torch.inf).amax(1)
        return maximum.masked_fill(~token_mask.any(1, keepdim=True), 0.0)


class FirstPooling(Pooling):
    """x of the first token, which has looked at the others    as BERT does; Devlin et al., 2019."""

    def forward(self, vectors: Vectors, token_mask: TokenMask) -> Pooled:
        first = token_mask.to(torch.int8).argmax(1)
        rows = torch.arange(len(vectors), device=vectors.device)
        return vectors[rows, first].masked_fill(~token_mask.any(1, keepdim=True), 0.0)


class AttentivePooling(Pooling):
    """Σ_s α_s x_s,  α = softmax_s(v · tanh(W u + U x_s)), u learned    Yang et al., Hierarchical
    Attention Networks, 2016, eq. 5–7, whose bias is W u here. The attention can be observed.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(embed_dim))
        nn.init.normal_(self.query, std=embed_dim**-0.5)
        self.attention = AdditiveAttention(embed_dim, embed_dim, embed_dim)
        self.attention.hook.cross_attention = True  # a learned query looks at the text

    def forward(self, vectors: Vectors, token_mask: TokenMask) -> Pooled:
        queries = self.query.expand(len(vectors), 1, -1)
        context: Tensor = self.attention.attend(
            queries, self.attention.project_kv(vectors, token_mask)
        )
        return context.squeeze(1)


# What the first token sees through the layers of an encoder.


_BLOCK = 4_000_000  # pairs of positions asked at once


def required_lengths(patterns: Sequence[Pattern], num_keys: int) -> Int[Tensor, " keys"]:
    """The least length of a text in which the last vector of its first token depends on position j.

    n_L(0) = 1, else ∞;  n_{l−1}(j) = max(j + 1, min n_l(i) over i = j and all i that see j in
    layer l). A text of length m passes on what its own positions hold, so n is the furthest
    position on the way that goes least far. ∞ is positions + 1.

    Args:
        patterns: Of the layers, from the first to the last. Memory is bounded; time is that of one
            look at the dense mask of a layer at the most, and O(keys × window) for windows.
    """
    positions = torch.arange(1, num_keys + 1)
    unreachable = num_keys + 1
    least = torch.full((num_keys,), unreachable)
    least[:1] = 1
    for pattern in reversed(patterns):
        lengths = least.clone()
        open_ = torch.nonzero(least > positions).squeeze(1)  # the others cannot become less
        seers = torch.nonzero(least < unreachable).squeeze(1)
        size = max(1, _BLOCK // max(1, num_keys))
        for start in range(0, len(seers), size):
            part = seers[start : start + size]
            allowed = pattern(part.unsqueeze(1), open_).expand(len(part), len(open_))
            through = torch.where(allowed, least[part].unsqueeze(1), unreachable).amin(0)
            lengths[open_] = torch.minimum(lengths[open_], torch.maximum(through, positions[open_]))
        least = lengths
    return least


def unreachable_tokens(patterns: Sequence[Pattern], lengths: Sequence[int]) -> list[int]:
    """Of texts of so many tokens, and END beside them, how many tokens the first one never sees."""
    least = required_lengths(patterns, 1 + max(lengths, default=0))
    counts = {length: int((least[:length] > length + 1).sum()) for length in set(lengths)}
    return [counts[length] for length in lengths]


# The self-attention classifier.


class Classifier(nn.Module):
    """softmax(W pool(encoder(x)) + b): ids of a text in, one logit per label out.

    The attentions are the layers "encoder.layers.N.self_attention" and, where the pooling is
    attentive, "pooling.attention".
    """

    def __new__(cls, *parts: object, **kwargs: object) -> Self:
        refuse_settings(cls, (*parts, *kwargs.values()), "build_classifier(config, size, labels)")
        return super().__new__(cls)

    def __init__(
        self,
        embedding: Embedding,
        positions: Positions,
        encoder: TransformerEncoder,
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
    def max_positions(self) -> int | None:
        """How many tokens it can read, END among them; None: any number."""
        return (
            self.positions.max_positions if isinstance(self.positions, LearnedPositions) else None
        )

    def num_unreachable(self, lengths: Sequence[int]) -> list[int]:
        """Of texts of so many tokens, and END beside them, how many play no part in the logits.

        With a pooling that reads the first token alone, those that it does not see through the
        patterns of all layers; with any other, none.
        """
        if not isinstance(self.pooling, FirstPooling):
            return [0] * len(lengths)
        layers = [layer for layer in self.encoder.layers if isinstance(layer, EncoderLayer)]
        return unreachable_tokens([layer.self_attention.pattern for layer in layers], lengths)

    def forward(
        self,
        source: Shaped[Tensor, "..."],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch labels"]:
        """The logits of each text.

        Args:
            source: Ids, (batch, keys).
            token_mask: True = a token; None = all but the zeros at the end of each row. Positions
                count padding that stands before a token.

        Raises:
            AttlasError: For ids that are not integers, or outside of the vocabulary; for a row that
                begins with padding, without a `token_mask`.
        """
        if token_mask is not None and isinstance(source, Tensor):
            source, token_mask = read_token_mask(source, token_mask)
        check_ids("source", source, self.embedding, "source")
        is_token = padding_mask(source) if token_mask is None else token_mask
        mask = None if bool(is_token.all()) else is_token
        embedded = self.word_dropout(self.embedding(source) * self.scale)
        x = self.dropout(self.positions(embedded))
        pooled = self.pooling(self.encoder(x, mask), is_token)
        logits: Tensor = self.output(self.dropout(pooled))
        return logits

    @property
    def weights_hook(self) -> AttentionHook:
        """The hook of the attention whose weights `forward_with_weights` returns."""
        if isinstance(self.pooling, AttentivePooling):
            return self.pooling.attention.hook
        return cast("EncoderLayer", self.encoder.layers[-1]).self_attention.hook

    def forward_with_weights(
        self,
        source: Shaped[Tensor, "..."],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch labels"], Float[Tensor, "batch queries keys"]]:
        """`forward`, and where the model looked in the text.

        The weights are those of the attentive pooling, (batch, 1, keys); with another pooling those
        of the last layer's self-attention, (batch, keys, keys), the mean over its heads. Each row
        sums to 1, before dropout. They have gradients. `attlas.observe` shows every layer and head.

        Raises:
            AttlasError: As `forward` does.
        """
        return with_weights(self.weights_hook, lambda: self(source, token_mask))


# From settings to a classifier.


def build_classifier(config: ClassifierConfig, source_size: int, labels: int) -> Classifier:
    """A model with fresh parameters, drawn from torch's generator.

    Args:
        source_size: How many ids the vocabulary has.
        labels: The number of labels.
    """
    if source_size < 1:
        raise AttlasError(
            "a source vocabulary of at least one token",
            str(source_size),
            "pass the length of the vocabulary",
        )
    if labels < 2:
        raise DataError(
            "at least two different labels", str(labels), "check the label field of the data"
        )
    output = nn.Linear(config.embed_dim, labels)
    nn.init.xavier_uniform_(output.weight)
    nn.init.zeros_(output.bias)
    return Classifier(
        Embedding(source_size, config.embed_dim, "source"),
        build_positions(config),
        build_encoder(config, parse_patterns(config.patterns, config.layers)),
        _pooling(config),
        output,
        config.dropout,
        config.word_dropout,
    )


def _pooling(config: ClassifierConfig) -> Pooling:
    match config.pooling:
        case "mean":
            return MeanPooling()
        case "max":
            return MaxPooling()
        case "first":
            return FirstPooling()
        case "attentive":
            return AttentivePooling(config.embed_dim)
