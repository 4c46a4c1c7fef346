"""A corpus: sentence pairs, where they came from, and an account of what was left out."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attlas._text import count_noun
from attlas.config import Config
from attlas.data.stored_pairs import (
    AbsentPairs,
    Pair,
    PairBlock,
    PairCollector,
    Side,
    StoredPairs,
)
from attlas.errors import DataError

# What a line of data is: a sentence and its translation, or a text and its label.


OnFault = Literal["error", "skip"]
"""What to do with what is not fit: stop there, or leave it out and count it."""

Place = int | str
"""Where something stands: the number of a line, from 1, or the name of a file."""


@dataclass(frozen=True, slots=True)
class JoinedFiles:
    """Files whose lines are counted on from one to the next; they may still be read.

    Args:
        names: In the order in which they are read.
        ends: The number of the last line of each, as far as they were read.
    """

    names: Sequence[str]
    ends: list[int] = field(default_factory=list)

    def place(self, number: int) -> tuple[int, str]:
        """The line with that number: its number in its own file, and the name of that.

        Example:
            >>> JoinedFiles(["a.tsv", "b.tsv"], [10]).place(12)
            (2, 'b.tsv')
        """
        index = bisect_left(self.ends, number)
        return number - (self.ends[index - 1] if index else 0), self.names[index]


class Labelled(NamedTuple):
    """A text and the name of the class it belongs to."""

    text: str
    label: str


# Which pairs are fit to train on, and an account of those that were left out.


_NAMED = 5  # how many lines of each reason a report names


class FilterConfig(Config):
    """Which pairs are left out.

    Lengths are counted in characters, which every language has: Japanese has no spaces. A side of
    white space alone is empty, which is a fault in every split. The two bounds hold for training
    alone. "skip" leaves the pair out, both sides of it, and counts it; "error" stops at the first.
    """

    empty: OnFault = "skip"
    """What to do with a pair that has an empty side."""
    max_length: int | None = Field(default=None, ge=1)
    """The most characters of the longer side. Left out: any number."""
    max_ratio: float | None = Field(default=None, ge=1.0)
    """How many times as long as the shorter side the longer may be. Left out: any."""
    unfit: OnFault = "skip"
    """What to do with a pair beyond max_length or max_ratio."""

    def fault(self, pair: Pair) -> str | None:
        """Why this pair is not fit; None where it is."""
        if not pair.source.strip():
            return EMPTY_SOURCE
        if not pair.target.strip():
            return EMPTY_TARGET
        short, long = sorted((len(pair.source), len(pair.target)))
        if self.max_length is not None and long > self.max_length:
            return f"more than {self.max_length} characters"
        if self.max_ratio is not None and long > self.max_ratio * short:
            return f"one side more than {self.max_ratio:g} times the other"
        return None

    def stops(self, fault: str) -> bool:
        """Return True if this fault is an error."""
        return (self.empty if fault in (EMPTY_SOURCE, EMPTY_TARGET) else self.unfit) == "error"

    @property
    def empties_alone(self) -> "FilterConfig":
        """The same filter without the bounds, for validation and test sets.

        A score is comparable only if it is measured on the whole set.
        """
        return self.model_copy(update={"max_length": None, "max_ratio": None})


EMPTY_SOURCE, EMPTY_TARGET = "an empty source", "an empty target"
LINE_BREAK = "a line break inside"


@dataclass(frozen=True, slots=True)
class Fault:
    """How many lines have one fault, and the numbers of the first few of them (from 1); names,
    where the places are not lines.
    """

    reason: str
    count: int
    first: tuple[Place, ...]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.first) else ""
        lines = "line " if self.count == 1 else "lines "
        if isinstance(self.first[0], str):
            lines = ""
        return f"{self.count:,} with {self.reason} ({lines}{', '.join(map(str, self.first))}{more})"


@dataclass(frozen=True, slots=True)
class FilterReport:
    """What was read, what was kept, and why the rest was left out; `str(report)` is a sentence.

    Args:
        example: What was read, in words.
        remarks: What else there is to say.
    """

    name: str
    read: int
    kept: int
    left_out: tuple[Fault, ...] = ()
    cut: tuple[Fault, ...] = ()
    carriage_returns: int = 0
    example: str = "pair"
    remarks: tuple[str, ...] = ()

    @property
    def skipped(self) -> int:
        """How many were left out, for any reason."""
        return self.read - self.kept

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.kept:,} of {count_noun(self.read, self.example)} kept"]
        for action, faults in (("left out", self.left_out), ("cut", self.cut)):
            if faults:
                parts.append(f"{action} {' and '.join(map(str, faults))}")
        if self.carriage_returns:
            parts.append(
                f"{count_noun(self.carriage_returns, 'carriage return')} at line ends taken off"
            )
        return "; ".join([*parts, *self.remarks])


class FaultCounter:
    """Counts faults by reason, in the order in which the reasons come up, and keeps the places of
    the first few of each: millions of lines may have one.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[Place]] = {}

    def add(self, place: Place, reason: str) -> None:
        """One more."""
        self._counts[reason] += 1
        if self._counts[reason] <= _NAMED:
            self._first.setdefault(reason, []).append(place)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What was counted."""
        return tuple(
            Fault(reason, self._counts[reason], tuple(places))
            for reason, places in self._first.items()
        )


def by_reason(faults: Iterable[tuple[Place, str]]) -> tuple[Fault, ...]:
    """Group (place, reason) by reason."""
    counter = FaultCounter()
    for place, reason in faults:
        counter.add(place, reason)
    return counter.faults


@dataclass(frozen=True, slots=True)
class FitPairs:
    """The pairs that are fit, their numbers, how many were read, what was left out and what to
    remark. stop: the first fault that the settings call an error.
    """

    pairs: Sequence[Pair]
    numbers: Sequence[int]
    read: int
    left_out: tuple[Fault, ...]
    remarks: tuple[str, ...]
    stop: DataError | None
    files: JoinedFiles | None = None

    def corpus(
        self, name: str, carriage_returns: int = 0, remarks: tuple[str, ...] = ()
    ) -> "Corpus":
        """As a corpus.

        Raises:
            DataError: For a fault that the settings call an error.
        """
        if self.stop is not None:
            raise self.stop
        report = FilterReport(
            name,
            self.read,
            len(self.pairs),
            self.left_out,
            carriage_returns=carriage_returns,
            remarks=(*remarks, *self.remarks),
        )
        return Corpus(name, self.pairs, self.numbers, report, self.files)


def filtered(
    pairs: Iterable[tuple[int, Pair]],
    filters: FilterConfig,
    name: str,
    files: JoinedFiles | None = None,
) -> FitPairs:
    """The fit ones of the pairs with their numbers, which are read one by one, to the end.

    Args:
        files: Where the lines are of several files.
    """
    return filtered_blocks(pair_blocks(pairs), filters, name, files)


AT_ONCE = 64  # pairs that are looked at together


def pair_blocks(pairs: Iterable[tuple[int, Pair]]) -> Iterator[PairBlock]:
    """Pairs with their numbers, `AT_ONCE` at a time."""
    rest = iter(pairs)
    while some := list(islice(rest, AT_ONCE)):
        sources, targets = zip(*(pair for _, pair in some), strict=True)
        yield PairBlock([number for number, _ in some], sources, targets)


def filtered_blocks(
    blocks: Iterable[PairBlock],
    filters: FilterConfig,
    name: str,
    files: JoinedFiles | None = None,
) -> FitPairs:
    """The same of pairs that come in blocks."""
    collector, read = PairCollector(tuple(_SIGNS_OF_DAMAGE)), 0
    faults = FaultCounter()
    stop: DataError | None = None
    has_bounds = filters.max_length is not None or filters.max_ratio is not None
    for block in blocks:
        read += len(block.numbers)
        if not has_bounds and _have_words(block.sources) and _have_words(block.targets):
            collector.extend(block)
            continue
        for number, *sides in zip(*block, strict=True):
            pair = Pair(*sides)
            has_break = "\n" in pair.source or "\n" in pair.target
            fault = LINE_BREAK if has_break else filters.fault(pair)
            if fault is None:
                collector.add(number, pair)
            elif stop is None and filters.stops(fault):
                setting = "empty" if fault in (EMPTY_SOURCE, EMPTY_TARGET) else "unfit"
                line, file = files.place(number) if files else (number, name)
                stop = DataError(
                    f"fit sentence pairs in {file}",
                    f"line {line} with {fault}",
                    f'correct that line, or set data.filters.{setting} = "skip"',
                )
            else:
                faults.add("{1}:{0}".format(*files.place(number)) if files else number, fault)
    fit_pairs, fit_numbers = collector.finish()
    remarks = _remarks_of_damage(collector.counts)
    return FitPairs(
        pairs=fit_pairs,
        numbers=fit_numbers,
        read=read,
        left_out=faults.faults,
        remarks=remarks,
        stop=stop,
        files=files,
    )


def _have_words(texts: Sequence[str]) -> bool:
    """Return True if each is a line that holds more than white space."""
    return (
        all(texts) and not any(map(str.isspace, texts)) and not any("\n" in text for text in texts)
    )


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentence pairs in the order of their file; `lines` are their line numbers there, from 1; of
    several files they are counted on, see `JoinedFiles`.

    `checksum` is the SHA-256 of the pairs, so that a score can say what it was measured on.
    """

    name: str
    pairs: Sequence[Pair]
    lines: Sequence[int]
    report: FilterReport
    files: JoinedFiles | None = field(default=None, compare=False)
    checksum: str = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.pairs, StoredPairs | AbsentPairs):
            object.__setattr__(self, "checksum", self.pairs.checksum)
            return
        # Neither side holds a line break, so no two corpora are the same bytes.
        digest = hashlib.sha256()
        for pair in self.pairs:
            digest.update(f"{pair.source}\n{pair.target}\n".encode())
        object.__setattr__(self, "checksum", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.pairs)

    def renamed(self, name: str) -> "Corpus":
        """The same under another name, for the report as well."""
        return replace(self, name=name, report=replace(self.report, name=name))

    def remarked(self, remark: str) -> "Corpus":
        """The same with a remark more in its report."""
        report = replace(self.report, remarks=(*self.report.remarks, remark))
        return replace(self, report=report)

    @property
    def is_stored(self) -> bool:
        """Return True if its text is too large for memory."""
        return isinstance(self.pairs, StoredPairs | AbsentPairs)

    def part(
        self, indices: Sequence[int] | NDArray[np.integer[Any]], name: str, report: FilterReport
    ) -> "Corpus":
        """The pairs at these indices, which ascend, under another name and with a report of their
        own.
        """
        if self.is_stored:
            chosen = iter(indices)
            collector, place = PairCollector(), next(chosen, -1)
            for index, pair in enumerate(self.pairs):
                if index == place:
                    collector.add(self.lines[index], pair)
                    place = next(chosen, -1)
            pairs, lines = collector.finish()
        else:
            pairs = tuple(self.pairs[index] for index in indices)
            lines = tuple(self.lines[index] for index in indices)
        report = replace(report, name=name, kept=len(indices))
        return Corpus(name, pairs, lines, report, self.files)

    def fit(self, filters: FilterConfig) -> "Corpus":
        """Those of its pairs that pass the filters; the report has the others as well."""
        if self.is_stored and filters == filters.empties_alone:
            return self  # which has no empty ones: they are not read once more
        numbered = zip(self.lines, self.pairs, strict=True)
        found = filtered(numbered, filters, self.name, self.files)
        if found.stop is not None:
            raise found.stop
        all_left_out = (*self.report.left_out, *found.left_out)
        report = replace(self.report, kept=len(found.pairs), left_out=all_left_out)
        return Corpus(self.name, found.pairs, found.numbers, report, self.files)

    @property
    def sources(self) -> Sequence[str]:
        """The source side."""
        return self._side(0)

    @property
    def targets(self) -> Sequence[str]:
        """The target side: the references of a score."""
        return self._side(1)

    def _side(self, side: int) -> Sequence[str]:
        pairs = self.pairs.pairs if isinstance(self.pairs, AbsentPairs) else self.pairs
        if isinstance(pairs, StoredPairs):
            return Side(pairs, side)
        return tuple(pair[side] for pair in pairs)


SplitName = Literal["train", "valid", "test"]


@dataclass(frozen=True, slots=True)
class Splits:
    """What is trained on, what decides when to stop, and what is reported."""

    train: Corpus
    valid: Corpus
    test: Corpus

    def __str__(self) -> str:
        """The three reports, one to a line."""
        return "\n".join(str(corpus.report) for corpus in (self.train, self.valid, self.test))


# What stands in a text where another program could not read or write it.
_SIGNS_OF_DAMAGE = {
    "\0": "U+0000, as a file that was only half written does",
    "\ufffd": "U+FFFD, which stands for characters that were lost before",
}


def note_damage(texts: Iterable[str]) -> tuple[str, ...]:
    """What to remark of characters that a text seldom has; they are part of it all the same.

    Args:
        texts: Those that are kept.
    """
    counts = dict.fromkeys(_SIGNS_OF_DAMAGE, 0)
    for text in texts:
        for sign in counts:
            counts[sign] += sign in text
    return _remarks_of_damage(counts)


def _remarks_of_damage(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"WARNING: {count_noun(count, 'text')} with {_SIGNS_OF_DAMAGE[sign]}"
        for sign, count in counts.items()
        if count
    )


def corpus_of(
    pairs: Iterable[Pair],
    name: str,
    filters: FilterConfig | None = None,
    *,
    numbers: Iterable[int] | None = None,
    carriage_returns: int = 0,
    remarks: tuple[str, ...] = (),
) -> Corpus:
    """The fit ones among `pairs`.

    Args:
        numbers: The line on which each begins, None = from 1 on.
    """
    numbered = enumerate(pairs, 1) if numbers is None else zip(numbers, pairs, strict=True)
    found = filtered(numbered, filters or FilterConfig(), name)
    return found.corpus(name, carriage_returns, remarks)
