"""A corpus: sentence pairs, where they came from, and an account of what was left out."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from pydantic import Field

from attlas._text import count_noun
from attlas.config import Config
from attlas.errors import DataError

# What a line of data is: a sentence and its translation, or a text and its label.


OnFault = Literal["error", "skip"]
"""What to do with what is not fit: stop there, or leave it out and count it."""

Place = int | str
"""Where something stands: the number of a line, from 1, or the name of a file."""


class Pair(NamedTuple):
    """A sentence and its translation; neither holds a line break."""

    source: str
    target: str


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


def by_reason(faults: Iterable[tuple[Place, str]]) -> tuple[Fault, ...]:
    """Group (place, reason) by reason, in the order in which the reasons came up."""
    lines: dict[str, list[Place]] = {}
    for number, reason in faults:
        lines.setdefault(reason, []).append(number)
    return tuple(Fault(reason, len(all_), tuple(all_[:_NAMED])) for reason, all_ in lines.items())


def filtered(
    pairs: Sequence[Pair], lines: Iterable[int], filters: FilterConfig, name: str
) -> tuple[list[Pair], list[int], tuple[Fault, ...]]:
    """The pairs that are fit, their numbers among `lines`, and what was left out.

    Raises:
        DataError: With the line, for a fault that the settings call an error.
    """
    kept_pairs: list[Pair] = []
    kept_indices: list[int] = []
    faults: list[tuple[Place, str]] = []
    for number, pair in zip(lines, pairs, strict=True):
        fault = LINE_BREAK if "\n" in pair.source + pair.target else filters.fault(pair)
        if fault is None:
            kept_pairs.append(pair)
            kept_indices.append(number)
        elif filters.stops(fault):
            setting = "empty" if fault in (EMPTY_SOURCE, EMPTY_TARGET) else "unfit"
            raise DataError(
                f"fit sentence pairs in {name}",
                f"line {number} with {fault}",
                f'correct that line, or set data.filters.{setting} = "skip"',
            )
        else:
            faults.append((number, fault))
    return kept_pairs, kept_indices, by_reason(faults)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentence pairs in the order of their file; `lines` are their line numbers there, from 1.

    `checksum` is the SHA-256 of the pairs, so that a score can say what it was measured on.
    """

    name: str
    pairs: tuple[Pair, ...]
    lines: tuple[int, ...]
    report: FilterReport
    checksum: str = field(init=False)

    def __post_init__(self) -> None:
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

    def part(self, indices: list[int], name: str, report: FilterReport) -> "Corpus":
        """The pairs at these indices, under another name and with a report of their own."""
        return Corpus(
            name,
            tuple(self.pairs[index] for index in indices),
            tuple(self.lines[index] for index in indices),
            replace(report, name=name, kept=len(indices)),
        )

    def fit(self, filters: FilterConfig) -> "Corpus":
        """Those of its pairs that pass the filters; the report has the others as well."""
        pairs, lines, skipped = filtered(self.pairs, self.lines, filters, self.name)
        all_left_out = (*self.report.left_out, *skipped)
        report = replace(self.report, kept=len(pairs), left_out=all_left_out)
        return Corpus(self.name, tuple(pairs), tuple(lines), report)

    @property
    def sources(self) -> tuple[str, ...]:
        """The source side."""
        return tuple(pair.source for pair in self.pairs)

    @property
    def targets(self) -> tuple[str, ...]:
        """The target side: the references of a score."""
        return tuple(pair.target for pair in self.pairs)


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
    return tuple(
        f"WARNING: {count_noun(count, 'text')} with {_SIGNS_OF_DAMAGE[sign]}"
        for sign, count in counts.items()
        if count
    )


def corpus_of(
    pairs: Sequence[Pair],
    name: str,
    filters: FilterConfig | None = None,
    *,
    numbers: Sequence[int] | None = None,
    carriage_returns: int = 0,
    remarks: tuple[str, ...] = (),
) -> Corpus:
    """The fit ones among `pairs`.

    Args:
        numbers: The line on which each begins, None = from 1 on.
    """
    numbers = range(1, len(pairs) + 1) if numbers is None else numbers
    kept_pairs, lines, skipped = filtered(pairs, numbers, filters or FilterConfig(), name)
    report = FilterReport(
        name,
        len(pairs),
        len(kept_pairs),
        skipped,
        carriage_returns=carriage_returns,
        remarks=(*remarks, *note_damage(text for pair in kept_pairs for text in pair)),
    )
    return Corpus(name, tuple(kept_pairs), tuple(lines), report)
