"""Labelled texts as a table: comma- or tab-separated, with a header."""

from collections.abc import Iterable
from pathlib import Path

from attlas.data.amount import amount
from attlas.data.lines import read_lines
from attlas.data.pair import Labelled, Place
from attlas.data.table import TableFormat, quoted_header, quotes_told, table_rows
from attlas.errors import AttlasError


def table_entries(
    path: Path | str, text: str, label: str, form: TableFormat
) -> tuple[list[tuple[Place, Labelled]], tuple[str, ...]]:
    """Each row with the line on which it begins, and what to remark."""
    lines = read_lines(path)
    found = _entries(table_rows(lines, form), lines.name, (text, label), form)
    fields = (field for _, entry in found for field in entry)
    return found, quotes_told(fields, form)


def _entries(
    rows: Iterable[tuple[int, list[str]]],
    name: str,
    fields: tuple[str, str],
    form: TableFormat,
) -> list[tuple[Place, Labelled]]:
    """The two fields of each row below the header."""
    rest = iter(rows)
    first, header = next(rest, (1, []))
    text_at, label_at = (_place(field, header, name, form) for field in fields)
    found: list[tuple[Place, Labelled]] = []
    for number, row in rest:
        if len(row) != len(header):
            raise AttlasError(
                f"{amount(len(header), 'field')} in every row of {name}, as in its header "
                f"(line {first})",
                f"{amount(len(row), 'field')} in the row of line {number}",
                form.advice,
            )
        found.append((number, Labelled(row[text_at], row[label_at])))
    return found


def _place(wanted: str, header: list[str], name: str, form: TableFormat) -> int:
    if header.count(wanted) != 1:
        advice = "name the right field (data.text, data.label)"
        if quoted_header(header, form):
            advice = 'take the quotes off (data.quoting = "csv"), or name the field with them'
        elif len(header) == 1:
            advice = f"separate the fields by {form.separators}, or set data.separator"
        raise AttlasError(
            f"one field {wanted!r} in the header of {name}", f"the fields {header}", advice
        )
    return header.index(wanted)
