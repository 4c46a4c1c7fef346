"""Tables: rows of fields that a tab, a comma or another character separates."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from attlas._text import count_noun
from attlas.data.lines import Lines, StreamedLines
from attlas.errors import ConfigError, DataError

Quoting = Literal["none", "csv"]
"""Whether a field in quotation marks may hold anything ("csv", RFC 4180), or a quotation mark is a
character like any other ("none")."""

_LONGEST = 2**31 - 1  # characters of a field; Python's own limit is shorter than a long text
_QUOTE = '"'
_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "spaces"}


def _one_character(separator: str | None) -> str | None:
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(
            "data.separator: one character, which is no quotation mark and ends no line",
            repr(separator),
            'write that character, a tab as "\\t" in quotes',
        )
    return separator


Separator = Annotated[str, AfterValidator(_one_character)]


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How a row is divided.

    Args:
        assumed: Whether the quoting goes by the name of the file alone.
    """

    separator: str
    quoting: Quoting
    assumed: bool

    @classmethod
    def of(
        cls, path: Path | str, separator: str | None = None, quoting: Quoting | None = None
    ) -> "TableFormat":
        """Check that of this file; None = by its name: a CSV (.csv, .csv.gz) has commas and quotes,
        any other table has tabs and no quotes.
        """
        is_csv = data_suffix(path) == ".csv"
        return cls(
            _one_character(separator) or ("," if is_csv else "\t"),
            quoting or ("csv" if is_csv else "none"),
            quoting is None,
        )

    @property
    def separators(self) -> str:
        """In words: "tabs"."""
        return _NAMES.get(self.separator, repr(self.separator))

    @property
    def advice(self) -> str:
        """What to do where a row has another number of fields than the first."""
        if self.quoting == "csv":
            return (
                "correct that row; a field with a line break, a quote or "
                f"{'a comma' if self.separator == ',' else repr(self.separator)} in it is put in "
                "quotes"
            )
        separator = "a tab" if self.separator == "\t" else repr(self.separator)
        return (
            f"correct that row; no field of it holds {separator} or a line break, which a CSV "
            "may, in "
            'quotes (data.quoting = "csv")'
        )


def data_suffix(path: Path | str) -> str:
    """What the name of a file ends in, in small letters and without .gz: ".csv"."""
    return Path(str(path).lower().removesuffix(".gz")).suffix


def table_rows(lines: Lines | StreamedLines, form: TableFormat) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of the line on which it begins; blank lines at the end are none.

    Raises:
        AttlasError: With its line for a field whose quotes are not closed, or not doubled.
    """
    if form.quoting == "none":
        return enumerate((line.split(form.separator) for line in lines.rows), 1)
    return _quoted_rows((f"{line}\n" for line in lines.rows), lines.name, form.separator)


def note_quotes(fields: Iterable[str], form: TableFormat) -> tuple[str, ...]:
    """What to remark of fields from which a reader of CSV would take quotation marks, but for those
    of a table whose quoting is set.
    """
    counter = QuoteCounter(form)
    counter.read(fields)
    return counter.remarks


class QuoteCounter:
    """Counts such fields, for `note_quotes`."""

    def __init__(self, form: TableFormat) -> None:
        self._form, self._count = form, 0
        self.counts = form.quoting != "csv" and form.assumed

    def read(self, fields: Iterable[str]) -> None:
        """Count those among these."""
        if self.counts:
            self._count += sum(field[:1] == _QUOTE and _is_quoted(field) for field in fields)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to remark of them."""
        if not self._count:
            return ()
        kind = "TSV" if self._form.separator == "\t" else "table"
        return (
            f"WARNING: {count_noun(self._count, 'field')} in quotation marks, which are part of "
            f'the text in a {kind}: data.quoting = "csv" takes them off, data.quoting = "none" '
            "says that they belong there",
        )


def quoted_header(header: Sequence[str], form: TableFormat) -> bool:
    """Return True if the names of a header are in quotes that this format does not take off."""
    return form.quoting == "none" and any(map(_is_quoted, header))


def _is_quoted(field: str) -> bool:
    """Return True if a reader of CSV would take quotes off: those within are written twice.

    `"Yes," he said. "No."` is a sentence that begins and ends with one.
    """
    inner = field[1:-1]
    return (
        len(field) > 1
        and field[0] == field[-1] == _QUOTE
        and _QUOTE not in inner.replace(_QUOTE * 2, "")
    )


def _quoted_rows(
    lines: Iterable[str], name: str, separator: str
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, strict=True, delimiter=separator)
    while True:
        number = reader.line_num + 1
        try:
            with _any_length():
                row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"a whole row in line {number} of {name}",
                str(error),
                "put such a field in quotes, and write each quote in it twice",
            ) from None
        yield number, row


@contextmanager
def _any_length() -> Iterator[None]:
    previous_limit = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(previous_limit)
