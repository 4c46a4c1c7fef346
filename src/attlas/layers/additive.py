"""Additive attention."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers.attention import ScoredAttention, without_junk
from attlas.layers.memory import Memory
from attlas.patterns import Pattern, everywhere


class Additive(ScoredAttention):
    """v · tanh(W q + U k)    Bahdanau, Cho & Bengio, 2015, section 3.1 and appendix A.1.2.

    Query, source and hidden widths are independent; the values read are the source itself.
    """

    def __init__(
        self,
        query_width: int,
        source_width: int,
        hidden: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(pattern=pattern, dropout=dropout)
        self.of_query = nn.Linear(query_width, hidden, bias=False)
        self.of_key = nn.Linear(source_width, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """U k once per source: it does not depend on the query."""
        source = without_junk(source, real)
        return Memory(self.of_key(source), source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots hidden"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The energies of every pair: O(batch · queries · slots · hidden) memory."""
        pairs = self.of_query(query).unsqueeze(2) + keys.unsqueeze(1)
        scores: Tensor = self.energy(torch.tanh(pairs)).squeeze(-1)
        return scores
