"""Scaled dot-product attention in a band: O(length × window) time and memory."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.ops.attention import masked_attention
from attlas.ops.cache import Memory
from attlas.patterns import Pattern

_SMALLEST_BLOCK = 32  # queries; narrower windows would make blocks too small for the kernel


def banded_attention(
    query: Float[Tensor, "batch heads queries width"],
    memory: Memory,
    pattern: Pattern,
    first: int,
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_width"]:
    """softmax(scale · q kᵀ) v, exactly, for patterns that see a band and some marks.

    Queries go in blocks of B, about as many as the band is wide. A block meets the B + back + ahead
    slots that its queries can see, and the columns of the marks, in one softmax; the pattern itself
    decides among them. The few queries at the marks, which may see everything, are read apart.
    Beltagy et al., Longformer, 2020, section 3.1. Call it where `band_pays` says so.
    """
    strips = _Strips(query.shape[2], memory.slots, pattern, first, query.device)
    keys, values = strips.of_slots(memory.keys), strips.of_slots(memory.values)
    context = masked_attention(
        strips.of_queries(query), keys, values, strips.seen(memory), scale, dropout
    )
    context = strips.joined(context, query.shape[0])
    rows = [mark - first for mark in strips.marks_asking]
    if not rows:
        return context
    chosen = torch.tensor(rows, device=query.device)
    slots = torch.arange(memory.slots, device=query.device)
    seen = pattern((chosen + first).unsqueeze(1), slots)[None, None]
    if memory.real is not None:
        seen = seen & memory.real[:, None, None, :]
    asked = query.index_select(2, chosen)
    read = masked_attention(asked, memory.keys, memory.values, seen, scale, dropout)
    return context.index_copy(2, chosen, read)


def band_pays(queries: int, slots: int, pattern: Pattern, first: int) -> bool:
    """Whether the band is known, meets the memory, and is at most half as many pairs as all."""
    bound = pattern.bound
    if bound.back is None or bound.ahead is None or queries == 0:
        return False
    meets = first - bound.back < slots and first + queries + bound.ahead > 0
    span = bound.back + bound.ahead
    columns = _block(queries, span) + span + len(bound.marks)
    return meets and 2 * columns <= slots


def _block(queries: int, span: int) -> int:
    return min(queries, max(span, _SMALLEST_BLOCK))


class _Strips:
    """How queries and slots are cut: block n of the queries meets strip n of the slots.

    Strips overlap: block n holds positions first + nB … first + (n + 1)B − 1, strip n the slots
    from `back` before the first of them to `ahead` after the last, and then the marks.
    """

    def __init__(
        self, queries: int, slots: int, pattern: Pattern, first: int, device: torch.device
    ) -> None:
        bound = pattern.bound
        assert bound.back is not None
        assert bound.ahead is not None
        self.pattern, self.first, self.device = pattern, first, device
        self.queries, self.slots = queries, slots
        self.block = _block(queries, bound.back + bound.ahead)
        self.blocks = -(-queries // self.block)
        self.length = self.block + bound.back + bound.ahead
        self.low = first - bound.back  # the first slot of the first strip, possibly before slot 0
        self.width = self.blocks * self.block + bound.back + bound.ahead  # slots in all strips
        marks = sorted(bound.marks)
        self.marks = torch.tensor([mark for mark in marks if mark < slots], device=device).long()
        self.marks_asking = [mark for mark in marks if first <= mark < first + queries]

    def of_queries(
        self, query: Float[Tensor, "batch heads queries width"]
    ) -> Float[Tensor, "batch_blocks heads block width"]:
        """Blocks beside the batch; the last one is filled up with zeros."""
        filled = F.pad(query, (0, 0, 0, self.blocks * self.block - self.queries))
        batch, heads, _, width = query.shape
        blocks = filled.reshape(batch, heads, self.blocks, self.block, width)
        return blocks.transpose(1, 2).flatten(0, 1)

    def of_slots(
        self, kept: Float[Tensor, "batch key_heads slots width"]
    ) -> Float[Tensor, "batch_blocks key_heads strip_and_marks width"]:
        """Strips beside the batch, each followed by the marks."""
        cut = F.pad(kept, (0, 0, *self._margins)).unfold(2, self.length, self.block)
        strips = cut.permute(0, 2, 1, 4, 3)
        marked = kept.index_select(2, self.marks).unsqueeze(1).expand(-1, self.blocks, -1, -1, -1)
        return torch.cat([strips, marked], dim=3).flatten(0, 1)

    def seen(self, memory: Memory) -> Bool[Tensor, "batch_blocks 1 block strip_and_marks"]:
        """The pattern's answer inside the strips, and which of their slots exist and are real."""
        steps = torch.arange(self.blocks * self.block, device=self.device)
        query = (self.first + steps).view(self.blocks, self.block, 1)
        strip = torch.arange(self.low, self.low + self.width, device=self.device)
        strip = strip.unfold(0, self.length, self.block).unsqueeze(1)
        exists = (strip >= 0) & (strip < self.slots) & ~torch.isin(strip, self.marks)
        near = self.pattern(query, strip) & exists
        far = self.pattern(query, self.marks.view(1, 1, -1))
        seen = torch.cat([near, far.expand(self.blocks, self.block, -1)], dim=-1)
        batch = memory.keys.shape[0]
        if memory.real is None:
            return seen.repeat(batch, 1, 1).unsqueeze(1)
        real = F.pad(memory.real, self._margins).unfold(1, self.length, self.block)
        marked = memory.real[:, self.marks].unsqueeze(1).expand(-1, self.blocks, -1)
        real = torch.cat([real, marked], dim=-1).unsqueeze(2)
        return (seen & real).flatten(0, 1).unsqueeze(1)

    def joined(
        self, context: Float[Tensor, "batch_blocks heads block value_width"], batch: int
    ) -> Float[Tensor, "batch heads queries value_width"]:
        """The blocks in a row again."""
        apart = context.reshape(batch, self.blocks, *context.shape[1:]).transpose(1, 2)
        return apart.flatten(2, 3)[:, :, : self.queries]

    @property
    def _margins(self) -> tuple[int, int]:
        """What the slots lack before and after the strips; negative: what they have too much."""
        return -self.low, self.low + self.width - self.slots
