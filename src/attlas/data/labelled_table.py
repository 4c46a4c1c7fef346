"""Labelled texts as a table: comma- or tab-separated, with a header."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attlas.data.amount import amount
from attlas.data.lines import read_lines
from attlas.data.pair import Labelled, Place
from attlas.errors import AttlasError

_LONGEST = 2**31 - 1  # characters of a field; Python's own limit is shorter than a long text


def table_entries(
    path: Path | str, text: str, label: str, delimiter: str
) -> list[tuple[Place, Labelled]]:
    """Each row with the line on which it begins. A quoted field may hold anything, and a quote in
    it is written twice.
    """
    lines = read_lines(path)
    with _any_length():
        rows = _rows([f"{line}\n" for line in lines.texts], delimiter, lines.name)
        first, header = next(rows, (1, []))
        text_at, label_at = (_place(name, header, lines.name) for name in (text, label))
        found: list[tuple[Place, Labelled]] = []
        for number, row in rows:
            if len(row) != len(header):
                raise AttlasError(
                    f"{amount(len(header), 'field')} in every row of {lines.name}, as in its "
                    f"header (line {first})",
                    f"{amount(len(row), 'field')} in the row of line {number}",
                    "mend that row; a field with a line break, a quote or a separator in it is "
                    "put in quotes",
                )
            found.append((number, Labelled(row[text_at], row[label_at])))
    return found


def _rows(lines: list[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each row, and the number of the line on which it begins."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise AttlasError(
                f"a whole row in line {number} of {name}",
                str(error),
                "put such a field in quotes, and write each quote in it twice",
            ) from None
        yield number, row


def _place(wanted: str, header: list[str], name: str) -> int:
    if header.count(wanted) != 1:
        raise AttlasError(
            f"one field {wanted!r} in the header of {name}",
            f"the fields {header}",
            "name the right field (data.text, data.label)",
        )
    return header.index(wanted)


@contextmanager
def _any_length() -> Iterator[None]:
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
