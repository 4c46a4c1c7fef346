"""Scaled dot-product attention."""

from dataclasses import replace

from jaxtyping import Bool, Float
from torch import Tensor

from attlas.layers.fused import FusedAttention
from attlas.layers.memory import Memory
from attlas.layers.padding import without_junk


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
