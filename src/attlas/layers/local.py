"""Luong's local attention: a window of positions around one position per query."""

from abc import ABC, abstractmethod
from numbers import Integral

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.base import ScoredAttention, check_dims
from attlas.ops.cache import KeyValueCache
from attlas.ops.linear import Linear


class LocalAttention(ScoredAttention, ABC):
    """The weights of `inner` within p_t − D … p_t + D    Luong, Pham & Manning, 2015, section 3.2.

    `inner` is any scored attention; its score, pattern and dropout are used. Positions count only
    the tokens of each row, from 0, so that padding has no effect. A query whose window lies outside
    the source reads zeros.
    """

    def __init__(self, inner: ScoredAttention, radius: int) -> None:
        is_integer = isinstance(radius, Integral) and not isinstance(radius, bool)
        if not (is_integer and radius >= 1):
            raise AttlasError(
                "a local window with a radius D ≥ 1, a whole number",
                repr(radius),
                "use e.g. 10, as the paper does",
            )
        super().__init__(pattern=inner.pattern, dropout=inner.dropout)
        self.inner = inner
        self.query_dim, self.key_dim = inner.query_dim, inner.key_dim
        self.radius = int(radius)

    @abstractmethod
    def centre(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        """p_t, the position around which each query looks; the unit is positions."""

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """The cache of the inner attention."""
        return self.inner.project_kv(source, token_mask)

    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The inner score, without the window."""
        return self.inner.score(query, keys)

    def distance(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "#batch 1 queries keys"]:
        """s − p_t."""
        centre = self.centre(query, cache, query_offset)
        return (_positions(cache, centre.dtype).unsqueeze(-2) - centre.unsqueeze(-1)).unsqueeze(1)


class LocalMonotonicAttention(LocalAttention):
    """p_t = t, "local-m"    Luong, Pham & Manning, 2015, section 3.2.

    t counts the queries from `query_offset`. None means, as everywhere, that the queries are the
    newest positions of the cache. A decoder with another source passes query_offset = 0 for a whole
    target and query_offset = t at step t.
    """

    def centre(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        start = self.resolve_offset(query.shape[1], cache, query_offset)
        steps = torch.arange(start, start + query.shape[1], device=query.device)
        return steps.to(torch.float32).unsqueeze(0)

    def masked_scores(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries keys"], Bool[Tensor, "#batch 1 queries keys"]]:
        scores, allowed = self.inner.masked_scores(query, cache, query_offset)
        return scores, allowed & (self.distance(query, cache, query_offset).abs() <= self.radius)


class LocalPredictiveAttention(LocalAttention):
    """p_t = S · sigmoid(v · tanh(W q)), "local-p"    Luong, Pham & Manning, 2015, eq. 9 and 10.

    S: the number of tokens of the row in the cache, whether the pattern shows them or not. The
        paper multiplies the aligned weights by a Gaussian,

        a_t(s) = align(q, k_s) · exp(−(s − p_t)² / (2σ²)),   σ = D / 2,

    and leaves them unnormalised. Here they are normalised once more, so that they sum to 1 like
    those of every other mechanism: the same Gaussian inside the softmax,

        a_t(s) = softmax_s(score(q, k_s) − (s − p_t)² / (2σ²))   over the window,

    which is eq. 10 divided by its sum. Otherwise a poorly predicted p_t would shrink the whole
    context. p_t learns through the Gaussian, as in the paper.
    """

    def __init__(
        self, inner: ScoredAttention, radius: int, query_dim: int, hidden_dim: int
    ) -> None:
        check_dims(query_dim=query_dim, hidden_dim=hidden_dim)
        super().__init__(inner, radius)
        if inner.query_dim not in (None, query_dim):
            raise AttlasError(
                f"the query_dim of the inner attention, {inner.query_dim}",
                str(query_dim),
                "both get the same query",
            )
        self.query_dim = query_dim
        self.q_proj = Linear(query_dim, hidden_dim, bias=False)
        self.position_proj = nn.Linear(hidden_dim, 1, bias=False)

    def centre(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        share = self.position_proj(torch.tanh(self.q_proj(query))).squeeze(-1)
        # Half precision has too few numbers to name one position among hundreds.
        share = torch.sigmoid(share.to(torch.promote_types(share.dtype, torch.float32)))
        lengths = (
            cache.num_keys if cache.token_mask is None else cache.token_mask.sum(1, keepdim=True)
        )
        return share * lengths

    def masked_scores(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries keys"], Bool[Tensor, "#batch 1 queries keys"]]:
        scores, allowed = self.inner.masked_scores(query, cache, query_offset)
        distance = self.distance(query, cache, query_offset)
        in_window = distance.abs() <= self.radius
        # Outside the window the bias is of no use, and squares of far distances overflow half.
        exponent = (distance / (self.radius / 2)).square() / 2
        bias = exponent.masked_fill(~in_window, 0.0).to(scores.dtype)
        return scores - bias, allowed & in_window


def _positions(cache: KeyValueCache, dtype: torch.dtype) -> Float[Tensor, "#batch keys"]:
    """The index of each position among the tokens of its row, from 0."""
    if cache.token_mask is None:
        return torch.arange(cache.num_keys, device=cache.keys.device, dtype=dtype).unsqueeze(0)
    return (cache.token_mask.cumsum(1) - 1).to(dtype)
