"""The interface of every mechanism: remember what does not depend on the query, then read."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers.memory import Memory
from attlas.patterns import Pattern, everywhere
from attlas.recording import DenseReading, Tap


class Attention(nn.Module, ABC):
    """memory = remember(source); context = attention(query, memory).

    Weights are shaped (batch, heads, queries, slots) in every mechanism, heads = 1 where there are
    none. `first` is the position of the first query; None means that the queries are the newest
    positions of the memory, which keeps causal patterns right with a growing memory. A call never
    depends on an earlier call.
    """

    def __init__(self, *, pattern: Pattern = everywhere, dropout: float = 0.0) -> None:
        super().__init__()
        self.pattern = pattern
        self.dropout = nn.Dropout(dropout)
        self.tap = Tap()

    @abstractmethod
    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """Once per source: what is looked at and what is read."""

    @abstractmethod
    def weigh(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch heads queries slots"]:
        """The weights as data (for coverage, copying): ≥ 0, and they sum to 1 where a slot is seen."""

    @abstractmethod
    def forward(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries context_width"]:
        """Read: all queries at once, or one per step."""

    def seen(
        self, queries: int, memory: Memory, first: int | None
    ) -> Bool[Tensor, "#batch 1 queries slots"]:
        """Which slots each query may see: in the pattern and real."""
        mask = self.pattern.mask(queries, memory.slots, first, memory.keys.device)[None, None]
        return mask if memory.real is None else mask & memory.real[:, None, None, :]


class ScoredAttention(Attention):
    """One head whose weights are softmax(score(query, keys)) over the slots that may be seen."""

    @abstractmethod
    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots key_width"],
    ) -> Float[Tensor, "batch queries slots"]:
        """How well each key answers each query, any real number."""

    def weigh(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch heads queries slots"]:
        """Softmax of the scores over the seen slots."""
        seen = self.seen(query.shape[1], memory, first)
        return masked_softmax(self.score(query, memory.keys).unsqueeze(1), seen)

    def forward(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries value_width"]:
        """The weighted mean of the values."""
        weights = self.weigh(query, memory, first)
        if self.tap.heard:
            self.tap.note(DenseReading(weights.detach()))
        if self.tap.intervened:
            weights = self.tap.rewrite(weights, self.seen(query.shape[1], memory, first))
        return self.dropout(weights).squeeze(1) @ memory.values


def masked_softmax(
    scores: Float[Tensor, "*shape slots"], seen: Bool[Tensor, "*#shape slots"]
) -> Float[Tensor, "*shape slots"]:
    """exp(s_j) / Σ_seen exp(s_k) on the seen slots, 0 elsewhere; all zeros where nothing is seen.

    Gradients are finite everywhere: a row without a seen slot never meets −inf alone.
    """
    hidden = ~seen
    lowest = torch.finfo(scores.dtype).min
    return F.softmax(scores.masked_fill(hidden, lowest), dim=-1).masked_fill(hidden, 0.0)


def without_junk(
    source: Float[Tensor, "batch slots width"], real: Bool[Tensor, "batch slots"] | None
) -> Float[Tensor, "batch slots width"]:
    """The source with zeros in its padding: 0 · NaN is NaN, so weights of zero are not enough."""
    return source if real is None else source.masked_fill(~real.unsqueeze(-1), 0.0)
