"""The interface of every mechanism: remember what does not depend on the query, then read."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.ops.attention import masked_softmax
from attlas.ops.cache import Memory
from attlas.ops.dropout import Dropout
from attlas.patterns import Everywhere, Pattern, everywhere
from attlas.recording import DenseReading, Tap


class Attention(nn.Module, ABC):
    """memory = remember(source); context = attention(query, memory).

    Weights are shaped (batch, heads, queries, slots) in every mechanism, heads = 1 where there are
    none. `first` is the position of the first query; None means that the queries are the newest
    positions of the memory, which keeps causal patterns right with a growing memory. A call never
    depends on an earlier call.

    pattern: where each query may look. dropout: the share of the weights that are left out in
    training, the others being scaled up (Srivastava et al., 2014).

    query_width: of the queries it takes; None = as wide as the keys. source_width: of the sources
    it remembers; None = any.
    """

    query_width: int | None = None
    source_width: int | None = None

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
        """The weights as data (for coverage, copying): ≥ 0, summing to 1 over the seen slots."""

    @abstractmethod
    def forward(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries context_width"]:
        """Read: all queries at once, or one per step."""

    def check_source(self, source: Shaped[Tensor, "..."]) -> None:
        """`AttlasError` where this attention cannot remember the source."""
        _check_tensor("source", source)
        width = "width" if self.source_width is None else str(self.source_width)
        if source.ndim != 3 or self.source_width not in (None, source.shape[2]):
            raise AttlasError(
                f"a source of shape (batch, slots, width) = (batch, slots, {width})",
                f"shape {tuple(source.shape)}",
                "remember vectors of the width that the attention was made for",
            )

    def check(self, query: Shaped[Tensor, "..."], memory: Memory) -> None:
        """`AttlasError` where the query fits neither this attention nor the memory's rows."""
        _check_tensor("query", query)
        rows = memory.keys.shape[0]
        width = "width" if self.query_width is None else str(self.query_width)
        fits = query.ndim == 3 and query.shape[0] == rows
        if not fits or (self.query_width is not None and query.shape[2] != self.query_width):
            raise AttlasError(
                f"a query of shape (batch, queries, width) = ({rows}, queries, {width})",
                f"shape {tuple(query.shape)}",
                "ask as many rows as were remembered, with vectors of the width that the attention "
                "was made for",
            )

    def start(self, queries: int, memory: Memory, first: int | None) -> int:
        """The position of the first of these queries."""
        return memory.slots - queries if first is None else first

    def seen(
        self, queries: int, memory: Memory, first: int | None
    ) -> Bool[Tensor, "#batch 1 queries slots"]:
        """Which slots each query may see: in the pattern and real."""
        mask = self.pattern.mask(queries, memory.slots, first, memory.keys.device)[None, None]
        return mask if memory.real is None else mask & memory.real[:, None, None, :]


def _check_tensor(name: str, given: object) -> None:
    if not isinstance(given, Tensor):
        raise AttlasError(
            f"a {name} that is a tensor",
            f"a {type(given).__name__}",
            "pass torch.from_numpy(…), or use attlas.attend, which takes NumPy arrays",
        )


@dataclass(frozen=True, slots=True)
class Look:
    """One read of a memory: the context, the weights, and the weights after interventions."""

    context: Float[Tensor, "batch queries context_width"]
    weights: Float[Tensor, "batch heads queries slots"]
    used: Float[Tensor, "batch heads queries slots"]


class ScoredAttention(Attention):
    """One head whose weights are softmax(score(query, keys)) over the slots that may be seen."""

    @abstractmethod
    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots key_width"],
    ) -> Float[Tensor, "batch queries slots"]:
        """How well each key answers each query, any real number."""

    def energies(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> tuple[Float[Tensor, "batch 1 queries slots"], Bool[Tensor, "#batch 1 queries slots"]]:
        """The scores before the softmax, and which slots take part in it."""
        scores = self.score(query, memory.keys).unsqueeze(1)
        return scores, self.seen(query.shape[1], memory, first)

    def weigh(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch heads queries slots"]:
        """Softmax of the scores over the seen slots."""
        self.check(query, memory)
        return masked_softmax(*self.energies(query, memory, first))

    def forward(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries value_width"]:
        """The weighted mean of the values."""
        look = self.look(query, memory, first)
        self.note(look.weights, memory, first)
        return look.context

    def note(
        self,
        weights: Float[Tensor, "batch heads queries slots"],
        memory: Memory,
        first: int | None = None,
    ) -> None:
        """Tell who listens."""
        if not self.tap.heard:
            return
        seen = None
        if memory.real is not None or not isinstance(self.pattern, Everywhere):
            seen = self.seen(weights.shape[2], memory, first)
        if first is None and not self.tap.across:
            first = weights.shape[3] - weights.shape[2]  # the newest, as everywhere here
        self.tap.note(DenseReading(weights.detach(), seen, first))

    def look(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Look:
        """Read, and keep the weights; noting them is left to the caller."""
        self.check(query, memory)
        scores, seen = self.energies(query, memory, first)
        weights = used = masked_softmax(scores, seen)
        if self.tap.intervened:
            used = self.tap.rewrite(weights.clone(), seen)  # it may write into them
        return Look(self.dropout(used).squeeze(1) @ memory.values, weights, used)


# Padding: the slots that hold no token.


def check_real(real: Shaped[Tensor, "..."], shape: tuple[int, ...]) -> None:
    """Errors: `AttlasError` where `real` is not one bool for each of the slots of this shape."""
    if real.dtype != torch.bool or real.shape != shape:
        raise AttlasError(
            f"real of bool and shape {tuple(shape)}, True = a token",
            f"{str(real.dtype).removeprefix('torch.')} of shape {tuple(real.shape)}",
            "compare the ids with that of padding, or a mask of numbers with 0",
        )


def without_junk(
    source: Float[Tensor, "batch slots width"], real: Shaped[Tensor, "..."] | None
) -> Float[Tensor, "batch slots width"]:
    """The source with zeros in its padding: 0 · NaN is NaN, so weights of zero are not enough.

    Errors: `AttlasError` where `real` is not one bool per slot.
    """
    if real is None:
        return source
    check_real(real, source.shape[:-1])
    return source.masked_fill(~real.unsqueeze(-1), 0.0)


# The sizes of which a mechanism is made.


def check_widths(**widths: int | None) -> None:
    """Errors: `AttlasError` for a size that is no whole number ≥ 1; None has its own meaning."""
    for name, width in widths.items():
        whole = isinstance(width, Integral) and not isinstance(width, bool)
        if width is not None and not (whole and width >= 1):
            raise AttlasError(f"{name} as a whole number ≥ 1", repr(width), "choose such a size")
