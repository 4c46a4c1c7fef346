"""Files of links: one line a sentence, "i-j" a link, counted from a number that the reader says."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from attlas.analysis.alignment.symmetrisation import Links
from attlas.data.lines import read_lines
from attlas.decoding.alignment import Link, pharaoh
from attlas.errors import AttlasError, quoted, unwritable

T = TypeVar("T")
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Reference:
    """The links that people drew between two sentences; what is sure is possible too."""

    sure: Links
    possible: Links


def parse_links(line: str, *, first: int) -> Links:
    """ "0-0 1-2" → {(0, 0), (1, 2)}, words counted from 0.

    first: the number of the first word in the line, 0 or 1. No line tells it, so it has no default.
    Errors: `AttlasError` for what is no link, for a possible one, for a number below `first`.
    """
    marked = _parsed(line, first)
    possible = [f"{i + first}p{j + first}" for (i, j), mark in marked if mark == "p"]
    if possible:
        raise AttlasError(
            "links i-j alone",
            f"{quoted(possible[0])}, which is but possible",
            "read a reference with `read_reference`",
        )
    return frozenset(link for link, _ in marked)


def parse_reference(line: str, *, first: int) -> Reference:
    """ "1-1 2p3" → sure {(0, 0)} and possible {(0, 0), (1, 2)} with first=1. Errors: as above."""
    marked = _parsed(line, first)
    sure = frozenset(link for link, mark in marked if mark == "-")
    return Reference(sure, frozenset(link for link, _ in marked))


def read_links(path: Path | str, *, first: int) -> tuple[Links, ...]:
    """The links of each line; of a file that names the target first, `flipped` each.

    Errors: as `parse_links`, with file and line; as `read_lines`.
    """
    return tuple(_of_each(path, lambda line: parse_links(line, first=first)))


def read_reference(path: Path | str, *, first: int) -> tuple[Reference, ...]:
    """The sure links "i-j" and the possible ones "ipj" of each line. Errors: as `read_links`."""
    return tuple(_of_each(path, lambda line: parse_reference(line, first=first)))


def write_links(path: Path | str, sentences: Sequence[Iterable[Link]], *, first: int) -> None:
    """One line for each sentence, its links in order, counted from `first`.

    Errors: `AttlasError` for another first than 0 and 1, and where the file cannot be written.
    """
    _check_first(first)
    lines = [
        pharaoh([(i + first, j + first) for i, j in sorted(set(links))]) for links in sentences
    ]
    try:
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    except OSError as error:
        raise unwritable(path, error) from None


def _parsed(line: str, first: int) -> list[tuple[Link, str]]:
    _check_first(first)
    found = []
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None:
            raise AttlasError(
                "links such as 3-4, or 3p4 in a reference", quoted(text), "part them by blanks"
            )
        source, target = int(match[1]) - first, int(match[3]) - first
        if min(source, target) < 0:
            raise AttlasError(
                f"words counted from {first}",
                quoted(text),
                "where this file counts from 0, pass first=0; where 0 stands for no word at all, "
                "leave such links out of it",
            )
        found.append(((source, target), match[2]))
    return found


def _of_each(path: Path | str, parse: Callable[[str], T]) -> Iterator[T]:
    lines = read_lines(path)
    for number, line in enumerate(lines.texts, 1):
        try:
            yield parse(line)
        except AttlasError as error:
            where = f"{error.came} in {lines.name}, line {number:,}"
            raise AttlasError(error.wanted, where, error.do) from None


def _check_first(first: int) -> None:
    if first not in (0, 1):
        raise AttlasError("a first word that is number 0 or 1", str(first), "say what the file has")
