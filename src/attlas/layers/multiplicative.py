"""Multiplicative attention: Luong's three score functions."""

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.additive import additive_scores
from attlas.layers.base import ScoredAttention, check_dims, to_token_mask, zero_padding
from attlas.ops.cache import KeyValueCache
from attlas.ops.linear import Linear, linear
from attlas.patterns import Pattern, everywhere


class DotAttention(ScoredAttention):
    """q · k    Luong, Pham & Manning, 2015, section 3.1, "dot".

    No parameters: queries and source have the same width, and the values read are the source.
    """

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """The source is both key and value."""
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        source = zero_padding(source, token_mask)
        return KeyValueCache(source, source, token_mask)

    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The product of every pair. Raises `AttlasError` if the widths differ."""
        if query.shape[-1] != keys.shape[-1]:
            raise AttlasError(
                "queries as wide as the source for dot attention",
                f"a query width of {query.shape[-1]} and a source width of {keys.shape[-1]}",
                "use general attention, which has a matrix between them",
            )
        return query @ keys.transpose(-1, -2)


class GeneralAttention(ScoredAttention):
    """q W k    Luong, Pham & Manning, 2015, section 3.1, "general".

    W: (query_dim, key_dim); the values read are the source itself.
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        check_dims(query_dim=query_dim, key_dim=key_dim)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.k_proj = Linear(key_dim, query_dim, bias=False)

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """W k once per source: it does not depend on the query."""
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        source = zero_padding(source, token_mask)
        return KeyValueCache(self.k_proj(source), source, token_mask)

    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys query_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The product of every pair."""
        return query @ keys.transpose(-1, -2)


class ConcatAttention(ScoredAttention):
    """v · tanh(W [q; k])    Luong, Pham & Manning, 2015, section 3.1, "concat".

    W [q; k] = W₁ q + W₂ k with W = [W₁ W₂], so that no pair is ever concatenated. The values read
    are the source itself.
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        check_dims(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.pair_proj = nn.Linear(query_dim + key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """W₂ k once per source: it does not depend on the query."""
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        source = zero_padding(source, token_mask)
        return KeyValueCache(
            linear(source, self.pair_proj.weight[:, self.query_dim :]), source, token_mask
        )

    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys hidden_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The energy of every pair."""
        projected_query = linear(query, self.pair_proj.weight[:, : self.query_dim])
        return additive_scores(projected_query, keys, self.score_proj)
