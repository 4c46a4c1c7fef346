"""Held-back validation data, paths of recipes, and the base of all sources of data."""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from attlas._text import count_noun
from attlas.config import Config
from attlas.data.corpus import Corpus, FilterReport, SplitName, Splits
from attlas.data.labelled import LabelledCorpus
from attlas.data.stored_pairs import Side
from attlas.errors import ConfigError, DataError

C = TypeVar("C", Corpus, LabelledCorpus)
Numbers = NDArray[np.integer[Any]]

_SIDES = {"pair": ("source", "translations"), "text": ("text", "labels")}  # read; to come out


def check_choice(size: int | float, valid: object, example: Literal["pair", "text"]) -> None:
    """Check that exactly one validation set is chosen: a held-back part, or `data.valid`.

    Args:
        size: `data.held_back`.
        valid: `data.valid`, None where it names nothing.

    Raises:
        AttlasError: For a size that is neither a number nor a share, for both and for neither.
    """
    if not (size >= 0 if isinstance(size, int) else 0.0 < size < 1.0):
        raise ConfigError(
            f"data.held_back: a whole number of {example}s, or a share between 0 and 1",
            str(size),
            "correct that value",
        )
    if (valid is None) == (size == 0):
        raise ConfigError(
            "data.valid, a file to choose the best checkpoint by, or data.held_back, so many "
            f"{example}s of data.train",
            "neither" if valid is None else "both",
            "set one of them, such as held_back = 0.1; held_back = 0 holds nothing back",
        )


def split_validation(corpus: C, size: int | float, seed: int) -> tuple[C, C]:
    """Split into the rest and the held-back part: `size` texts or pairs, or that share of them.

    Texts (of pairs: the sources) come in the order of the SHA-256 of (seed, text), so that the
    choice is the same whatever their order in the file. All copies of a text are on one side. A
    text is skipped if it has more copies than are still needed, or if no text with its label would
    be left for training.

    Raises:
        AttlasError: If nothing would be left to train on, or nothing to hold back.
    """
    example = corpus.report.example
    held_back_size = size if isinstance(size, int) else max(1, round(size * len(corpus)))
    if held_back_size >= len(corpus):
        raise ConfigError(
            f"fewer than the {count_noun(len(corpus), example)} of {corpus.name} to hold back",
            f"data.held_back = {size}",
            "lower it",
        )
    if isinstance(corpus, Corpus) and corpus.is_stored:
        return _parts(corpus, *_split_stored(corpus, held_back_size, seed), seed)
    groups: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(corpus.sources):
        groups[_words(text)].append(index)
    held_back: set[int] = set()
    remaining_of = Counter(corpus.labels) if isinstance(corpus, LabelledCorpus) else None
    for text in sorted(groups, key=lambda text: _hash_of(seed, text)):
        group = groups[text]
        if len(held_back) + len(group) > held_back_size:
            continue
        if remaining_of is not None:
            labels = Counter(corpus.targets[index] for index in group)
            if any(remaining_of[label] == count for label, count in labels.items()):
                continue
            remaining_of.subtract(labels)
        held_back.update(group)
    training = [index for index in range(len(corpus)) if index not in held_back]
    targets = corpus.targets
    split = sum(len({targets[index] for index in indices}) > 1 for indices in groups.values())
    return _parts(corpus, training, sorted(held_back), len(groups), split, seed)


def _parts(
    corpus: C,
    training: Sequence[int] | Numbers,
    held_back: Sequence[int] | Numbers,
    num_texts: int,
    split: int,
    seed: int,
) -> tuple[C, C]:
    """The two parts, with what is to be said of them.

    Args:
        num_texts: How many different ones there are.
        split: How many of them have several translations or labels.
    """
    example = corpus.report.example
    side, _ = _SIDES[example]
    if not len(held_back):
        raise DataError(
            f"different {side}s in {corpus.name}, some of which can be held back",
            f"{count_noun(num_texts, side)}, all of them needed to train on",
            "check the data, or name a file in data.valid",
        )
    notes: list[str] = [
        f"{count_noun(len(held_back), example)} held back",
        *_copies(corpus, num_texts, split),
    ]
    remaining = replace(corpus.report, remarks=(*corpus.report.remarks, *notes))
    report = FilterReport(corpus.name, len(corpus), len(held_back), example=example)
    return (
        corpus.part(training, f"{corpus.name} without the part held back", remaining),
        corpus.part(held_back, f"{corpus.name}, held back (seed {seed})", report),
    )


def _split_stored(corpus: Corpus, size: int, seed: int) -> tuple[Numbers, Numbers, int, int]:
    """The same choice for pairs whose text is too large for memory: which pairs are in each part,
    how many different sources there are, and how many of them have several translations.

    Sources are distinguished by 16 bytes of their hash, translations by 8 of theirs.
    """
    hashes = np.empty((3, len(corpus)), dtype=np.uint64)
    for index, (source, target) in enumerate(corpus.pairs):
        source_hash = _hash_of(seed, _words(source))
        hashes[:2, index] = np.frombuffer(source_hash[:16], dtype=">u8")
        hashes[2, index] = hash(target) & (2**64 - 1)
    order = np.lexsort((hashes[1], hashes[0]))
    sources, targets = hashes[:2, order], hashes[2, order]
    del hashes
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (sources[:, 1:] != sources[:, :-1]).any(axis=0)
    del sources
    begins = np.flatnonzero(is_first)
    # A source with several translations has two neighbours that differ.
    differs = np.zeros(len(order), dtype=np.bool_)
    differs[1:] = (targets[1:] != targets[:-1]) & ~is_first[1:]
    num_split = int(np.logical_or.reduceat(differs, begins).sum())
    counts, total = np.diff(begins, append=len(order)), 0
    in_training = np.ones(len(order), dtype=np.bool_)
    for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
        if total + count <= size:
            total += count
            in_training[order[begin : begin + count]] = False
        if total == size:
            break
    training, held_back = np.flatnonzero(in_training), np.flatnonzero(~in_training)
    return training, held_back, len(begins), num_split


def note_overlap(train: C, valid: C) -> C:
    """The validation set, with a remark if it contains texts (sources) of the training data: scores
    on those measure memorising.
    """
    valid_words = [_words(text) for text in valid.sources]
    looked_for = set(valid_words)  # of millions of training texts, only these need be stored
    train_words = _those_in(looked_for, train.sources)
    num_repeated = sum(words in train_words for words in valid_words)
    if not num_repeated:
        return valid
    side, _ = _SIDES[valid.report.example]
    return valid.remarked(f"{count_noun(num_repeated, side)} of it in the training data as well")


def _those_in(looked_for: set[str], texts: Sequence[str]) -> set[str]:
    """The keys of texts that are among those looked for."""
    if not isinstance(texts, Side):
        return looked_for & {_words(text) for text in texts}
    found: set[str] = set()
    for block in texts.blocks():
        found |= looked_for.intersection(block)  # a text is its own key, but for white space
        joined = "\n".join(("", *block, ""))
        if any(sign in joined for sign in ("  ", " \n", "\n ", *_OTHER_SPACES)):
            found |= looked_for.intersection(map(_words, block))
    return found


_OTHER_SPACES = tuple(
    character
    for character in map(chr, chain(range(0x100), range(0x1680, 0x3001)))
    if character.isspace() and character not in " \n"
)


def _copies(corpus: Corpus | LabelledCorpus, num_texts: int, split: int) -> list[str]:
    """The remark about repeated texts."""
    copies = len(corpus) - num_texts
    if not copies:
        return []
    side, target_side = _SIDES[corpus.report.example]
    notes = [f"{count_noun(copies, 'repetition')} of a {side} (all copies are in one part)"]
    return notes + ([f"{count_noun(split, side)} with several {target_side}"] if split else [])


def _words(text: str) -> str:
    """The key of a text: texts that differ only in white space are equal."""
    return " ".join(text.split())


def _hash_of(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed} {text}".encode()).digest()


# Paths of a recipe.


def resolved(base: Path, path: str) -> Path:
    """The path from `base`, the folder of the recipe file; ~ is the user's home, ~name another's.

    If there is no such user, the name is an ordinary one.
    """
    try:
        return base / Path(path).expanduser()
    except RuntimeError:
        return base / path


def resolved_name(base: Path, path: str) -> str:
    """The same as a run holds it.

    Raises:
        AttlasError: For one that is no UTF-8.
    """
    name = str(resolved(base, path))
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DataError(
            "data at a path that is UTF-8, because the run holds it",
            ascii(name),
            "rename the folder, or work in another one",
        ) from None
    return name


# What every source of data answers.


EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
"""So that `--set data.test=` says that there is none, for which TOML has no word."""


class DataSettings(Config, ABC):
    """Where sentence pairs come from; distinguished by `kind`."""

    @abstractmethod
    def corpus(self, split: SplitName) -> Corpus:
        """Read one split alone; a mistake in the data is an `AttlasError` that names its place."""

    def load(self) -> Splits:
        """Read the three splits."""
        train, valid = self.corpus("train"), self.corpus("valid")
        return Splits(train, note_overlap(train, valid), self.corpus("test"))

    @property
    def passing(self) -> bool:
        """Return True if a part of the data comes from the standard input, which can be read only
        once.
        """
        return False

    @property
    def size_on_disk(self) -> int:
        """The bytes of the files of the training data, where that is known."""
        return 0

    def fingerprint(self) -> dict[str, Any] | None:
        """What the training and the validation data depend on, as JSON: settings, and the SHA-256
        of each file. None where that is not known without reading them.
        """
        return None

    def resolved(self, base: Path) -> "DataSettings":
        """The same with relative paths taken from `base`, the folder of the recipe file."""
        return self
