"""The two vocabularies of a translation, which may be one."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from attlas._files import parse_json, stored_bytes, utf8_text
from attlas.config import Config
from attlas.data.labelled import LabelledCorpus, label_key
from attlas.data.normalization import Normalization
from attlas.data.stored_pairs import Pair, StoredPairs
from attlas.data.subwords import Subwords, train_subwords
from attlas.data.vocabulary import (
    MOST,
    SPECIAL,
    Characters,
    Vocabulary,
    Words,
    check_symbols,
    load_list_vocabulary,
)
from attlas.data.word_counts import Parted
from attlas.errors import CheckpointError, ConfigError, DataError, quoted


class VocabularyConfig(Config):
    """How text becomes tokens.

    Text is brought into the form `normalization` before it is read, in training and in use. "nfc"
    makes one of é and of e with U+0301. "nfkc" also makes one of compatible characters (ﬁ and fi,
    Ａ and A). What is written is in that form, too. Subwords are built from all training texts, or
    from a sample of very many; a message says so.
    """

    kind: Literal["bpe", "unigram", "words", "characters"] = "bpe"
    """Subwords ("bpe", "unigram"), words or characters."""
    size: int = Field(default=8000, gt=len(SPECIAL), le=MOST)
    """The most ids of a vocabulary, special ones included. Of subwords there are at least 260, and
    one for each character of the texts.
    """
    shared: bool = True
    """Whether both languages share one vocabulary."""
    sampling: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Above 0, training segments words at random: BPE-dropout, or samples of the unigram model;
    0.1 is usual.
    """
    normalization: Normalization = "none"
    """The form of Unicode of all text: as it is written ("none"), "nfc" or "nfkc"."""
    user_defined_symbols: tuple[str, ...] = ()
    """Placeholders and tags, such as "<num>", each of which is one token wherever it stands, and
    comes back as it was. Of kind "words": where it is a word.
    """

    @field_validator("size", mode="before")
    @classmethod
    def _possible(cls, size: Any) -> Any:
        if isinstance(size, int) and not len(SPECIAL) < size <= MOST:
            raise ConfigError(
                f"vocabulary.size from {len(SPECIAL) + 1} to {MOST:,}; of subwords at least "
                f"{len(SPECIAL) + 256}, and one for each character of the texts",
                str(size),
                "correct that value",
            )
        return size

    @model_validator(mode="after")
    def _symbols_of_their_own(self) -> "VocabularyConfig":
        check_symbols(self.user_defined_symbols, self.normalization)
        return self

    @model_validator(mode="after")
    def _sampling_of_subwords(self) -> "VocabularyConfig":
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ConfigError(
                'a vocabulary of kind "bpe" or "unigram" for vocabulary.sampling',
                f'kind = "{self.kind}"',
                "set sampling = 0, or another kind",
            )
        return self


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The vocabulary of each side; the same object twice where they are joint."""

    source: Vocabulary
    target: Vocabulary

    @property
    def shared(self) -> bool:
        """Return True if both sides have one vocabulary."""
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write `tokenizer.*`, or `source.*` and `target.*`: .model = sentencepiece, .json = list.

        What an earlier save left under the other names is taken away.
        """
        folder.mkdir(parents=True, exist_ok=True)
        named_vocabularies = {"tokenizer": self.source}
        if not self.shared:
            named_vocabularies = {"source": self.source, "target": self.target}
        for name in vocabulary_names():
            (folder / name).unlink(missing_ok=True)
        for name, vocabulary in named_vocabularies.items():
            vocabulary.save((folder / name).with_suffix(vocabulary.suffix))

    @classmethod
    def load(cls, folder: Path) -> "Vocabularies":
        """Read what `save` wrote.

        Raises:
            AttlasError: If the files are missing or damaged.
        """
        shared = _vocabulary_file(folder, "tokenizer")
        if shared:
            vocabulary = load_vocabulary(shared)
            return cls(vocabulary, vocabulary)
        source, target = _vocabulary_file(folder, "source"), _vocabulary_file(folder, "target")
        if source and target:
            return cls(load_vocabulary(source), load_vocabulary(target))
        raise CheckpointError(
            f"tokenizer.*, or source.* and target.*, in {folder}",
            f"{source.name} alone" if source else f"{target.name} alone" if target else "neither",
            "pass the folder of a run that attlas trained",
        )


def build_vocabularies(
    config: VocabularyConfig, pairs: Sequence[Pair], processes: int = 1
) -> Vocabularies:
    """Build from training pairs, deterministically.

    Args:
        processes: That share the work, on Linux, where the text lies in a file.

    Raises:
        AttlasError: If there is no text, or `size` is too small for its characters.
    """
    if not isinstance(pairs, StoredPairs):
        processes = 1  # the caller's own process may have threads and devices
    sources, targets = _parts(pairs, 0), _parts(pairs, 1)
    if config.shared:
        texts = Parted([*sources, *targets])  # all of one side before the other
        vocabulary = build_vocabulary(config, texts, "vocabulary", processes)
        return Vocabularies(vocabulary, vocabulary)
    return Vocabularies(
        build_vocabulary(config, Parted(sources), "source vocabulary", processes),
        build_vocabulary(config, Parted(targets), "target vocabulary", processes),
    )


def _parts(pairs: Sequence[Pair], side: int) -> "list[_Part]":
    size = _PART if isinstance(pairs, StoredPairs) else max(1, len(pairs))
    return [_Part(pairs, side, begin, begin + size) for begin in range(0, len(pairs), size)]


_PART = 2**17  # pairs, a multiple of 64


class _Part(Iterable[str]):
    """One side of some pairs: read again each time, and never held."""

    def __init__(self, pairs: Sequence[Pair], side: int, begin: int, end: int) -> None:
        self._pairs, self._side, self._range = pairs, side, (begin, min(end, len(pairs)))

    def __iter__(self) -> Iterator[str]:
        if not isinstance(self._pairs, StoredPairs):
            return map(itemgetter(self._side), self._pairs)
        blocks = self._pairs.blocks(*self._range)
        return chain.from_iterable(block[self._side] for block in blocks)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read one vocabulary: .model = sentencepiece, .json = a list of words or characters.

    Raises:
        AttlasError: For another kind of file, or one that is missing or damaged.
    """
    if path.suffix not in _LOADERS:
        raise CheckpointError("a vocabulary ending in .model or .json", str(path), "check the path")
    try:
        return _LOADERS[path.suffix](path)
    except OSError as error:
        raise CheckpointError(
            f"a vocabulary at {path}", error.strerror or str(error), "check the path"
        ) from None


def vocabulary_names() -> tuple[str, ...]:
    """The names that the file of a vocabulary may have in a folder."""
    return tuple(f"{name}{suffix}" for name in _NAMES for suffix in _LOADERS)


_NAMES = ("tokenizer", "source", "target")
_LOADERS: dict[str, Callable[[Path], Vocabulary]] = {
    Subwords.suffix: Subwords.load,
    Words.suffix: load_list_vocabulary,
}


def build_vocabulary(
    config: VocabularyConfig, texts: Iterable[str], name: str, processes: int = 1
) -> Vocabulary:
    """One vocabulary of these texts; `name` names it in errors."""
    form, symbols = config.normalization, config.user_defined_symbols
    match config.kind:
        case "words":
            return Words.built(texts, config.size, name, form, symbols)
        case "characters":
            return Characters.built(texts, config.size, name, form, symbols)
        case kind:
            return train_subwords(texts, kind, config.size, name, form, symbols, processes)


def _vocabulary_file(folder: Path, name: str) -> Path | None:
    candidates = ((folder / name).with_suffix(suffix) for suffix in _LOADERS)
    return next((path for path in candidates if path.is_file()), None)


# The labels that a classifier distinguishes, and its vocabularies.


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

        Raises:
            AttlasError: With its place for a label that is none of these.
        """
        numbers = {name: number for number, name in enumerate(self.names)}
        for label, file_location in zip(corpus.labels, corpus.places, strict=True):
            if label not in numbers:
                location = (
                    f"line {file_location}" if isinstance(file_location, int) else file_location
                )
                similar_labels = [
                    name for name in self.names if label_key(name) == label_key(label)
                ]
                hint = f"did you mean {similar_labels[0]!r}? " if similar_labels else ""
                raise DataError(
                    f"one of the labels {self} of the training data in {corpus.name}",
                    f"{_shortened(label)!r} in {location}",
                    f"{hint}correct it, train with examples of it, or name the right field "
                    "(data.label)",
                )
        return [numbers[label] for label in corpus.labels]


def describe_labels(corpus: LabelledCorpus) -> str:
    """How many texts have each label, the commonest first: "labels: neg (11,250), pos (9)"."""
    counts = sorted(Counter(corpus.labels).items(), key=lambda entry: (-entry[1], entry[0]))
    described = (f"{_shortened(name)} ({count:,})" for name, count in counts)
    return f"labels: {_first(described, len(counts))}"


def _first(names: Iterable[str], count: int) -> str:
    """A list for people, whole or with the number of all."""
    more = [f"… ({count:,} in all)"] if count > _FIRST else []
    return ", ".join([*islice(names, _FIRST), *more])


def _shortened(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[:_LETTERS]}…"


@dataclass(frozen=True, slots=True)
class LabelledVocabularies:
    """What a classifier reads and what it answers."""

    text: Vocabulary
    labels: Labels

    def save(self, folder: Path) -> None:
        """Write `tokenizer.*`, as one shared vocabulary is, and `labels.json`: a list of names."""
        Vocabularies(self.text, self.text).save(folder)
        names = json.dumps(self.labels.names, ensure_ascii=False)
        (folder / LABELS).write_text(f"{names}\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, folder: Path) -> "LabelledVocabularies":
        """Read what `save` wrote.

        Raises:
            AttlasError: If the files are missing or damaged.
        """
        path = folder / LABELS
        try:
            names = parse_json(utf8_text(stored_bytes(path)))
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                "".join(names).encode()  # JSON can spell half a character, which cannot be printed
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"a list of labels at {path}", str(error), "restore that file"
            ) from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise CheckpointError(f"a list of labels at {path}", quoted(names), "restore that file")
        if not names or len(set(names)) < len(names):
            got = "one that repeats" if names else "an empty one"
            raise CheckpointError(f"a list of different labels at {path}", got, "restore that file")
        return cls(Vocabularies.load(folder).source, Labels(tuple(names)))
