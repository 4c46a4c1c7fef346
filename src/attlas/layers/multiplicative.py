"""Multiplicative attention: Luong's three score functions."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.additive import tanh_energies
from attlas.layers.base import ScoredAttention, check_widths, without_junk
from attlas.ops.cache import Memory
from attlas.ops.linear import Linear, linear
from attlas.patterns import Pattern, everywhere


class Dot(ScoredAttention):
    """q · k    Luong, Pham & Manning, 2015, section 3.1, "dot".

    No parameters: queries and source have the same width, and the values read are the source.
    """

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """The source is both key and value."""
        self.check_source(source)
        source = without_junk(source, real)
        return Memory(source, source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots key_width"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The product of every pair; `AttlasError` where the widths differ."""
        if query.shape[-1] != keys.shape[-1]:
            raise AttlasError(
                "queries as wide as the source for dot attention",
                f"a query width of {query.shape[-1]} and a source width of {keys.shape[-1]}",
                "use general attention, which has a matrix between them",
            )
        return query @ keys.transpose(-1, -2)


class General(ScoredAttention):
    """q W k    Luong, Pham & Manning, 2015, section 3.1, "general".

    W: (query_width, source_width); the values read are the source itself.
    """

    def __init__(
        self,
        query_width: int,
        source_width: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        check_widths(query_width=query_width, source_width=source_width)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_width, self.source_width = query_width, source_width
        self.of_key = Linear(source_width, query_width, bias=False)

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """W k once per source: it does not depend on the query."""
        self.check_source(source)
        source = without_junk(source, real)
        return Memory(self.of_key(source), source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots query_width"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The product of every pair."""
        return query @ keys.transpose(-1, -2)


class Concat(ScoredAttention):
    """v · tanh(W [q; k])    Luong, Pham & Manning, 2015, section 3.1, "concat".

    W [q; k] = W₁ q + W₂ k with W = [W₁ W₂], so that no pair is ever concatenated. The values read
    are the source itself.
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
        check_widths(query_width=query_width, source_width=source_width, hidden=hidden)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_width, self.source_width = query_width, source_width
        self.of_pair = nn.Linear(query_width + source_width, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """W₂ k once per source: it does not depend on the query."""
        self.check_source(source)
        source = without_junk(source, real)
        return Memory(linear(source, self.of_pair.weight[:, self.query_width :]), source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots hidden"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The energy of every pair."""
        asked = linear(query, self.of_pair.weight[:, : self.query_width])
        return tanh_energies(asked, keys, self.energy)
