"""Batches by token budget: in which order, and how they are padded."""

import math
from bisect import bisect_left
from collections.abc import Sequence, Sized

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.data.batch import Batch
from attlas.data.bucketing import BatchingConfig, Bucketed, cut_by_budget
from attlas.data.encoded import EncodedCorpus
from attlas.data.vocabulary import BEGIN, END, PAD


class Batches(Bucketed[Batch]):
    """The batches of sentence pairs; see `Bucketed`."""

    example = "pair"

    def __init__(self, encoded: EncodedCorpus, config: BatchingConfig, seed: int) -> None:
        self.encoded = encoded
        lengths = encoded.source.lengths, encoded.target.lengths
        super().__init__(encoded.name, lengths, (1, 2), encoded.lines, config, seed)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Source + END; BEGIN + target + END; padded to the longest of each side.

        A source that is cut ends with END as well, as in a search; a target that is cut does not.
        """
        most = self.config.max_length
        sources = [[*self.encoded.source[i][:most].tolist(), END] for i in indices]
        targets = [self._target(self.encoded.target[i].tolist()) for i in indices]
        source, source_real = padded(sources)
        target, target_real = padded(targets)
        return Batch(source, source_real, target, target_real, tuple(indices))

    def _target(self, ids: list[int]) -> list[int]:
        most = self.config.max_length
        if len(ids) > most:  # an END here would teach to end in the middle of a sentence
            return [BEGIN, *ids[:most]]
        return [BEGIN, *ids, END]


def batches_by_length(
    sources: Sequence[Sized], budget: int, rows: int | None = None, shares: int = 1
) -> list[tuple[int, ...]]:
    """Batches for inference, shortest first: rows × (longest + 1) ≤ budget, as indices.

    rows: of a batch at most. A source beyond the budget is a batch of its own; each source is in
    exactly one batch. shares: among how many the batches will be dealt out. Then they are of the
    smallest budget that gives no more of them than a multiple of it, so that all get alike.
    """
    widths = [len(source) + 1 for source in sources]
    order = sorted(range(len(sources)), key=widths.__getitem__)
    ascending = [widths[i] for i in order]

    def cut(budget: int) -> list[tuple[int, ...]]:
        return cut_by_budget(order, ascending, budget, rows)

    batches = cut(budget)
    if shares == 1 or not batches:
        return batches
    most = math.ceil(len(batches) / shares) * shares
    smaller = range(1, budget + 1)
    return cut(smaller[bisect_left(smaller, True, key=lambda size: len(cut(size)) <= most)])


def padded(
    rows: Sequence[Sequence[int]],
) -> tuple[Int[Tensor, "batch slots"], Bool[Tensor, "batch slots"]]:
    """The rows side by side, short ones filled with `PAD`, and which slots are real."""
    lengths = torch.tensor([len(row) for row in rows])
    real = torch.arange(int(lengths.max()) if rows else 0) < lengths[:, None]
    ids = torch.full(real.shape, PAD)
    ids[real] = torch.tensor([id_ for row in rows for id_ in row], dtype=torch.int64)
    return ids, real
