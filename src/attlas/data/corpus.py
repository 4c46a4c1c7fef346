"""A corpus: sentence pairs, where they came from, and an account of what was left out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from attlas.data.filters import FilterConfig, FilterReport, filtered
from attlas.data.pair import Pair


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

    def part(self, places: list[int], name: str, report: FilterReport) -> "Corpus":
        """The pairs at these indices, under another name and with a report of their own."""
        return Corpus(
            name,
            tuple(self.pairs[place] for place in places),
            tuple(self.lines[place] for place in places),
            replace(report, name=name, kept=len(places)),
        )

    def fit(self, filters: FilterConfig) -> "Corpus":
        """Those of its pairs that pass the filters; the report tells of the others as well."""
        kept, lines, left_out = filtered(self.pairs, self.lines, filters, self.name)
        all_left_out = (*self.report.left_out, *left_out)
        report = replace(self.report, kept=len(kept), left_out=all_left_out)
        return Corpus(self.name, tuple(kept), tuple(lines), report)

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


def corpus_of(
    pairs: Sequence[Pair],
    name: str,
    filters: FilterConfig | None = None,
    *,
    numbers: Sequence[int] | None = None,
    carriage_returns: int = 0,
    remarks: tuple[str, ...] = (),
) -> Corpus:
    """The fit ones among `pairs`; numbers: the line on which each begins, None = from 1 on."""
    numbers = range(1, len(pairs) + 1) if numbers is None else numbers
    kept, lines, left_out = filtered(pairs, numbers, filters or FilterConfig(), name)
    report = FilterReport(
        name,
        len(pairs),
        len(kept),
        left_out,
        carriage_returns=carriage_returns,
        remarks=remarks,
    )
    return Corpus(name, tuple(kept), tuple(lines), report)
