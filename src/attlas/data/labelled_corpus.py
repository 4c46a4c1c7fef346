"""A corpus of labelled texts: what they are, where they came from, what was left out."""

import hashlib
from dataclasses import dataclass, field, replace

from attlas.data.breaks import as_one_line
from attlas.data.filters import FilterReport, by_reason
from attlas.data.labelled import LabelledTexts
from attlas.data.pair import Place
from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class LabelledCorpus:
    """Texts, each as one line (see `as_one_line`), and their labels, in the order of their file.

    places: where each stands there. `checksum` is the SHA-256 of texts and labels, so that a score
    can say what it was measured on.
    """

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[Place, ...]
    report: FilterReport
    checksum: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for text, label in zip(self.texts, self.labels, strict=True):
            digest.update(f"{label}\n{text}\n".encode())
        object.__setattr__(self, "checksum", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def sources(self) -> tuple[str, ...]:
        """What is read: the texts, by the name that pairs have for it."""
        return self.texts

    @property
    def targets(self) -> tuple[str, ...]:
        """What is to come out: the labels, by the name that pairs have for it."""
        return self.labels

    def part(self, places: list[int], name: str, report: FilterReport) -> "LabelledCorpus":
        """The texts at these indices, under another name and with a report of their own."""
        return LabelledCorpus(
            name,
            tuple(self.texts[place] for place in places),
            tuple(self.labels[place] for place in places),
            tuple(self.places[place] for place in places),
            replace(report, name=name, kept=len(places)),
        )

    def remarked(self, remark: str) -> "LabelledCorpus":
        """The same with a remark more in its report."""
        report = replace(self.report, remarks=(*self.report.remarks, remark))
        return replace(self, report=report)


@dataclass(frozen=True, slots=True)
class LabelledSplits:
    """What is trained on, what decides when to stop, and what is reported."""

    train: LabelledCorpus
    valid: LabelledCorpus
    test: LabelledCorpus


def labelled_corpus_of(found: LabelledTexts) -> LabelledCorpus:
    """The texts that say something; one of white space alone is left out, and reported.

    Errors: `AttlasError` with its place for a text without a label, or with half a character.
    """
    kept: list[tuple[str, str, Place]] = []
    empty: list[tuple[Place, str]] = []
    for entry, place in zip(found.entries, found.places, strict=True):
        where = f"line {place}" if isinstance(place, int) else place
        text, label = as_one_line(entry.text), " ".join(entry.label.split())
        if not label:
            raise AttlasError(f"a label in {where} of {found.name}", "none", "give that text one")
        try:
            f"{label}{text}".encode()
        except UnicodeEncodeError as error:
            raise AttlasError(
                f"text in Unicode in {where} of {found.name}",
                f"half of a surrogate pair, {error.object[error.start]!r}",
                "write whole characters there",
            ) from None
        if text:
            kept.append((text, label, place))
        else:
            empty.append((place, "an empty text"))
    texts, labels, places = zip(*kept, strict=True) if kept else ((), (), ())
    report = FilterReport(
        found.name,
        len(found.entries),
        len(kept),
        left_out=by_reason(empty),
        example="text",
        remarks=found.remarks,
    )
    return LabelledCorpus(found.name, texts, labels, places, report)
