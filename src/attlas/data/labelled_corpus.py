"""A corpus of labelled texts: what they are, where they came from, what was left out."""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from attlas.data.breaks import as_one_line
from attlas.data.filters import FilterReport, by_reason
from attlas.data.labelled import LabelledTexts
from attlas.data.labelled_json import SKIPPED
from attlas.data.pair import OnFault, Place
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


_AROUND = re.compile(r"^[\s\u200b\u2060\ufeff]+|[\s\u200b\u2060\ufeff]+$")  # some have no width


def labelled_corpus_of(found: LabelledTexts, unlabelled: OnFault = "error") -> LabelledCorpus:
    """The texts that say something; one of white space alone is left out, and reported.

    White space around a label is none of it. unlabelled: what to do with a text without a label;
    "skip" leaves it out, and reports it. Labels that differ in case or in Unicode form alone stay
    different, and are told.
    Errors: `AttlasError` with its place for a text without a label, or with half a character.
    """
    kept: list[tuple[str, str, Place]] = []
    left_out: list[tuple[Place, str]] = []
    without = [
        place
        for entry, place in zip(found.entries, found.places, strict=True)
        if not _trimmed(entry.label)
    ]
    if without and unlabelled == "error":
        others = f"none, nor in {len(without) - 1:,} others" if without[1:] else "none"
        raise AttlasError(
            f"a label in {_where(without[0])} of {found.name}",
            others,
            f"give each text one; {SKIPPED}",
        )
    for entry, place in zip(found.entries, found.places, strict=True):
        text, label = as_one_line(entry.text), _trimmed(entry.label)
        try:
            f"{label}{text}".encode()
        except UnicodeEncodeError as error:
            raise AttlasError(
                f"text in Unicode in {_where(place)} of {found.name}",
                f"half of a surrogate pair, {error.object[error.start]!r}",
                "write whole characters there",
            ) from None
        if not label:
            left_out.append((place, "no label"))
        elif text:
            kept.append((text, label, place))
        else:
            left_out.append((place, "an empty text"))
    texts, labels, places = zip(*kept, strict=True) if kept else ((), (), ())
    report = FilterReport(
        found.name,
        len(found.entries),
        len(kept),
        left_out=by_reason(left_out),
        example="text",
        remarks=(*found.remarks, *_alike_told(labels)),
    )
    return LabelledCorpus(found.name, texts, labels, places, report)


def alike(label: str) -> str:
    """What labels have in common that differ in case, in width, or in how they are composed."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())


def _alike_told(labels: Iterable[str]) -> tuple[str, ...]:
    """What to remark of labels that are probably meant to be one."""
    counts = Counter(labels)
    groups: dict[str, list[str]] = defaultdict(list)
    for label in sorted(counts):
        groups[alike(label)].append(label)
    return tuple(
        "WARNING: the labels "
        + " and ".join(f"{_seen(label, group)} ({counts[label]:,})" for label in group)
        + " differ in case or in Unicode form alone, and count as different: write them alike if "
        "they are one"
        for group in groups.values()
        if len(group) > 1
    )


def _seen(label: str, group: Sequence[str]) -> str:
    """In quotes; spelt out where others of the group would look the same."""
    composed = {unicodedata.normalize("NFC", one) for one in group}
    return repr(label) if len(composed) == len(group) else ascii(label)


def _trimmed(label: str) -> str:
    """With single spaces inside and nothing around it that cannot be seen."""
    return " ".join(_AROUND.sub("", label).split())


def _where(place: Place) -> str:
    return f"line {place}" if isinstance(place, int) else place
