"""Bucketing: examples of similar length share a batch, as many as the budget of tokens allows."""

import random
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray
from pydantic import Field, model_validator

from attlas._text import count_noun
from attlas.config import Config
from attlas.data.corpus import FilterReport, Place, by_reason
from attlas.errors import ConfigError, DataError

B = TypeVar("B")


class BatchingConfig(Config):
    """How examples (sentence pairs, or labelled texts) are put together.

    With training.rdrop_alpha every batch is read twice in one pass: `max_tokens` counts it once,
    and the pass goes over twice as many.
    """

    max_tokens: int = Field(default=4096, ge=3)
    """The most tokens of either side of a batch, padding, BEGIN and END included."""
    rows: int | None = Field(default=None, ge=1)
    """The most examples of a batch. Left out: any number."""
    max_length: int = Field(default=256, ge=1)
    """The most tokens of a side of an example. Left out, of a classifier: max_tokens − 2."""
    overlong: Literal["skip", "cut"] = "skip"
    """What to do with a longer example: leave it out ("skip"), or leave out its end ("cut"). It is
    reported either way.
    """

    @model_validator(mode="after")
    def _one_fits(self) -> "BatchingConfig":
        if "max_length" in self.model_fields_set:
            self.check_room()
        return self

    def check_room(self) -> None:
        """`AttlasError` where the longest example does not fit into a batch."""
        if self.max_length + 2 > self.max_tokens:  # + BEGIN and END
            is_set = "max_length" in self.model_fields_set
            raise ConfigError(
                f"batching.max_length of {self.max_tokens - 2} or less, so that a pair with its "
                "begin "
                f"and end fits into max_tokens = {self.max_tokens}",
                f"{self.max_length}" if is_set else f"{self.max_length}, which it is when left out",
                "lower batching.max_length, or raise batching.max_tokens",
            )


class Bucketed(ABC, Generic[B]):
    """The batches of a corpus; the order is a pure function of (seed, epoch) alone.

    Args:
        lengths: Of each side of each example, in tokens.
        frame: How many tokens each side gets beside.
        lines: The place of each example in its file. `report` names the over-long ones by it.
    """

    example: ClassVar[str]  # what is put together, in words

    def __init__(
        self,
        name: str,
        lengths: Sequence[NDArray[np.int64]],
        frame: Sequence[int],
        lines: Sequence[Place],
        config: BatchingConfig,
        seed: int,
    ) -> None:
        config.check_room()
        self.config, self.seed = config, seed
        max_length = config.max_length
        overlong = np.max(lengths, axis=0) > max_length
        framed = [
            np.minimum(side, max_length) + extra for side, extra in zip(lengths, frame, strict=True)
        ]
        self._lengths = lengths
        self._widths: NDArray[np.int64] = np.max(framed, axis=0)
        usable = ~overlong if config.overlong == "skip" else np.ones_like(overlong)
        self._indices = np.flatnonzero(usable)
        self.report = self._reported(name, lines, np.flatnonzero(overlong))
        if not len(self._indices):
            count = count_noun(len(lines), self.example)
            raise DataError(
                f"at least one {self.example} of at most {count_noun(max_length, 'token')} "
                f"in {name}",
                f"{count}, none so short" if len(lines) else f"no {self.example}s",
                "raise batching.max_length, or check the data",
            )

    @abstractmethod
    def batch(self, indices: Sequence[int]) -> B:
        """These examples, padded to the longest of each side."""

    def epoch(self, number: int) -> list[tuple[int, ...]]:
        """The batches of one epoch, in order, as indices; each example is in exactly one."""
        chance = np.random.default_rng(random.Random(f"{self.seed} {number}").getrandbits(128))
        shuffled = chance.permutation(self._indices)
        # A stable sort: among equal lengths the order stays random.
        keys = (*self._lengths, self._widths)
        order = shuffled[np.lexsort([key[shuffled] for key in keys])]
        batches = cut_by_budget(
            order.tolist(), self._widths[order].tolist(), self.config.max_tokens, self.config.rows
        )
        return [batches[index] for index in chance.permutation(len(batches))]

    @property
    def longest(self) -> int:
        """Tokens of the longest side that is in a batch, without what frames it."""
        return int(min(self.config.max_length, np.max(self._lengths, axis=0)[self._indices].max()))

    def _reported(
        self, name: str, lines: Sequence[Place], overlong: NDArray[np.int64]
    ) -> FilterReport:
        reason, cut = (
            f"more than {count_noun(self.config.max_length, 'token')}",
            self.config.overlong,
        )
        faults = by_reason((lines[i], reason) for i in overlong)
        if cut == "cut":
            return FilterReport(name, len(lines), len(lines), cut=faults, example=self.example)
        num_kept = len(lines) - len(overlong)
        return FilterReport(name, len(lines), num_kept, left_out=faults, example=self.example)


def cut_by_budget(
    order: Sequence[int], widths: Sequence[int], budget: int, rows: int | None = None
) -> list[tuple[int, ...]]:
    """Cut `order`, whose padded widths ascend, into runs with length × widest ≤ budget."""
    batches: list[tuple[int, ...]] = []
    open_batch: list[int] = []
    for index, width in zip(order, widths, strict=True):
        if open_batch and ((len(open_batch) + 1) * width > budget or len(open_batch) == rows):
            batches.append(tuple(open_batch))
            open_batch = []
        open_batch.append(index)
    return [*batches, tuple(open_batch)] if open_batch else batches


# Sequences of unequal length in one array.


@dataclass(frozen=True, slots=True)
class Ragged:
    """Row n is ids[starts[n] : starts[n + 1]]; four bytes an id, whatever the number of rows."""

    ids: Int[np.ndarray, " ids"]
    starts: Int[np.ndarray, " rows_and_one"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The ids of one row: a view."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        ids: NDArray[np.int32] = self.ids[self.starts[row] : self.starts[row + 1]]
        return ids

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many ids each row has."""
        return np.diff(self.starts)

    @classmethod
    def of(cls, rows: Iterable[list[int]]) -> "Ragged":
        """Pack lists of ids, each as it comes: no two of them are held."""
        ids, lengths = array("i"), array("i")
        for row in rows:
            ids.extend(row)
            lengths.append(len(row))
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(np.asarray(ids), starts)
