"""Sentence pairs in memory, or where their text is large, in a temporary file."""

import hashlib
import os
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, overload

from attlas._files import write_whole
from attlas.errors import DataError

IN_MEMORY = 2**25
"""Characters of text. Of pairs with more, the text lies in a temporary file, in the folder that
`TMPDIR` names, and the ids of a training lie in its run folder."""

_GROUP = 64  # pairs between two places in the file that are known
_GROUPS = 64  # that are read at once, of short texts
_AT_ONCE = 2**23  # bytes of long texts that are read or written at once


class Pair(NamedTuple):
    """A sentence and its translation; neither holds a line break."""

    source: str
    target: str


class PairBlock(NamedTuple):
    """Some pairs, and a number for each, such as its line."""

    numbers: Sequence[int]
    sources: Sequence[str]
    targets: Sequence[str]


class StoredPairs(Sequence[Pair]):
    """Pairs in a temporary file, which has no name and is gone with this object, or with the
    process, however that ends.

    The file has a line for each side of each pair: source, target, source, … Its SHA-256 is the
    checksum of the pairs.

    Args:
        places: Where each group of pairs begins, and where the last one ends.
    """

    def __init__(self, descriptor: int, places: Sequence[int], count: int, checksum: str) -> None:
        self._descriptor, self._places, self._count = descriptor, places, count
        self.checksum = checksum
        weakref.finalize(self, os.close, descriptor)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Pair]:
        for sources, targets in self.blocks():
            yield from map(Pair, sources, targets)

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, place: int | slice) -> Pair | tuple[Pair, ...]:
        if isinstance(place, slice):
            begin, end, step = place.indices(self._count)
            if step != 1:
                return tuple(self[index] for index in range(begin, end, step))
            return tuple(self._between(begin, max(begin, end)))
        row = range(self._count)[place]
        (pair,) = self._between(row, row + 1)
        return pair

    def blocks(
        self, begin: int = 0, end: int | None = None
    ) -> Iterator[tuple[list[str], list[str]]]:
        """The sources and the targets of some thousand pairs at a time, from pair `begin` to `end`;
        of long ones fewer.

        Both have to be multiples of 64, or the number of pairs.
        """
        first, last = begin // _GROUP, -(-(self._count if end is None else end) // _GROUP)
        while first < last:
            start, most = self._places[first], min(first + _GROUPS, last)
            fit = bisect_right(self._places, start + _AT_ONCE, first + 1, most + 1) - 1
            first = max(first + 1, fit)
            texts = self._read(start, self._places[first] - start).decode().split("\n")
            yield texts[:-1:2], texts[1::2]

    @property
    def sources(self) -> "Side":
        """The source side."""
        return Side(self, 0)

    @property
    def targets(self) -> "Side":
        """The target side."""
        return Side(self, 1)

    def _between(self, begin: int, end: int) -> Iterator[Pair]:
        first = begin // _GROUP * _GROUP
        last = min(self._count, -(-end // _GROUP) * _GROUP)
        texts = chain.from_iterable(map(Pair, *block) for block in self.blocks(first, last))
        for row, pair in enumerate(texts, first):
            if begin <= row < end:
                yield pair

    def _read(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # which leaves the place in the file alone: children share it
            content = os.pread(self._descriptor, size, start)
        else:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            content = os.read(self._descriptor, size)
        if len(content) < size:
            raise DataError(
                "the temporary file of the training data as it was written",
                f"{len(content):,} of {size:,} bytes at byte {start:,}",
                "check the disk, or name a folder on another one in TMPDIR",
            )
        return content


class Side(Sequence[str]):
    """One side of stored pairs, read when it is asked for."""

    def __init__(self, pairs: StoredPairs, side: int) -> None:
        self._pairs, self._side = pairs, side

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[list[str]]:
        """Some thousand texts at a time, of long ones fewer."""
        return (block[self._side] for block in self._pairs.blocks())

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(pair[self._side] for pair in self._pairs[place])
        return self._pairs[place][self._side]


class AbsentPairs(Sequence[Pair]):
    """Pairs of which the checksum is known, and which are read when they are asked for.

    Args:
        reading: Reads them.
    """

    def __init__(self, reading: Callable[[], Sequence[Pair]], count: int, checksum: str) -> None:
        self._reading, self._count, self.checksum = reading, count, checksum
        self._pairs: Sequence[Pair] | None = None

    @property
    def pairs(self) -> Sequence[Pair]:
        """All of them."""
        if self._pairs is None:
            self._pairs = self._reading()
        return self._pairs

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self.pairs[place]


class PairCollector:
    """Takes pairs, with a number for each, and holds no more of their text in memory than
    `IN_MEMORY` says.

    Args:
        signs: For each of these, `counts` says how many texts hold it.
    """

    def __init__(self, signs: Sequence[str] = ()) -> None:
        self.counts = dict.fromkeys(signs, 0)
        self._pairs: list[Pair] = []
        self._new: list[str] = []  # source, target, source, …
        self._numbers = array("I")
        self._size = 0  # characters of the pairs in memory
        self._most = IN_MEMORY
        self._count = self._stored = self._end = 0
        self._descriptor: int | None = None
        self._places, self._digest = array("Q", [0]), hashlib.sha256()

    def add(self, number: int, pair: Pair) -> None:
        """One more."""
        self.extend(PairBlock((number,), (pair[0],), (pair[1],)))

    def extend(self, block: PairBlock) -> None:
        """Some more; of long ones few."""
        numbers, sources, targets = block
        self._new += chain.from_iterable(zip(sources, targets, strict=True))
        self._numbers.extend(numbers)
        self._size += sum(map(len, sources)) + sum(map(len, targets))
        if self._size > self._most or len(self._new) >= 2 * _GROUP * _GROUPS:
            self._take()

    def finish(self) -> tuple[Sequence[Pair], Sequence[int]]:
        """The pairs, and their numbers."""
        self._take()
        if self._descriptor is None:
            return tuple(self._pairs), tuple(self._numbers)
        if self._places[-1] < self._end:
            self._places.append(self._end)
        checksum = self._digest.hexdigest()
        pairs = StoredPairs(self._descriptor, self._places, self._count, checksum)
        self._descriptor = None
        return pairs, self._numbers

    def _take(self) -> None:
        """Put the newest pairs with the others."""
        if self.counts:
            joined = "\n".join(self._new)
            for sign in self.counts:
                if sign in joined:
                    self.counts[sign] += sum(sign in text for text in self._new)
        self._count += len(self._new) // 2
        if self._descriptor is None:
            self._pairs += map(Pair, self._new[::2], self._new[1::2])
            if self._size > self._most:
                self._begin_file()
        else:
            self._store(self._new)
            self._size = 0
        self._new = []

    def _begin_file(self) -> None:
        try:
            with tempfile.TemporaryFile(buffering=0) as file:
                self._descriptor = os.dup(file.fileno())
        except OSError as error:
            raise _full(error) from None
        for begin in range(0, len(self._pairs), _GROUP * _GROUPS):  # and no list of all texts
            self._store([*chain.from_iterable(self._pairs[begin : begin + _GROUP * _GROUPS])])
        self._pairs, self._size = [], 0
        self._most = min(IN_MEMORY, _AT_ONCE)

    def _store(self, texts: Sequence[str]) -> None:
        assert self._descriptor is not None
        begin, contents = 0, []
        while begin < len(texts):
            end = min(len(texts), begin + 2 * (_GROUP - self._stored % _GROUP))  # of a group
            contents.append(("\n".join(texts[begin:end]) + "\n").encode())
            self._stored += (end - begin) // 2
            self._end += len(contents[-1])
            if self._stored % _GROUP == 0:
                self._places.append(self._end)
            begin = end
        content = b"".join(contents)
        self._digest.update(content)
        try:
            write_whole(self._descriptor, content)
        except OSError as error:
            raise _full(error) from None

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def _full(error: OSError) -> DataError:
    return DataError(
        "room for the text of the training data in the folder for temporary files "
        f"({tempfile.gettempdir()})",
        (error.strerror or str(error)).lower(),
        "make room there, or name a folder on another disk in TMPDIR",
    )
