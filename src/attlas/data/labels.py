"""The labels that a classifier tells apart, and its vocabularies."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attlas.config import parse_json, stored_bytes, utf8_text
from attlas.data.labelled_corpus import LabelledCorpus, alike
from attlas.data.vocabularies import Vocabularies
from attlas.data.vocabulary import Vocabulary
from attlas.errors import AttlasError, quoted

LABELS = "labels.json"
_FIRST = 12  # so many are named where there are more
_LETTERS = 40  # characters of a name that is longer


@dataclass(frozen=True, slots=True)
class Labels:
    """Label n is `names[n]`; the names are sorted."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str]) -> "Labels":
        """Those that occur."""
        return cls(tuple(sorted(set(labels))))

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        """The names, the first of them where they are many."""
        return _first(map(_shortened, self.names), len(self))

    def ids(self, corpus: LabelledCorpus) -> list[int]:
        """The number of the label of each text.

        Errors: `AttlasError` with its place for a label that is none of these.
        """
        numbers = {name: number for number, name in enumerate(self.names)}
        for label, place in zip(corpus.labels, corpus.places, strict=True):
            if label not in numbers:
                where = f"line {place}" if isinstance(place, int) else place
                near = [name for name in self.names if alike(name) == alike(label)]
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise AttlasError(
                    f"one of the labels {self} of the training data in {corpus.name}",
                    f"{_shortened(label)!r} in {where}",
                    f"{hint}correct it, train with examples of it, or name the right field "
                    "(data.label)",
                )
        return [numbers[label] for label in corpus.labels]


def labels_told(corpus: LabelledCorpus) -> str:
    """How many texts have each label, the commonest first: "labels: neg (11,250), pos (9)"."""
    counts = sorted(Counter(corpus.labels).items(), key=lambda entry: (-entry[1], entry[0]))
    named = (f"{_shortened(name)} ({count:,})" for name, count in counts)
    return f"labels: {_first(named, len(counts))}"


def _first(told: Iterable[str], count: int) -> str:
    """A list for people, whole or with the number of all."""
    more = [f"… ({count:,} in all)"] if count > _FIRST else []
    return ", ".join([*islice(told, _FIRST), *more])


def _shortened(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[:_LETTERS]}…"


@dataclass(frozen=True, slots=True)
class LabelledVocabularies:
    """What a classifier reads and what it answers."""

    text: Vocabulary
    labels: Labels

    def save(self, folder: Path) -> None:
        """Write `tokenizer.*`, as one joint vocabulary is, and `labels.json`: a list of names."""
        Vocabularies(self.text, self.text).save(folder)
        names = json.dumps(self.labels.names, ensure_ascii=False)
        (folder / LABELS).write_text(f"{names}\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "LabelledVocabularies":
        """Read what `save` wrote.

        Errors: `AttlasError` where the files are missing or damaged.
        """
        path = folder / LABELS
        try:
            names = parse_json(utf8_text(stored_bytes(path)))
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                "".join(names).encode()  # JSON can spell half a character, which nobody could print
        except (OSError, ValueError) as error:
            raise AttlasError(
                f"a list of labels at {path}", str(error), "restore that file"
            ) from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise AttlasError(f"a list of labels at {path}", quoted(names), "restore that file")
        if not names or len(set(names)) < len(names):
            came = "one that repeats" if names else "an empty one"
            raise AttlasError(f"a list of different labels at {path}", came, "restore that file")
        return cls(Vocabularies.load(folder).source, Labels(tuple(names)))
