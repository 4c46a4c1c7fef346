"""The interface of every mechanism: project the source once, then attend to it."""

import math
import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from types import FrameType
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.ops.attention import masked_softmax
from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_reads import weighted_mean
from attlas.ops.dropout import Dropout
from attlas.ops.linear import is_traced_or_transformed
from attlas.patterns import Everywhere, Pattern, everywhere
from attlas.recording import AttentionHook, DenseAttentionMap


class Attention(nn.Module, ABC):
    """cache = attention.project_kv(source); context = attention.attend(query, cache).

    A decoder attends to one cache many times. If all tensors are at hand, call the layer:
    `context, weights = attention(query, keys)`; see `SingleHeadAttention` and `MultiheadAttention`.

    Weights are shaped (batch, heads, queries, keys) in every mechanism, with heads = 1 if there are
    none. `query_offset` is the position of the first query; None means that the queries are the
    newest positions of the cache, which keeps causal patterns right with a growing cache. A call
    never depends on an earlier call.

    `query_dim` is the width of the queries, None = that of the keys. `key_dim` is the width of the
    source, None = any.

    Args:
        pattern: Where each query may look.
        dropout: The share of the weights that are set to zero in training; the others are scaled up
            (Srivastava et al., 2014).
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
        _check_dropout(dropout)
        super().__init__()
        self.pattern = pattern
        self.attn_dropout = Dropout(dropout)
        self.hook = AttentionHook()

    @property
    def dropout(self) -> float:
        """The share of the weights that are set to zero in training, a number as in torch."""
        return self.attn_dropout.p

    @dropout.setter
    def dropout(self, p: float) -> None:
        _check_dropout(p)
        self.attn_dropout.p = p

    @abstractmethod
    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """The keys and values of a source, computed once.

        Args:
            token_mask: True = a token, False = padding; integers 0 and 1 say the same.
        """

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

    def attend(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        """The contexts of all queries at once, or of the newest ones with a growing cache.

        It is a call of the module, so the forward hooks of torch see it.

        Raises:
            AttlasError: the cache is no `KeyValueCache`, or shapes do not fit.
        """
        check_cache(cache)
        context: Tensor = self(query, cache, query_offset=query_offset)
        return context

    @abstractmethod
    def _attend(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries context_dim"]:
        """What `attend` returns, without the hooks of torch."""

    def check_source(self, source: Shaped[Tensor, "..."]) -> None:
        """`AttlasError` where the source has not the shape or the width that this layer takes."""
        check_tensor("source", source)
        dim = "dim" if self.key_dim is None else str(self.key_dim)
        if source.ndim != 3 or self.key_dim not in (None, source.shape[2]):
            raise AttlasError(
                f"a source of shape (batch, keys, dim) = (batch, keys, {dim})",
                f"shape {tuple(source.shape)}",
                "pass vectors of the width that the attention was made for",
            )

    def check_query(self, query: Shaped[Tensor, "..."], cache: KeyValueCache) -> None:
        """`AttlasError` where the query fits neither this attention nor the cache's rows."""
        check_tensor("query", query)
        check_cache(cache)
        rows = cache.keys.shape[0]
        dim = "dim" if self.query_dim is None else str(self.query_dim)
        fits = query.ndim == 3 and query.shape[0] == rows
        if not fits or (self.query_dim is not None and query.shape[2] != self.query_dim):
            raise AttlasError(
                f"a query of shape (batch, queries, dim) = ({rows}, queries, {dim})",
                f"shape {tuple(query.shape)}",
                "pass as many rows as the source has, with vectors of the width that the attention "
                "was made for",
            )

    def resolve_offset(self, queries: int, cache: KeyValueCache, query_offset: int | None) -> int:
        """The position of the first of these queries."""
        return cache.num_keys - queries if query_offset is None else query_offset

    def allowed(
        self, queries: int, cache: KeyValueCache, query_offset: int | None
    ) -> Bool[Tensor, "#batch 1 queries keys"]:
        """Which positions each query may see: in the pattern, and a token; to be read only."""
        if isinstance(self.pattern, Everywhere) and cache.token_mask is not None:
            return cache.token_mask[:, None, None, :].expand(-1, 1, queries, -1)
        mask = self.pattern.mask(queries, cache.num_keys, query_offset, cache.keys.device)[
            None, None
        ]
        return mask if cache.token_mask is None else mask & cache.token_mask[:, None, None, :]


def _check_dropout(dropout: object) -> None:
    if not isinstance(dropout, int | float) or not 0.0 <= dropout <= 1.0:
        raise AttlasError("a dropout from 0 to 1", repr(dropout), "use e.g. 0.1")


def check_cache(cache: object) -> None:
    """Raises `AttlasError` for what is no cache of keys and values."""
    if not isinstance(cache, KeyValueCache):
        kind = type(cache).__name__
        raise AttlasError(
            "a KeyValueCache",
            f"a {'tensor' if isinstance(cache, Tensor) else kind}",
            "make one with cache = attention.project_kv(source); without a cache, call the layer",
        )


def check_tensor(name: str, value: object) -> None:
    """Raises `AttlasError` for what is no tensor."""
    if not isinstance(value, Tensor):
        raise AttlasError(
            f"a {name} that is a tensor",
            f"a {type(value).__name__}",
            "pass torch.from_numpy(…); attlas.scaled_dot_product_attention takes NumPy arrays too",
        )


@dataclass(frozen=True, slots=True)
class AttentionOutput:
    """One read of a cache: the context, the weights, and the weights after interventions."""

    context: Float[Tensor, "batch queries context_dim"]
    weights: Float[Tensor, "batch heads queries keys"]
    applied: Float[Tensor, "batch heads queries keys"]


class SingleHeadAttention(Attention):
    """context, weights = attention(query, keys): a mechanism of one head, called as a function.

    attention = AdditiveAttention(query_dim=128, key_dim=128, hidden_dim=64)
    context, weights = attention(state, source)    # (4, 128), (4, 20, 128) → (4, 128), (4, 20)
    """

    def forward(
        self,
        query: Float[Tensor, "batch *queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"] | KeyValueCache,
        values: Float[Tensor, "batch keys value_dim"] | None = None,
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
        *,
        query_offset: int | None = None,
    ) -> Any:
        """The contexts, and the weights before dropout.

        Args:
            query: (batch, queries, dim), or (batch, dim) for one query a row.
            keys: the source, (batch, keys, dim). With a `KeyValueCache` the result is that of
                `attend`.
            values: what is averaged; None = the source itself.
            token_mask: True or 1 = a token, False or 0 = padding.
            query_offset: the position of the first query; None = the queries are the newest
                positions.

        Returns:
            `(context, weights)`: (batch, queries, value_dim) and (batch, queries, keys); without
            the axis of queries for a query of (batch, dim).

        Raises:
            AttlasError: shapes, widths or the mask do not fit.
        """
        if isinstance(keys, KeyValueCache):
            if values is not None or token_mask is not None:
                raise AttlasError(
                    "a KeyValueCache alone",
                    "values or a token_mask beside it",
                    "give them to `project_kv`, which makes the cache",
                )
            return self._attend(query, keys, query_offset)
        check_tensor("query", query)
        is_row = query.ndim == 2
        cache = self.project_kv(keys, token_mask)
        if values is not None:
            cache = self._with_values(cache, values)
        queries = query.unsqueeze(1) if is_row else query
        output = self._attend_with_weights(queries, cache, query_offset)
        context, weights = output.context, output.weights.squeeze(1)
        return (context.squeeze(1), weights.squeeze(1)) if is_row else (context, weights)

    @abstractmethod
    def _attend_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        """What `_attend` returns, and the weights."""

    def _with_values(
        self, cache: KeyValueCache, values: Float[Tensor, "batch keys value_dim"]
    ) -> KeyValueCache:
        """The cache with other values."""
        check_tensor("values", values)
        rows, num_keys = cache.keys.shape[0], cache.num_keys
        if values.ndim != 3 or values.shape[:2] != (rows, num_keys):
            raise AttlasError(
                f"values of shape (batch, keys, dim) = ({rows}, {num_keys}, dim)",
                f"shape {tuple(values.shape)}",
                "pass one value for each key",
            )
        values = zero_padding(values, cache.token_mask)
        return replace(cache, values=values if cache.values.ndim == 3 else values.unsqueeze(1))


class ScoredAttention(SingleHeadAttention):
    """One head whose weights are softmax(score(query, keys)) over the positions that may be
    seen.
    """

    @abstractmethod
    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The score of each key for each query, any real number."""

    def masked_scores(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries keys"], Bool[Tensor, "#batch 1 queries keys"]]:
        """The scores before the softmax, and the positions that take part in it."""
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

    def _attend(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> Float[Tensor, "batch queries value_dim"]:
        """The weighted mean of the values."""
        return self._attend_with_weights(query, cache, query_offset).context

    def _attend_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        output = self.forward_with_weights(query, cache, query_offset)
        self.record(output.weights, cache, query_offset)
        return output

    def record(
        self,
        weights: Float[Tensor, "batch heads queries keys"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> None:
        """Record the weights, if this layer is observed."""
        if not self.hook.is_recording:
            return
        allowed = None
        if cache.token_mask is not None or not isinstance(self.pattern, Everywhere):
            allowed = self.allowed(weights.shape[2], cache, query_offset).clone()
        if query_offset is None and not self.hook.cross_attention:
            query_offset = weights.shape[3] - weights.shape[2]  # the newest, as everywhere here
        self.hook.record(DenseAttentionMap(weights.detach(), allowed, query_offset))

    def forward_with_weights(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        cache: KeyValueCache,
        query_offset: int | None = None,
    ) -> AttentionOutput:
        """The context and the weights; the caller records them."""
        self.check_query(query, cache)
        scores, allowed = self.masked_scores(query, cache, query_offset)
        weights = applied = masked_softmax(scores, allowed)
        if self.hook.is_patched:
            applied = self.hook.patch(weights.clone(), allowed)  # it may write into them
        dropped = self.attn_dropout(applied).squeeze(1)
        with_gradient = torch.is_grad_enabled()
        context = weighted_mean(dropped, cache.values) if with_gradient else dropped @ cache.values
        return AttentionOutput(context, weights, applied)


# Padding: the positions that hold no token.


def to_token_mask(
    token_mask: Shaped[Tensor, "..."] | None, source: Shaped[Tensor, "batch keys key_dim"]
) -> Bool[Tensor, "batch keys"] | None:
    """The mask as bools, True = a token; integers 0 and 1 say the same.

    Raises:
        AttlasError: the mask has not one bool, 0 or 1 for each position of the source.
    """
    if token_mask is None or not isinstance(source, Tensor):
        return None  # what is no tensor is refused where the source is read
    check_tensor("token_mask", token_mask)
    token_mask = integers_as_bools("token_mask", token_mask)
    check_token_mask(token_mask, source.shape[:-1])
    return token_mask


def integers_as_bools(name: str, mask: Shaped[Tensor, "*axes"]) -> Shaped[Tensor, "*axes"]:
    """A mask of integers 0 and 1 as bools; any other mask as it is.

    Raises:
        AttlasError: an integer is neither 0 nor 1.
    """
    if mask.is_floating_point() or mask.is_complex() or mask.dtype == torch.bool:
        return mask
    if mask.numel() and not bool(((mask == 0) | (mask == 1)).all()):
        least, maximum = int(mask.min()), int(mask.max())
        raise AttlasError(
            f"{name} of bools, or of 0 and 1",
            f"integers from {least} to {maximum}",
            "compare the ids with that of padding: ids != padding",
        )
    return mask != 0


def split_bias(
    name: str, mask: Float[Tensor, "*axes"]
) -> tuple[Bool[Tensor, "*axes"], Float[Tensor, "*axes"]]:
    """Which positions the −∞ of a mask of numbers leaves, and the finite numbers, 0 elsewhere.

    Raises:
        AttlasError: there is NaN or +∞ in it.
    """
    if not bool((mask < math.inf).all()):  # NaN is below nothing
        raise AttlasError(
            f"{name} of finite numbers, or −∞ where a position is hidden",
            "NaN or +∞ in it",
            "a position is shown by itself, with a mask that hides the others",
        )
    allowed = mask != -math.inf
    return allowed, mask.masked_fill(~allowed, 0.0)


_MOST_NUMBERS = 2**22  # of a mask that is looked through: a millisecond


def warn_of_truth(name: str, mask: Shaped[Tensor, "..."], cure: str) -> None:
    """Warn of a mask of numbers that holds 0 and 1 alone: such numbers are added to the scores.

    It is looked through on a CPU only, and not where torch traces.

    Args:
        cure: what to write where 1 means that a position may be seen.
    """
    if not mask.is_floating_point() or not 1 < mask.numel() <= _MOST_NUMBERS:
        return
    if not is_cheap_to_check(mask):
        return
    mask = mask.detach()
    least, maximum = torch.aminmax(mask)
    if least != 0.0 or maximum != 1.0 or not bool(((mask == 0.0) | (mask == 1.0)).all()):
        return
    warnings.warn(
        f"{name} holds the numbers 0 and 1 alone, and they are added to the scores: nothing is "
        f"hidden; where 1 means that a position may be seen, pass {cure}",
        UserWarning,
        stacklevel=_callers_level(sys._getframe()),
    )


def is_cheap_to_check(tensor: Tensor) -> bool:
    """Return True if a check of the numbers is cheap, and allowed under tracing."""
    return (
        not torch.compiler.is_compiling()  # first: what follows is not for those who trace
        and tensor.device.type == "cpu"
        and type(tensor) is Tensor
        and not is_traced_or_transformed()
    )


_INNER = ("attlas", "torch", "jaxtyping", "beartype")


def _callers_level(frame: FrameType) -> int:
    """How far above this frame, which is the first, the line stands that called attlas."""
    level = 1
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _INNER and not frame.f_code.co_filename.startswith("<"):
            break
        level, frame = level + 1, frame.f_back
    return level


def check_token_mask(token_mask: Shaped[Tensor, "..."], shape: tuple[int, ...]) -> None:
    """Raises `AttlasError` where `token_mask` is not one bool for each position of this shape."""
    if token_mask.dtype != torch.bool or token_mask.shape != shape:
        raise AttlasError(
            f"token_mask of bool and shape {tuple(shape)}, True = a token",
            f"{str(token_mask.dtype).removeprefix('torch.')} of shape {tuple(token_mask.shape)}",
            "compare the ids with that of padding: ids != padding",
        )


def zero_padding(
    source: Float[Tensor, "batch keys dim"], token_mask: Shaped[Tensor, "..."] | None
) -> Float[Tensor, "batch keys dim"]:
    """The source with zeros in its padding: 0 · NaN is NaN, so weights of zero are not enough.

    Raises:
        AttlasError: If `token_mask` is not one bool per position.
    """
    if token_mask is None:
        return source
    check_token_mask(token_mask, source.shape[:-1])
    return source.masked_fill(~token_mask.unsqueeze(-1), 0.0)


# Checks of sizes.


def check_dims(**dims: int | None) -> None:
    """Raise `AttlasError` for a size that is no integer ≥ 1; None is allowed."""
    for name, dim in dims.items():
        is_integer = isinstance(dim, Integral) and not isinstance(dim, bool)
        if dim is not None and not (is_integer and dim >= 1):
            raise AttlasError(f"{name} as a whole number ≥ 1", repr(dim), "choose such a size")
