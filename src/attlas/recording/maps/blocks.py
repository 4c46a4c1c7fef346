"""Blocks: a few rows of an attention map at a time, in the same memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.maps.row_kernels import RowKernels
from attlas.recording.maps.row_tiles import PartialMask, RowTiles, TileRequest

# A few rows of some maps, as the statistics take them.


def position_error(question: str, queries: int, num_keys: int) -> AttlasError:
    """The error for a map whose query positions are unknown."""
    return AttlasError(
        f"a map that knows the positions of its queries among its keys, for {question}",
        f"one of {queries:,} queries and {num_keys:,} keys that does not",
        "ask for what needs no positions; or, where you know the key of the first query, give it: "
        "dataclasses.replace(attention_map, query_offset=…)",
    )


@dataclass(frozen=True)
class Block:
    """Rows start … stop − 1 of some heads of one batch row, at the keys low … high − 1.

    Outside of these keys all weights are 0, and so are those of a row that sees nothing.

    Args:
        scores: Log w, up to a constant of each row; anything finite where w is 0.
        query_offset: The position of the first query, counted as keys are, None = unknown;
            ends(): the first real key of the batch row, and the last.
        scratch: To write into, until the next who does.
    """

    batch: int
    heads: slice
    start: int
    stop: int
    low: int
    high: int
    query_offset: int | None
    scores: Float[Tensor, "heads rows keys"]
    weights: Float[Tensor, "heads rows keys"]
    scratch: Float[Tensor, "heads rows keys"]
    partial_masks: tuple[PartialMask, ...]
    has_visible: Bool[Tensor, "heads rows"]
    ends: Callable[[], tuple[int, int]]

    @property
    def position(self) -> int:
        """Of the first query, for what can be said only where that is known."""
        if self.query_offset is None:
            raise position_error("what depends on it", self.stop - self.start, self.high - self.low)
        return self.query_offset

    @cached_property
    def greatest(self) -> Int[Tensor, "heads rows"]:
        """Where in `weights` the greatest weight of each row is, the first of equals.

        There has to be a key.
        """
        if self.weights.device.type != "cpu":
            return self.weights.argmax(-1)
        return torch.from_numpy(self.weights.numpy().argmax(-1))  # ten times as quick as torch's

    @cached_property
    def max_weight(self) -> Float[Tensor, "heads rows"]:
        """The greatest weight of each row."""
        return self.weights.gather(-1, self.greatest.unsqueeze(-1)).squeeze(-1)

    @cached_property
    def entropy(self) -> Float[Tensor, "heads rows"]:
        """−Σ w log w, in nats; 0 for a row that sees nothing.

        With log w = s − s* + log w*, where s* and w* are those of the greatest weight: such terms
        are small where weights are great, and lose no digits.
        """
        if self.high == self.low:
            return self.weights.sum(-1)
        best = self.scores.gather(-1, self.greatest.unsqueeze(-1))
        log_weights = torch.sub(self.scores, best, out=self.scratch).mul_(self.weights).sum(-1)
        log = torch.where(self.max_weight > 0, self.max_weight, 1.0).log()
        return -log_weights - log * self.weights.sum(-1)

    @cached_property
    def num_visible(self) -> Float[Tensor, "#heads rows"]:
        """How many keys each query may see."""
        all_seen = self.high - self.low - sum(part.high - part.low for part in self.partial_masks)
        counts = self.weights.new_full((1, self.stop - self.start), all_seen)
        for part in self.partial_masks:
            counts = counts + part.allowed.sum(-1, dtype=counts.dtype)
        return counts

    @property
    def allowed(self) -> Bool[Tensor, "#heads rows keys"]:
        """Which of the keys each query may see."""
        heads = max((part.allowed.shape[0] for part in self.partial_masks), default=1)
        shape = heads, self.stop - self.start, self.high - self.low
        allowed = torch.ones(shape, dtype=torch.bool, device=self.weights.device)
        for part in self.partial_masks:
            allowed[..., part.low - self.low : part.high - self.low] = part.allowed
        return allowed


AT_ONCE = 1 << 22
"""Weights that a block holds, unless a few rows have more: fewer are not worth the calls."""

Cut = tuple[slice, int, int]

_LEAST_ROWS = 16
_MOST_ROWS = 256


@runtime_checkable
class BlockSource(Protocol):
    """What can be gone through in blocks: a map of (batch, heads, queries, keys) weights."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, keys)."""

    @property
    def position(self) -> int | None:
        """Where the first query stands, counted as keys are; None = unknown."""

    @property
    def device(self) -> torch.device:
        """Where its numbers are."""

    @property
    def thread_safe(self) -> bool:
        """Return True if several threads may ask for blocks at the same time."""

    @property
    def of_softmax(self) -> bool:
        """Return True if the scores of its blocks are those that the softmax was taken of."""

    def at(self, row: int) -> "BlockSource":
        """The map of one batch row."""

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        """The blocks of a map of one batch row, which has this number among all rows."""

    def row_kernels(self, rows: tuple[int, int], names: frozenset[str]) -> RowKernels | None:
        """Kernels that answer for these queries without blocks; None where there are none."""

    def row_tiles(self, rows: tuple[int, int], request: TileRequest) -> RowTiles | None:
        """Answers for these queries by tiles, on a CPU; None where there are none."""


def blocks_of(
    attention_map: BlockSource,
    *,
    rows: tuple[int, int] | None = None,
    at_once: int = AT_ONCE,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Block]:
    """Every row of every map once; a block is good until the next one is asked for.

    Args:
        rows: The rows that matter, first and one past the last; None = all.
        share: (n, of): of each `of` blocks only the one with number n.
    """
    rows = (0, attention_map.shape[2]) if rows is None else rows
    rows_per_block = share[0], None, share[1]
    for batch in range(attention_map.shape[0]):
        row = attention_map.at(batch)
        yield from row.iter_blocks(batch, islice(_cuts(row, rows, at_once), *rows_per_block))


def _cuts(attention_map: BlockSource, row_range: tuple[int, int], at_once: int) -> Iterator[Cut]:
    """Heads, first row and the one after the last of each block."""
    _, heads, _, num_keys = attention_map.shape
    queries = row_range[1] - row_range[0]
    rows = min(max(_LEAST_ROWS, at_once // max(1, num_keys)), _MOST_ROWS, max(1, queries))
    heads_at_once = min(max(1, at_once // max(1, rows * num_keys)), max(1, heads))
    for head in range(0, heads, heads_at_once):
        for start in range(row_range[0], row_range[1], rows):
            yield (
                slice(head, min(head + heads_at_once, heads)),
                start,
                min(start + rows, row_range[1]),
            )


def blocks_of_weights(
    row: BlockSource,
    weights_of: Callable[[int, int], Tensor],
    allowed_of: Callable[[int, int], Tensor] | None,
    batch: int,
    cuts: Iterable[Cut],
) -> Iterator[Block]:
    """Blocks of a map of one batch row that is asked for its weights.

    Args:
        weights_of, allowed_of: The weights of some rows, (1, heads, rows, keys), and which keys
            these rows may see; without the latter, all of them.
    """
    num_keys = row.shape[3]
    ends = cache(partial(ends_of, row, allowed_of)) if allowed_of else lambda: (0, num_keys - 1)
    for heads, start, stop in cuts:
        weights = weights_of(start, stop)[0, heads]
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        partial_masks: tuple[PartialMask, ...] = ()
        if allowed_of and num_keys:
            allowed = allowed_of(start, stop)[0]
            partial_masks = (
                PartialMask(0, num_keys, allowed[heads] if allowed.shape[0] > 1 else allowed),
            )
        scores = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        query_offset = None if row.position is None else row.position + start
        extent = batch, heads, start, stop, 0, num_keys, query_offset
        numbers = scores, weights, torch.empty_like(weights)
        yield Block(*extent, *numbers, partial_masks, (weights != 0).any(-1), ends)


def ends_of(row: BlockSource, *allowed_by: Callable[[int, int], Tensor]) -> tuple[int, int]:
    """The first and the last key that some query sees, by the first of these by which any does."""
    return next((ends for allowed in allowed_by if (ends := _span(row, allowed))), (0, -1))


def _span(row: BlockSource, allowed: Callable[[int, int], Tensor]) -> tuple[int, int] | None:
    """The first and the last key that some query sees; None where no query sees any."""
    _, _, queries, num_keys = row.shape
    step = max(1, AT_ONCE // max(1, num_keys))
    any_allowed = torch.zeros(num_keys, dtype=torch.bool, device="cpu")
    for start in range(0, queries, step):
        any_allowed |= allowed(start, min(start + step, queries))[0].flatten(0, 1).any(0).cpu()
    positions = any_allowed.nonzero().flatten()
    return (int(positions[0]), int(positions[-1])) if len(positions) else None
