"""Treebanks: sentences with the head and the relation of every word, in CoNLL-U files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attlas.data.lines import shown_path, stream_lines
from attlas.errors import AttlasError, DataError, quoted

_COLUMNS = 10
_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"(0|[1-9][0-9]*)\.[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Word:
    """A syntactic word.

    Args:
        head: The number of its head, from 1, or 0 for the root.
    """

    form: str
    lemma: str
    part_of_speech: str
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class Multiword:
    """A token of the text that is several words, "don't" of "do" and "n't": numbers from 1."""

    form: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence.

    Args:
        multiwords: Its tokens that are several of them.
        comments: Those of the form `# name = value`, such as `sent_id` and `text`.
    """

    words: tuple[Word, ...]
    multiwords: tuple[Multiword, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def forms(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(word.form for word in self.words)


def read_conllu(path: Path | str) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, plain or gzipped, one by one; "-" is the standard input.

    Empty nodes (`8.1`), which belong to the enhanced graph alone, are left out, and no number
    changes by that. https://universaldependencies.org/format.html

    Raises:
        DataError: With file and line, for another number of columns, for numbers out of order or
            beyond the sentence, for a word without a head, and as `stream_lines`.
    """
    name = shown_path(path)
    block: list[tuple[int, str]] = []
    for number, line in enumerate(stream_lines(path), 1):
        if line:
            block.append((number, line))
        elif block:
            yield from _sentences(block, name)
            block = []
    if block:
        yield from _sentences(block, name)


def _sentences(block: list[tuple[int, str]], name: str) -> Iterator[Sentence]:
    """The sentence of these lines; none where they are comments alone."""
    comments: dict[str, str] = {}
    words: list[Word] = []
    multiwords: list[Multiword] = []
    line_numbers: list[int] = []
    for number, line in block:
        if line.startswith("#"):
            key, equals, value = line[1:].partition("=")
            comments |= {key.strip(): value.strip()} if equals else {}
            continue
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise _wrong(f"{_COLUMNS} columns, separated by tabs", f"{len(columns)}", name, number)
        if _EMPTY.fullmatch(columns[0]):
            continue
        if word_range := _RANGE.fullmatch(columns[0]):
            span = int(word_range[1]), int(word_range[2])
            multiwords.append(_multiword(columns[1], span, len(words) + 1, name, number))
            continue
        words.append(_word(columns, len(words) + 1, name, number))
        line_numbers.append(number)
    for number, word in zip(line_numbers, words, strict=True):
        if word.head > len(words):
            raise _wrong(f"a head from 0 to {len(words)}", str(word.head), name, number)
    for part in multiwords:
        if part.last > len(words):
            expected = f"a token of the words 1 to {len(words)}"
            raise _wrong(expected, f"{part.first}-{part.last}", name, block[-1][0])
    if words:
        yield Sentence(tuple(words), tuple(multiwords), comments)


def _word(columns: list[str], expected_number: int, name: str, number: int) -> Word:
    if not _WORD.fullmatch(columns[0]) or int(columns[0]) != expected_number:
        raise _wrong(f"the word number {expected_number}", quoted(columns[0]), name, number)
    head = columns[6]
    if head != "0" and not _WORD.fullmatch(head):
        raise _wrong("the number of the head, 0 for the root", quoted(head), name, number)
    if int(head) == expected_number:
        raise _wrong("a head that is another word", f"{head}, the word itself", name, number)
    return Word(columns[1], columns[2], columns[3], int(head), columns[7])


def _multiword(
    form: str, span: tuple[int, int], expected_number: int, name: str, number: int
) -> Multiword:
    first, last = span
    if not expected_number == first < last:
        expected = f"a token that begins at the word {expected_number}, of several words"
        raise _wrong(expected, f"{first}-{last}", name, number)
    return Multiword(form, first, last)


def _wrong(expected: str, got: str, name: str, number: int) -> AttlasError:
    return DataError(
        f"{expected}, in line {number} of {name}", got, "give a whole treebank in CoNLL-U"
    )
