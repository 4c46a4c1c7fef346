"""Scaled dot-product attention."""

import math
from abc import abstractmethod
from dataclasses import replace
from numbers import Real

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.base import Attention, Look, without_junk
from attlas.ops.attention import (
    brief_attention,
    dense_attention,
    explicit_weights,
    scaled_scores,
    weighted_values,
)
from attlas.ops.banded import band_pays, banded_attention
from attlas.ops.cache import Memory, beside
from attlas.patterns import Pattern, everywhere
from attlas.recording import FactoredReading

# What scaled dot-product mechanisms share: a fused kernel, and the explicit form beside it.


class FusedAttention(Attention):
    """softmax(scale · q kᵀ) v per head, whose weights are computed only if somebody asks for them.

    Reading runs a kernel, the banded one where the pattern has a narrow band and the dense one
    otherwise (`fused` says which weights it holds meanwhile). Observing keeps queries and keys and
    changes no kernel; intervening runs `explicit`.
    scale: None = 1 / √width of a head. Memory: keys and values (batch, key_heads, slots, width).
    """

    def __init__(
        self,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> None:
        if scale is not None and not (isinstance(scale, Real) and 0.0 < scale < math.inf):
            raise AttlasError("a scale above 0", repr(scale), "leave it out for 1 / √width")
        super().__init__(pattern=pattern, dropout=dropout)
        self.scale = scale

    @abstractmethod
    def split(
        self, query: Float[Tensor, "batch queries query_width"], start: int
    ) -> Float[Tensor, "batch heads queries width"]:
        """The query of each head; `start` is the position of the first one."""

    @abstractmethod
    def merge(
        self, context: Float[Tensor, "batch heads queries value_width"]
    ) -> Float[Tensor, "batch queries context_width"]:
        """What the heads read, as one context."""

    def weigh(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch heads queries slots"]:
        """The weights of every head, written out: O(heads · queries · slots) memory."""
        heads, start = self._asked(query, memory, first)
        return self._weights(heads, memory, self.seen(heads.shape[2], memory, start))

    def look(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Look:
        """As calling the layer, and noted alike, with the weights written out and kept."""
        heads, start = self._asked(query, memory, first)
        self._note(heads, memory, self._known(start, first))
        return self._look(heads, memory, start)

    def forward(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries context_width"]:
        """What every head reads, by a fused kernel unless somebody intervenes."""
        heads, start = self._asked(query, memory, first)
        self._note(heads, memory, self._known(start, first))
        if self.tap.intervened:
            return self._look(heads, memory, start).context
        scale = self._scale_of(heads)
        pays = band_pays(query.shape[1], memory.slots, self.pattern, start)
        kernel = banded_attention if pays else dense_attention
        return self.merge(kernel(heads, memory, self.pattern, start, scale, self.dropout.rate))

    def glance(
        self,
        query: Float[Tensor, "rows query_width"],
        memory: Memory,
        position: int,
        bias: Float[Tensor, "#batch 1 #rows_of_each slots"] | None,
    ) -> Float[Tensor, "rows context_width"]:
        """What `forward` reads for one query a row, all at `position`, where nobody listens.

        Neighbouring rows may share a memory. bias: −∞ hides a slot; of some, every row sees some.
        """
        heads = beside(self.split(query.unsqueeze(1), position), memory.keys.shape[0])
        scale = self._scale_of(heads)
        context = brief_attention(heads, memory.keys, memory.values, bias, scale)
        return self.merge(context).flatten(0, 1)

    def glance_weights(
        self,
        query: Float[Tensor, "rows query_width"],
        memory: Memory,
        position: int,
        bias: Float[Tensor, "#batch 1 #rows_of_each slots"] | None,
    ) -> Float[Tensor, "memories heads rows_of_each slots"]:
        """The weights with which `glance` reads, in float32 or better."""
        heads = beside(self.split(query.unsqueeze(1), position), memory.keys.shape[0])
        scores = scaled_scores(heads, memory.keys, self._scale_of(heads))
        return torch.softmax(scores if bias is None else scores + bias, dim=-1)

    def explicit(
        self,
        query: Float[Tensor, "batch queries query_width"],
        memory: Memory,
        first: int | None = None,
    ) -> Float[Tensor, "batch queries context_width"]:
        """The same as calling the layer, with the weights written out: the kernels' twin."""
        heads, start = self._asked(query, memory, first)
        return self._look(heads, memory, start).context

    def _asked(
        self, query: Float[Tensor, "batch queries query_width"], memory: Memory, first: int | None
    ) -> tuple[Float[Tensor, "batch heads queries width"], int]:
        """The query of each head, and the position of the first one."""
        self.check(query, memory)
        start = self.start(query.shape[1], memory, first)
        heads = self.split(query, start)
        kept = memory.keys.shape
        if len(kept) != 4 or heads.shape[1] % kept[1] or heads.shape[-1] != kept[-1]:
            raise AttlasError(
                f"keys of shape (batch, key_heads, slots, {heads.shape[-1]}) for "
                f"{heads.shape[1]} head(s)",
                f"shape {tuple(kept)}",
                "make the memory with `remember` of this layer, from a source of the right width",
            )
        return heads, start

    def _weights(
        self,
        heads: Float[Tensor, "batch heads queries width"],
        memory: Memory,
        seen: Bool[Tensor, "#batch 1 queries slots"],
    ) -> Float[Tensor, "batch heads queries slots"]:
        return explicit_weights(heads, memory.keys, seen, self._scale_of(heads))

    def _note(
        self, heads: Float[Tensor, "batch heads queries width"], memory: Memory, start: int | None
    ) -> None:
        if not self.tap.heard:
            return
        scale = self._scale_of(heads)
        real = None if memory.real is None else memory.real.clone()  # the caller's own
        self.tap.note(
            FactoredReading(heads.detach(), memory.keys.detach(), scale, self.pattern, start, real)
        )

    def _known(self, start: int, first: int | None) -> int | None:
        """Where the first query stands; None for one that looks at another text, if nobody says it
        and the pattern does not ask."""
        unsaid = first is None and self.tap.across and self.pattern == everywhere
        return None if unsaid else start

    def _look(
        self, heads: Float[Tensor, "batch heads queries width"], memory: Memory, start: int
    ) -> Look:
        seen = self.seen(heads.shape[2], memory, start)
        weights = used = self._weights(heads, memory, seen)
        if self.tap.intervened:
            used = self.tap.rewrite(weights, seen)
        context = weighted_values(self.dropout(used), memory.values)
        return Look(self.merge(context), weights, used)

    def _scale_of(self, heads: Float[Tensor, "batch heads queries width"]) -> float:
        return float(heads.shape[-1] ** -0.5) if self.scale is None else self.scale


class ScaledDotProduct(FusedAttention):
    """softmax(q kᵀ / √d) v    Vaswani et al., 2017, section 3.2.1, eq. 1.

    One head and no parameters: queries and source have the same width d, and the values read are
    the source. Other keys and values are read from a `Memory` of one's own, its slots on axis −2
    and one head on axis 1.
    """

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """The source is both key and value."""
        self.check_source(source)
        head = without_junk(source, real).unsqueeze(1)
        return Memory(head, head, real)

    def split(
        self, query: Float[Tensor, "batch queries query_width"], start: int
    ) -> Float[Tensor, "batch heads queries width"]:
        return query.unsqueeze(1)

    def merge(
        self, context: Float[Tensor, "batch heads queries value_width"]
    ) -> Float[Tensor, "batch queries context_width"]:
        return context.squeeze(1)

    def _note(
        self, heads: Float[Tensor, "batch heads queries width"], memory: Memory, start: int | None
    ) -> None:
        if self.tap.heard:  # queries and keys are the caller's own, who may write over them
            memory = replace(memory, keys=memory.keys.detach().clone())
            super()._note(heads.detach().clone(), memory, start)
