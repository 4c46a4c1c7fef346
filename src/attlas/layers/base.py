"""The interface of every mechanism: remember what does not depend on the query, then read."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.ops.attention import masked_softmax
from attlas.ops.cache import KeyValueCache
from attlas.ops.dropout import Dropout
from attlas.patterns import Everywhere, Pattern, everywhere
from attlas.recording import AttentionHook, DenseAttentionMap


class Attention(nn.Module, ABC):
    """memory = remember(source); context = attention(query, memory).

    Weights are shaped (batch, heads, queries, keys) in every mechanism, heads = 1 where there are
    none. `query_offset` is the position of the first query; None means that the queries are the
    newest positions of the cache, which keeps causal patterns right with a growing cache. A call
    never depends on an earlier call.

    pattern: where each query may look. dropout: the share of the weights that are left out in
    training, the others being scaled up (Srivastava et al., 2014).

    query_dim: of the queries it takes; None = as wide as the keys. key_dim: of the sources
    it remembers; None = any.
    """

    query_dim: int | None = None
    key_dim: int | None = None

    def __init__(self, *, pattern: Pattern = everywhere, dropout: float = 0.0) -> None:
        if not isinstance(pattern, Pattern):
            raise AttlasError(
                "a pattern, such as causal or window(3)",
                repr(pattern),
                "take one from attlas.patterns",
            )
        if not isinstance(dropout, int | float) or not 0.0 <= dropout <= 1.0:
            raise AttlasError("a dropout from 0 to 1", repr(dropout), "use e.g. 0.1")
        super().__init__()
        self.pattern = pattern
        self.dropout = Dropout(dropout)
        self.hook = AttentionHook()

    @abstractmethod
    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """Once per source: what is looked at and what is read."""

    @abstractmethod
    def attention_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The weights as data (for coverage, copying): ≥ 0, summing to 1 over the allowed
        positions.
        """

    @abstractmethod
    def forward(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        """Read: all queries at once, or one per step."""

    def check_source(self, source: Shaped[Tensor, "..."]) -> None:
        """`AttlasError` where this attention cannot remember the source."""
        _check_tensor("source", source)
        dim = "dim" if self.key_dim is None else str(self.key_dim)
        if source.ndim != 3 or self.key_dim not in (None, source.shape[2]):
            raise AttlasError(
                f"a source of shape (batch, keys, dim) = (batch, keys, {dim})",
                f"shape {tuple(source.shape)}",
                "remember vectors of the width that the attention was made for",
            )

    def check_query(self, query: Shaped[Tensor, "..."], cache: KeyValueCache) -> None:
        """`AttlasError` where the query fits neither this attention nor the cache's rows."""
        _check_tensor("query", query)
        rows = cache.keys.shape[0]
        dim = "dim" if self.query_dim is None else str(self.query_dim)
        fits = query.ndim == 3 and query.shape[0] == rows
        if not fits or (self.query_dim is not None and query.shape[2] != self.query_dim):
            raise AttlasError(
                f"a query of shape (batch, queries, dim) = ({rows}, queries, {dim})",
                f"shape {tuple(query.shape)}",
                "ask as many rows as were remembered, with vectors of the width that the attention "
                "was made for",
            )

    def resolve_offset(self, queries: int, cache: KeyValueCache, query_offset: int | None) -> int:
        """The position of the first of these queries."""
        return cache.num_keys - queries if query_offset is None else query_offset

    def allowed(
        self, queries: int, cache: KeyValueCache, query_offset: int | None
    ) -> Bool[Tensor, "#batch 1 queries keys"]:
        """Which positions each query may see: in the pattern, and a token."""
        mask = self.pattern.mask(queries, cache.num_keys, query_offset, cache.keys.device)[
            None, None
        ]
        return mask if cache.token_mask is None else mask & cache.token_mask[:, None, None, :]


def _check_tensor(name: str, given: object) -> None:
    if not isinstance(given, Tensor):
        raise AttlasError(
            f"a {name} that is a tensor",
            f"a {type(given).__name__}",
            "pass torch.from_numpy(…), or use attlas.attend, which takes NumPy arrays",
        )


@dataclass(frozen=True, slots=True)
class AttentionOutput:
    """One read of a cache: the context, the weights, and the weights after interventions."""

    context: Float[Tensor, "batch queries context_dim"]
    weights: Float[Tensor, "batch heads queries keys"]
    applied: Float[Tensor, "batch heads queries keys"]


class ScoredAttention(Attention):
    """One head whose weights are softmax(score(query, keys)) over the positions that may be
    seen.
    """

    @abstractmethod
    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """How well each key answers each query, any real number."""

    def masked_scores(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries keys"], Bool[Tensor, "#batch 1 queries keys"]]:
        """The scores before the softmax, and which positions take part in it."""
        scores = self.score(query, cache.keys).unsqueeze(1)
        return scores, self.allowed(query.shape[1], cache, query_offset)

    def attention_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """Softmax of the scores over the allowed positions."""
        self.check_query(query, cache)
        return masked_softmax(*self.masked_scores(query, cache, query_offset))

    def forward(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries value_dim"]:
        """The weighted mean of the values."""
        output = self.forward_with_weights(query, cache, query_offset)
        self.record(output.weights, cache, query_offset)
        return output.context

    def record(
        self,
        weights: Float[Tensor, "batch heads queries keys"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> None:
        """Tell who listens."""
        if not self.hook.is_recording:
            return
        allowed = None
        if cache.token_mask is not None or not isinstance(self.pattern, Everywhere):
            allowed = self.allowed(weights.shape[2], cache, query_offset)
        if query_offset is None and not self.hook.cross_attention:
            query_offset = weights.shape[3] - weights.shape[2]  # the newest, as everywhere here
        self.hook.record(DenseAttentionMap(weights.detach(), allowed, query_offset))

    def forward_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        """Read, and keep the weights; noting them is left to the caller."""
        self.check_query(query, cache)
        scores, allowed = self.masked_scores(query, cache, query_offset)
        weights = applied = masked_softmax(scores, allowed)
        if self.hook.is_patched:
            applied = self.hook.patch(weights.clone(), allowed)  # it may write into them
        return AttentionOutput(self.dropout(applied).squeeze(1) @ cache.values, weights, applied)


# Padding: the positions that hold no token.


def check_token_mask(token_mask: Shaped[Tensor, "..."], shape: tuple[int, ...]) -> None:
    """Errors: `AttlasError` where `token_mask` is not one bool for each of the positions of this
    shape.
    """
    if token_mask.dtype != torch.bool or token_mask.shape != shape:
        raise AttlasError(
            f"token_mask of bool and shape {tuple(shape)}, True = a token",
            f"{str(token_mask.dtype).removeprefix('torch.')} of shape {tuple(token_mask.shape)}",
            "compare the ids with that of padding, or a mask of numbers with 0",
        )


def zero_padding(
    source: Float[Tensor, "batch keys dim"], token_mask: Shaped[Tensor, "..."] | None
) -> Float[Tensor, "batch keys dim"]:
    """The source with zeros in its padding: 0 · NaN is NaN, so weights of zero are not enough.

    Errors: `AttlasError` where `token_mask` is not one bool per position.
    """
    if token_mask is None:
        return source
    check_token_mask(token_mask, source.shape[:-1])
    return source.masked_fill(~token_mask.unsqueeze(-1), 0.0)


# The sizes of which a mechanism is made.


def check_dims(**dims: int | None) -> None:
    """Errors: `AttlasError` for a size that is no whole number ≥ 1; None has its own meaning."""
    for name, dim in dims.items():
        whole = isinstance(dim, Integral) and not isinstance(dim, bool)
        if dim is not None and not (whole and dim >= 1):
            raise AttlasError(f"{name} as a whole number ≥ 1", repr(dim), "choose such a size")
