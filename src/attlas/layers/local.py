"""Luong's local attention: a window of slots around one position per query."""

from abc import ABC, abstractmethod
from numbers import Integral

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.base import ScoredAttention, check_widths
from attlas.ops.cache import Memory
from attlas.ops.linear import Linear


class Local(ScoredAttention, ABC):
    """The weights of `inner` within p_t − D … p_t + D    Luong, Pham & Manning, 2015, section 3.2.

    `inner` is any scored attention: it scores, and its pattern and dropout hold here too. Slots
    are counted from 0 among the real ones of each row, so that padding moves nothing. A query
    whose window lies outside the source reads zeros.
    """

    def __init__(self, inner: ScoredAttention, radius: int) -> None:
        whole = isinstance(radius, Integral) and not isinstance(radius, bool)
        if not (whole and radius >= 1):
            raise AttlasError(
                "a local window with a radius D ≥ 1, a whole number",
                repr(radius),
                "use e.g. 10, as the paper does",
            )
        super().__init__(pattern=inner.pattern, dropout=inner.dropout.p)
        self.inner = inner
        self.query_width, self.source_width = inner.query_width, inner.source_width
        self.radius = int(radius)

    @abstractmethod
    def centre(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        """p_t, the position around which each query looks; the unit is slots."""

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """What the inner attention remembers."""
        return self.inner.remember(source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots key_width"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The inner score: it knows no window."""
        return self.inner.score(query, keys)

    def distance(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "#batch 1 queries slots"]:
        """s − p_t."""
        centre = self.centre(query, memory, first)
        return (_positions(memory, centre.dtype).unsqueeze(-2) - centre.unsqueeze(-1)).unsqueeze(1)


class LocalMonotonic(Local):
    """p_t = t, "local-m"    Luong, Pham & Manning, 2015, section 3.2.

    t counts the queries from `first`. As everywhere, None means that the queries are the newest
    positions of the memory; a decoder that looks at another sequence passes first = 0 for a whole
    target and first = t at step t.
    """

    def centre(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        start = self.start(query.shape[1], memory, first)
        steps = torch.arange(start, start + query.shape[1], device=query.device)
        return steps.to(torch.float32).unsqueeze(0)

    def energies(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries slots"], Bool[Tensor, "#batch 1 queries slots"]]:
        scores, seen = self.inner.energies(query, memory, first)
        return scores, seen & (self.distance(query, memory, first).abs() <= self.radius)


class LocalPredictive(Local):
    """p_t = S · sigmoid(v · tanh(W q)), "local-p"    Luong, Pham & Manning, 2015, eq. 9 and 10.

    S: the number of real slots that the row of the memory holds now, whatever the pattern shows of
    them. The paper multiplies the aligned weights by a Gaussian,

        a_t(s) = align(q, k_s) · exp(−(s − p_t)² / (2σ²)),   σ = D / 2,

    and leaves them unnormalised. Here they are normalised once more, so that they sum to 1 like
    those of every other mechanism: the same Gaussian inside the softmax,

        a_t(s) = softmax_s(score(q, k_s) − (s − p_t)² / (2σ²))   over the window,

    which is eq. 10 divided by its sum. Otherwise a poorly predicted p_t would shrink the whole
    context. p_t learns through the Gaussian, as in the paper.
    """

    def __init__(self, inner: ScoredAttention, radius: int, query_width: int, hidden: int) -> None:
        check_widths(query_width=query_width, hidden=hidden)
        super().__init__(inner, radius)
        if inner.query_width not in (None, query_width):
            raise AttlasError(
                f"the query_width of the inner attention, {inner.query_width}",
                str(query_width),
                "both are asked by the same query",
            )
        self.query_width = query_width
        self.of_query = Linear(query_width, hidden, bias=False)
        self.of_position = nn.Linear(hidden, 1, bias=False)

    def centre(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "#batch queries"]:
        share = self.of_position(torch.tanh(self.of_query(query))).squeeze(-1)
        # Half precision has too few numbers to name one slot among hundreds.
        share = torch.sigmoid(share.to(torch.promote_types(share.dtype, torch.float32)))
        real = memory.slots if memory.real is None else memory.real.sum(1, keepdim=True)
        return share * real

    def energies(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries slots"], Bool[Tensor, "#batch 1 queries slots"]]:
        scores, seen = self.inner.energies(query, memory, first)
        distance = self.distance(query, memory, first)
        inside = distance.abs() <= self.radius
        # Outside the window the bias is of no use, and squares of far distances overflow half.
        exponent = (distance / (self.radius / 2)).square() / 2
        bias = exponent.masked_fill(~inside, 0.0).to(scores.dtype)
        return scores - bias, seen & inside


def _positions(memory: Memory, dtype: torch.dtype) -> Float[Tensor, "#batch slots"]:
    """The place of each slot among the real ones of its row, from 0."""
    if memory.real is None:
        return torch.arange(memory.slots, device=memory.keys.device, dtype=dtype).unsqueeze(0)
    return (memory.real.cumsum(1) - 1).to(dtype)
