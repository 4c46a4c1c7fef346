"""Bucketing: examples of similar length share a batch, as many as the budget of tokens allows."""

import random
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, overload, runtime_checkable

import numpy as np
from jaxtyping import Integer
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
        lengths: Sequence[NDArray[np.integer[Any]]],
        frame: Sequence[int],
        lines: Sequence[Place],
        config: BatchingConfig,
        seed: int,
    ) -> None:
        config.check_room()
        self.config, self.seed = config, seed
        max_length = config.max_length
        self._lengths = [compact(side) for side in lengths]
        overlong = np.zeros(len(lines), dtype=np.bool_)
        widths = np.zeros(len(lines), dtype=np.int64)
        for side, extra in zip(lengths, frame, strict=True):
            overlong |= side > max_length
            np.maximum(widths, np.minimum(side, max_length) + extra, out=widths)
        self._widths = compact(widths)
        usable = ~overlong if config.overlong == "skip" else np.ones_like(overlong)
        self._indices = compact(np.flatnonzero(usable))
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

    def epoch(self, number: int) -> "BatchOrder":
        """The batches of one epoch, in order, as indices; each example is in exactly one."""
        chance = np.random.default_rng(random.Random(f"{self.seed} {number}").getrandbits(128))
        shuffled = chance.permutation(self._indices)
        # A stable sort: among equal lengths the order stays random.
        keys = (*self._lengths, self._widths)
        order = shuffled[np.lexsort([key[shuffled] for key in keys])]
        ends = budget_ends(self._widths[order], self.config.max_tokens, self.config.rows)
        return BatchOrder(order, ends, chance.permutation(len(ends)))

    @property
    def longest(self) -> int:
        """Tokens of the longest side that is in a batch, without what frames it."""
        longest = max(int(side[self._indices].max()) for side in self._lengths)
        return min(self.config.max_length, longest)

    def _reported(
        self, name: str, lines: Sequence[Place], overlong: NDArray[np.int64]
    ) -> FilterReport:
        reason, cut = (
            f"more than {count_noun(self.config.max_length, 'token')}",
            self.config.overlong,
        )
        faults = by_reason((lines[i], reason) for i in overlong.tolist())
        if cut == "cut":
            return FilterReport(name, len(lines), len(lines), cut=faults, example=self.example)
        num_kept = len(lines) - len(overlong)
        return FilterReport(name, len(lines), num_kept, left_out=faults, example=self.example)


def cut_by_budget(
    order: Sequence[int], widths: Sequence[int], budget: int, rows: int | None = None
) -> list[tuple[int, ...]]:
    """Cut `order`, whose padded widths ascend, into runs with length × widest ≤ budget."""
    ends = budget_ends(widths, budget, rows).tolist()
    return [tuple(order[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def budget_ends(
    widths: Sequence[int] | NDArray[np.integer[Any]], budget: int, rows: int | None = None
) -> NDArray[np.int64]:
    """Where each run of `cut_by_budget` ends: each is as long as possible, and has one at least."""
    ends, begin, count = array("q"), 0, len(widths)
    while begin < count:
        # More than this never fit, because the first is the narrowest.
        most = min(count - begin, rows or count, max(1, budget // max(1, int(widths[begin]))))
        first = begin

        def is_over(size: int, first: int = first) -> bool:
            return size * int(widths[first + size - 1]) > budget

        begin += max(1, bisect_left(range(1, most + 1), True, key=is_over))
        ends.append(begin)
    return np.asarray(ends, dtype=np.int64)


class BatchOrder(Sequence[tuple[int, ...]]):
    """The batches of an epoch: four or eight bytes an example, where tuples would take forty.

    Args:
        indices: Of the examples, batch by batch.
        ends: Where each batch ends there.
        order: Of the batches.
    """

    def __init__(
        self,
        indices: NDArray[np.integer[Any]],
        ends: NDArray[np.int64],
        order: NDArray[np.integer[Any]],
    ) -> None:
        self._indices, self._ends, self._order = indices, ends, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[int, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[int, ...] | list[tuple[int, ...]]:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        batch = int(self._order[range(len(self))[place]])
        begin = self._ends[batch - 1] if batch else 0
        return tuple(self._indices[begin : self._ends[batch]].tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def compact(numbers: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    """Numbers ≥ 0 in the smallest unsigned type that holds them: what is sorted is copied."""
    most = int(numbers.max(initial=0))
    return numbers.astype(np.min_scalar_type(most), copy=False)


# Sequences of unequal length in one array.


@runtime_checkable
class Rows(Protocol):
    """Sequences of ids, each an array: in memory (`Ragged`), or in the files of a run."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> NDArray[np.integer[Any]]:
        """The ids of one row."""

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many ids each row has."""


@dataclass(frozen=True, slots=True)
class Ragged:
    """Row n is ids[starts[n] : starts[n + 1]]; two or four bytes an id, whatever the number of
    rows.
    """

    ids: Integer[np.ndarray, " ids"]
    starts: Integer[np.ndarray, " rows_and_one"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.integer[Any]]:
        """The ids of one row: a view."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        ids: NDArray[np.integer[Any]] = self.ids[self.starts[row] : self.starts[row + 1]]
        return ids

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many ids each row has."""
        return np.diff(self.starts)

    @classmethod
    def of(cls, rows: Iterable[list[int]], size: int | None = None) -> "Ragged":
        """Pack lists of ids, each as it comes: no two of them are held.

        Args:
            size: Of their vocabulary: below 65,537 an id takes two bytes. None = four.
        """
        typecode = FOUR_BYTES if size is None else typecode_of(size)
        return cls.joined((array(typecode, row).tobytes() for row in rows), typecode)

    @classmethod
    def encoded(
        cls, encode: Callable[[str], list[int]], typecode: str, texts: Iterable[str]
    ) -> "Ragged":
        """A row for each text."""
        return cls.joined((array(typecode, encode(text)).tobytes() for text in texts), typecode)

    @classmethod
    def joined(cls, rows: Iterable[bytes], typecode: str) -> "Ragged":
        """Pack rows that are the bytes of arrays of this type, each as it comes."""
        content, lengths = bytearray(), array("q")
        for row in rows:
            content += row
            lengths.append(len(row))
        sizes = np.frombuffer(lengths, dtype=np.int64) // array(typecode).itemsize
        return cls.divided(np.frombuffer(content, dtype=typecode), sizes)

    @classmethod
    def divided(
        cls, ids: Integer[np.ndarray, " ids"], lengths: Integer[np.ndarray, " rows"]
    ) -> "Ragged":
        """Rows of these lengths, one behind the other."""
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(ids, starts)


TWO_BYTES, FOUR_BYTES = "H", "i"  # of an id, as `array.array` and numpy call them
SMALL = 2**16  # ids of a vocabulary each of which fits into two bytes


def typecode_of(size: int) -> str:
    """The type of the ids of a vocabulary of this size."""
    return TWO_BYTES if size <= SMALL else FOUR_BYTES
