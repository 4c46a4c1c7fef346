"""Scaled dot-product attention in a band: O(length × window) time and memory."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attlas._hardware import integers_on
from attlas.ops.attention import masked_attention
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Pattern

_SMALLEST_BLOCK = 32  # queries; narrower windows would make blocks too small for the kernel


def banded_attention(
    query: Float[Tensor, "batch heads queries head_dim"],
    cache: KeyValueCache,
    pattern: Pattern,
    query_offset: int,
    scale: float,
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """softmax(scale · q kᵀ) v, exactly, for patterns that see a band and some marks.

    Queries go in blocks of B, about as many as the band is wide. A block meets the B + back + ahead
    positions that its queries can see, and the columns of the marks, in one softmax; the pattern
    itself decides among them. The few queries at the marks, which may see everything, are computed
    separately. Beltagy et al., Longformer, 2020, section 3.1. Call it if `band_is_faster` returns
    True.
    """
    strips = _Strips(query.shape[2], cache.num_keys, pattern, query_offset, query.device)
    keys, values = strips.split_keys(cache.keys), strips.split_keys(cache.values)
    context = masked_attention(
        strips.split_queries(query), keys, values, strips.allowed(cache), scale, dropout
    )
    context = strips.merge_blocks(context, query.shape[0])
    rows = [mark - query_offset for mark in strips.marks_asking]
    if not rows:
        return context
    query_rows = integers_on(query.device, rows)
    positions = torch.arange(cache.num_keys, device=query.device)
    allowed = pattern((query_rows + query_offset).unsqueeze(1), positions)[None, None]
    if cache.token_mask is not None:
        allowed = allowed & cache.token_mask[:, None, None, :]
    chosen_queries = query.index_select(2, query_rows)
    attended = masked_attention(chosen_queries, cache.keys, cache.values, allowed, scale, dropout)
    return context.index_copy(2, query_rows, attended)


def band_is_faster(queries: int, num_keys: int, pattern: Pattern, query_offset: int) -> bool:
    """Return True if the band is known, reaches the cache, and has at most half of all pairs."""
    bound = pattern.bound
    if bound.back is None or bound.ahead is None or queries == 0:
        return False
    meets = query_offset - bound.back < num_keys and query_offset + queries + bound.ahead > 0
    band_width = bound.back + bound.ahead
    columns = _block(queries, band_width) + band_width + len(bound.marks)
    return meets and 2 * columns <= num_keys


def _block(queries: int, reach: int) -> int:
    return min(queries, max(reach, _SMALLEST_BLOCK))


class _Strips:
    """How queries and positions are cut: block n of the queries meets strip n of the positions.

    Strips overlap: block n holds positions first + nB … first + (n + 1)B − 1, strip n the positions
    from `back` before the first of them to `ahead` after the last, and then the marks.
    """

    def __init__(
        self, queries: int, num_keys: int, pattern: Pattern, query_offset: int, device: torch.device
    ) -> None:
        bound = pattern.bound
        assert bound.back is not None
        assert bound.ahead is not None
        self.pattern, self.query_offset, self.device = pattern, query_offset, device
        self.queries, self.num_keys = queries, num_keys
        self.block = _block(queries, bound.back + bound.ahead)
        self.blocks = -(-queries // self.block)
        self.length = self.block + bound.back + bound.ahead
        self.low = (
            query_offset - bound.back
        )  # the first position of the first strip, possibly before position 0
        self.span = self.blocks * self.block + bound.back + bound.ahead  # positions in all strips
        marks = sorted(bound.marks)
        self.marks = integers_on(device, [mark for mark in marks if mark < num_keys])
        self.marks_asking = [
            mark for mark in marks if query_offset <= mark < query_offset + queries
        ]

    def split_queries(
        self, query: Float[Tensor, "batch heads queries head_dim"]
    ) -> Float[Tensor, "batch_blocks heads block head_dim"]:
        """Blocks beside the batch; the last one is filled up with zeros."""
        padded = F.pad(query, (0, 0, 0, self.blocks * self.block - self.queries))
        batch, heads, _, head_dim = query.shape
        blocks = padded.reshape(batch, heads, self.blocks, self.block, head_dim)
        return blocks.transpose(1, 2).flatten(0, 1)

    def split_keys(
        self, keys: Float[Tensor, "batch kv_heads keys head_dim"]
    ) -> Float[Tensor, "batch_blocks kv_heads strip_and_marks head_dim"]:
        """Strips beside the batch, each followed by the marks."""
        cut = F.pad(keys, (0, 0, *self._margins)).unfold(2, self.length, self.block)
        strips = cut.permute(0, 2, 1, 4, 3)
        mark_keys = (
            keys.index_select(2, self.marks).unsqueeze(1).expand(-1, self.blocks, -1, -1, -1)
        )
        return torch.cat([strips, mark_keys], dim=3).flatten(0, 1)

    def allowed(self, cache: KeyValueCache) -> Bool[Tensor, "batch_blocks 1 block strip_and_marks"]:
        """The allowed pairs inside the strips, where positions exist and are tokens."""
        steps = torch.arange(self.blocks * self.block, device=self.device)
        query = (self.query_offset + steps).view(self.blocks, self.block, 1)
        strip = torch.arange(self.low, self.low + self.span, device=self.device)
        strip = strip.unfold(0, self.length, self.block).unsqueeze(1)
        exists = (strip >= 0) & (strip < self.num_keys) & ~torch.isin(strip, self.marks)
        in_band = self.pattern(query, strip) & exists
        at_marks = self.pattern(query, self.marks.view(1, 1, -1))
        allowed = torch.cat([in_band, at_marks.expand(self.blocks, self.block, -1)], dim=-1)
        batch = cache.keys.shape[0]
        if cache.token_mask is None:
            return allowed.repeat(batch, 1, 1).unsqueeze(1)
        token_mask = F.pad(cache.token_mask, self._margins).unfold(1, self.length, self.block)
        mark_mask = cache.token_mask[:, self.marks].unsqueeze(1).expand(-1, self.blocks, -1)
        token_mask = torch.cat([token_mask, mark_mask], dim=-1).unsqueeze(2)
        return (allowed & token_mask).flatten(0, 1).unsqueeze(1)

    def merge_blocks(
        self, context: Float[Tensor, "batch_blocks heads block value_dim"], batch: int
    ) -> Float[Tensor, "batch heads queries value_dim"]:
        """The blocks in a row again."""
        blocks = context.reshape(batch, self.blocks, *context.shape[1:]).transpose(1, 2)
        return blocks.flatten(2, 3)[:, :, : self.queries]

    @property
    def _margins(self) -> tuple[int, int]:
        """How many positions are missing before and after the strips; negative: how many are too
        many.
        """
        return -self.low, self.low + self.span - self.num_keys
