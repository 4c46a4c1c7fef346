"""Batches by token budget: in which order, and how they are padded."""

import random
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from attlas.config import Config
from attlas.data.amount import amount
from attlas.data.batch import Batch
from attlas.data.encoded import EncodedCorpus
from attlas.data.filters import FilterReport, by_reason
from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.errors import AttlasError


class BatchingConfig(Config):
    """How pairs are put together.

    Neither side of a batch takes more than `tokens` slots, padding, BEGIN and END included, and a
    batch has at most `rows` pairs. A pair with a side of more than `max_length` tokens is left out
    ("skip") or loses what is beyond ("cut"), and is reported either way.
    """

    tokens: int = Field(default=4096, ge=3)
    rows: int | None = Field(default=None, ge=1)
    max_length: int = Field(default=256, ge=1)
    overlong: Literal["skip", "cut"] = "skip"

    @model_validator(mode="after")
    def _one_fits(self) -> "BatchingConfig":
        if self.max_length + 2 > self.tokens:  # + BEGIN and END
            raise AttlasError(
                f"batching.max_length of {self.tokens - 2} or less, so that a pair with its begin "
                f"and end fits into tokens = {self.tokens}",
                str(self.max_length),
                "lower max_length, or raise tokens",
            )
        return self


class Batches:
    """The batches of a corpus; the order is a pure function of (seed, epoch) alone.

    `report` names the over-long pairs by line.
    """

    def __init__(self, encoded: EncodedCorpus, config: BatchingConfig, seed: int) -> None:
        self.encoded, self.config, self.seed = encoded, config, seed
        source, target = encoded.source.lengths, encoded.target.lengths
        overlong = np.maximum(source, target) > config.max_length
        most = config.max_length
        # source + END; BEGIN + target + END
        self._widths = np.maximum(np.minimum(source, most) + 1, np.minimum(target, most) + 2)
        usable = ~overlong if config.overlong == "skip" else np.ones_like(overlong)
        self._indices = np.flatnonzero(usable)
        self.report = _report(encoded, config, np.flatnonzero(overlong))
        if not len(self._indices):
            raise AttlasError(
                f"at least one pair of at most {amount(config.max_length, 'token')} in "
                f"{encoded.name}",
                f"{amount(len(encoded), 'pair')}, none so short" if len(encoded) else "no pairs",
                "raise batching.max_length, or check the data",
            )

    def epoch(self, number: int) -> list[tuple[int, ...]]:
        """The batches of one epoch, in order, as indices of pairs; each pair is in exactly one."""
        chance = np.random.default_rng(random.Random(f"{self.seed} {number}").getrandbits(128))
        shuffled = chance.permutation(self._indices)
        # Stable: among equals, who shares a batch with whom stays a matter of chance.
        order = np.lexsort(
            (
                self.encoded.source.lengths[shuffled],
                self.encoded.target.lengths[shuffled],
                self._widths[shuffled],
            )
        )
        batches = self._cut(shuffled[order])
        return [batches[place] for place in chance.permutation(len(batches))]

    def batch(self, indices: Sequence[int]) -> Batch:
        """Source + END; BEGIN + target + END; padded to the longest of each side."""
        most = self.config.max_length
        sources = [[*self.encoded.source[i][:most].tolist(), END] for i in indices]
        targets = [[BEGIN, *self.encoded.target[i][:most].tolist(), END] for i in indices]
        source, source_real = padded(sources)
        target, target_real = padded(targets)
        return Batch(source, source_real, target, target_real, tuple(indices))

    def _cut(self, order: NDArray[np.int64]) -> list[tuple[int, ...]]:
        return cut_by_budget(
            order.tolist(), self._widths[order].tolist(), self.config.tokens, self.config.rows
        )


def batches_by_length(sources: Sequence[Sequence[int]], budget: int) -> list[tuple[int, ...]]:
    """Batches for inference, shortest first: rows × (longest + 1) ≤ budget, as indices.

    A source beyond the budget is a batch of its own; each source is in exactly one batch.
    """
    widths = [len(source) + 1 for source in sources]
    order = sorted(range(len(sources)), key=widths.__getitem__)
    return cut_by_budget(order, [widths[i] for i in order], budget)


def cut_by_budget(
    order: Sequence[int], widths: Sequence[int], budget: int, rows: int | None = None
) -> list[tuple[int, ...]]:
    """Cut `order`, whose padded widths ascend, into runs with length × widest ≤ budget."""
    batches: list[tuple[int, ...]] = []
    begun: list[int] = []
    for index, width in zip(order, widths, strict=True):
        if begun and ((len(begun) + 1) * width > budget or len(begun) == rows):
            batches.append(tuple(begun))
            begun = []
        begun.append(index)
    return [*batches, tuple(begun)] if begun else batches


def padded(
    rows: Sequence[Sequence[int]],
) -> tuple[Int[Tensor, "batch slots"], Bool[Tensor, "batch slots"]]:
    """The rows side by side, short ones filled with `PAD`, and which slots are real."""
    lengths = torch.tensor([len(row) for row in rows])
    real = torch.arange(int(lengths.max()) if rows else 0) < lengths[:, None]
    ids = torch.full(real.shape, PAD)
    ids[real] = torch.tensor([id_ for row in rows for id_ in row], dtype=torch.int64)
    return ids, real


def _report(
    encoded: EncodedCorpus, config: BatchingConfig, overlong: NDArray[np.int64]
) -> FilterReport:
    found = by_reason(
        (encoded.lines[i], f"more than {amount(config.max_length, 'token')}") for i in overlong
    )
    if config.overlong == "cut":
        return FilterReport(encoded.name, len(encoded), len(encoded), cut=found)
    return FilterReport(encoded.name, len(encoded), len(encoded) - len(overlong), left_out=found)
