"""Labelled texts as a table: comma- or tab-separated, with a header."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attlas.data.amount import amount
from attlas.data.lines import read_lines
from attlas.data.pair import Labelled, Place
from attlas.errors import AttlasError

_LONGEST = 2**31 - 1  # characters of a field; Python's own limit is shorter than a long text
_QUOTE = '"'


def csv_entries(path: Path | str, text: str, label: str) -> list[tuple[Place, Labelled]]:
    """Each row with the line on which it begins. A quoted field may hold anything, and a quote in
    it is written twice.
    """
    lines = read_lines(path)
    with _any_length():
        rows = _quoted_rows([f"{line}\n" for line in lines.rows], lines.name)
        return _entries(
            rows,
            lines.name,
            (text, label),
            separator="commas",
            advice="mend that row; a field with a line break, a quote or a comma in it is put in "
            "quotes",
        )


def tsv_entries(
    path: Path | str, text: str, label: str
) -> tuple[list[tuple[Place, Labelled]], tuple[str, ...]]:
    """Each row with its line, and what to remark. A tab ends a field, a line feed ends a row, and
    a quotation mark is a character like any other.
    """
    lines = read_lines(path)
    found = _entries(
        enumerate((line.split("\t") for line in lines.rows), 1),
        lines.name,
        (text, label),
        separator="tabs",
        advice="mend that row; no field of a TSV holds a tab or a line break, which a CSV may, in "
        "quotes",
    )
    quoted = sum(_is_quoted(entry.text) for _, entry in found)
    remark = f"{amount(quoted, 'text')} in quotation marks, which are part of the text in a TSV"
    return found, (remark,) if quoted else ()


def _entries(
    rows: Iterable[tuple[int, list[str]]],
    name: str,
    fields: tuple[str, str],
    separator: str,
    advice: str,
) -> list[tuple[Place, Labelled]]:
    """The two fields of each row below the header; advice: for a row of another length."""
    rest = iter(rows)
    first, header = next(rest, (1, []))
    text_at, label_at = (_place(field, header, name, separator) for field in fields)
    found: list[tuple[Place, Labelled]] = []
    for number, row in rest:
        if len(row) != len(header):
            raise AttlasError(
                f"{amount(len(header), 'field')} in every row of {name}, as in its header "
                f"(line {first})",
                f"{amount(len(row), 'field')} in the row of line {number}",
                advice,
            )
        found.append((number, Labelled(row[text_at], row[label_at])))
    return found


def _quoted_rows(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Each row of a CSV, and the number of the line on which it begins."""
    reader = csv.reader(lines, strict=True)
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


def _place(wanted: str, header: list[str], name: str, separator: str) -> int:
    if header.count(wanted) != 1:
        raise AttlasError(
            f"one field {wanted!r} in the header of {name}",
            f"the fields {header}",
            f"separate the fields by {separator}"
            if len(header) == 1
            else "name the right field (data.text, data.label)",
        )
    return header.index(wanted)


def _is_quoted(text: str) -> bool:
    """Whether a reader of CSV would take quotes off."""
    return len(text) > 1 and text.startswith(_QUOTE) and text.endswith(_QUOTE)


@contextmanager
def _any_length() -> Iterator[None]:
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
