"""Parallel text in files: two of them, or one table; plain or gzipped; or the standard input."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from attlas._text import count_noun
from attlas.data.base import (
    EMPTY_IS_NONE,
    DataSettings,
    check_choice,
    resolved_name,
    split_validation,
)
from attlas.data.corpus import (
    Corpus,
    FilterConfig,
    SplitName,
    Splits,
    corpus_of,
    filtered,
)
from attlas.data.lines import STDIN, StreamedLines, coming_from, shown_path
from attlas.data.stored_pairs import Pair
from attlas.data.tables import (
    QuoteCounter,
    Quoting,
    Separator,
    TableFormat,
    data_suffix,
    quoted_header,
    table_rows,
)
from attlas.errors import ConfigError, DataError


def _listed(value: Any) -> Any:
    return (str(value),) if isinstance(value, str | Path) else value


def _one_or_two(paths: tuple[str, ...]) -> tuple[str, ...]:
    if len(paths) not in (1, 2) or not all(paths):
        raise ConfigError(
            '[source, target], or one TSV file, or one CSV, or "-" for the standard input',
            repr(list(paths)),
            "name one file or two",
        )
    if paths == (STDIN, STDIN):
        raise ConfigError(
            "the standard input for one side, or for both as TSV",
            repr(list(paths)),
            'write a single "-" for TSV',
        )
    return paths


def _different(columns: Any) -> Any:
    if columns[0] == columns[1]:
        raise ConfigError(
            "two different columns", repr(list(columns)), "name that of the source, then the target"
        )
    if isinstance(columns[0], int) and min(columns) < 1:
        raise ConfigError(
            "columns counted from 1", repr(list(columns)), "write [1, 2] for the first two"
        )
    return columns


Paths = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_one_or_two)]
Columns = Annotated[tuple[int, int] | tuple[str, str], AfterValidator(_different)]


class FilesData(DataSettings):
    """Sentence pairs from files, plain or gzipped.

    Gzip is known by its first bytes. The bounds of the filters hold for the pairs that are trained
    on alone: a score is comparable only when it is taken on the whole of a set. No source is both
    in the training part and in the part that is held back, see `split_validation`.
    """

    kind: Literal["files"] = "files"
    train: Paths
    """The pairs to train on: `["train.en", "train.de"]`, `"train.tsv"`, `"a.csv"`, or "-" for the
    standard input.
    """
    valid: Annotated[Paths | None, EMPTY_IS_NONE] = None
    """The pairs to choose the best checkpoint by; without them, set held_back. An empty name is
    none.
    """
    test: Annotated[Paths | None, EMPTY_IS_NONE] = None
    """The pairs to score in the end, if there are some. An empty name is none."""
    held_back: int | float = 0
    """Pairs of train that are kept for validation: a whole number, or a share below 1; 0 = none."""
    columns: Columns | None = None
    """Source and target in a table: numbers from 1, or names where the first row is a header. Left
    out: the first two of a table without a header; of a CSV they have to be named.
    """
    separator: Separator | None = None
    """What separates the columns of a table. Left out: commas in a .csv, tabs in any other."""
    quoting: Quoting | None = None
    """Whether quotes around a field are taken off ("csv"), or belong to the text ("none"). Left
    out: taken off in a .csv.
    """
    origin: str = ""
    """Where the files come from; a message says it where one is missing."""
    filters: FilterConfig = FilterConfig()
    """Which pairs are left out."""
    seed: int = Field(default=1, ge=0)
    """The seed of the choice of pairs that are held back."""

    @model_validator(mode="after")
    def _one_to_choose_by(self) -> "FilesData":
        check_choice(self.held_back, self.valid, "pair")
        return self

    @model_validator(mode="after")
    def _tables_divided(self) -> "FilesData":
        tables = any(len(paths) == 1 for paths in self._splits)
        settings = {"separator": self.separator, "quoting": self.quoting}
        idle = [f"data.{name}" for name, value in settings.items() if value is not None]
        if idle and not tables:
            raise ConfigError(
                f"a table (one file for both sides) beside {' and '.join(idle)}",
                "two files for each set, whose lines are not divided",
                f"leave out {' and '.join(idle)}",
            )
        return self

    @model_validator(mode="after")
    def _stdin_once(self) -> "FilesData":
        if sum(path == STDIN for split in self._splits for path in split) > 1:
            raise ConfigError(
                'the standard input ("-") for one file at most, as it can be read once',
                "it for several",
                "put the others into files",
            )
        return self

    @property
    def _splits(self) -> tuple[tuple[str, ...], ...]:
        return tuple(paths for paths in (self.train, self.valid, self.test) if paths)

    def resolved(self, base: Path) -> "FilesData":
        def absolute(paths: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return paths and tuple(p if p == STDIN else resolved_name(base, p) for p in paths)

        return self.model_copy(
            update={name: absolute(getattr(self, name)) for name in ("train", "valid", "test")}
        )

    @property
    def passing(self) -> bool:
        return any(path == STDIN for split in self._splits for path in split)

    @property
    def size_on_disk(self) -> int:
        return sum(os.path.getsize(name) for name in self.train if os.path.isfile(name))

    def fingerprint(self) -> dict[str, Any] | None:
        if self.passing:
            return None
        names = dict.fromkeys((*self.train, *(self.valid or ())))
        if not all(map(os.path.isfile, names)):  # a pipe can be read once
            return None
        try:
            files = {name: _sha256(Path(name)) for name in names}
        except OSError:  # reading them says why
            return None
        return {**self.model_dump(mode="json", exclude={"test", "origin"}), "files": files}

    def corpus(self, split: SplitName) -> Corpus:
        if split == "test" or not self.held_back:
            return self._read(split, self.filters if split == "train" else self._whole)
        train, valid = self._parted()
        return self._fit(train) if split == "train" else valid

    def load(self) -> Splits:
        if not self.held_back:
            return super().load()
        train, valid = self._parted()  # in one reading: the standard input comes once
        return Splits(self._fit(train), valid, self.corpus("test"))

    @property
    def _whole(self) -> FilterConfig:
        return self.filters.empties_alone

    def _parted(self) -> tuple[Corpus, Corpus]:
        """What is left to train on, before the bounds, and the part held back."""
        return split_validation(self._read("train", self._whole), self.held_back, self.seed)

    def _fit(self, corpus: Corpus) -> Corpus:
        return self._some(corpus.fit(self.filters), self.train)

    def _read(self, split: SplitName, filters: FilterConfig) -> Corpus:
        paths = {"train": self.train, "valid": self.valid, "test": self.test}[split]
        if paths is None:
            return corpus_of((), "no test")
        with coming_from(self.origin, f"data.{split}"):
            corpus = read_pairs(
                paths, self.columns, filters, separator=self.separator, quoting=self.quoting
            )
        return corpus if split == "test" else self._some(corpus, paths)

    def _some(self, corpus: Corpus, paths: tuple[str, ...]) -> Corpus:
        """The corpus, where there is a pair in it."""
        if not corpus.pairs:
            raise DataError(
                f"at least one sentence pair in {' and '.join(map(shown_path, paths))}",
                str(corpus.report),
                "give the data on the standard input, again where a run goes on"
                if STDIN in paths
                else "check the file and the filters",
            )
        return corpus


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_pairs(
    paths: Sequence[Path | str],
    columns: tuple[int, int] | tuple[str, str] | None = None,
    filters: FilterConfig | None = None,
    *,
    separator: str | None = None,
    quoting: Quoting | None = None,
) -> Corpus:
    """The pairs of two line-parallel files, or of two columns of one table.

    Args:
        columns: Their numbers from 1, or their names in a header; None = the first two, which a CSV
            does not have by itself, because most begin with a header.
        separator, quoting: See `TableFormat`. All that a table holds is text, whatever it looks
            like.

    Raises:
        AttlasError: If the files have unequal numbers of lines, or a tab in every line of both;
            where a row has another number of columns than the first, a file is not UTF-8, or a
            filter set to "error" meets a fault.
    """
    file_paths = _one_or_two(tuple(map(str, paths)))
    filters = filters or FilterConfig()
    if len(file_paths) == 1:
        lines = StreamedLines(file_paths[0])
        form = TableFormat.of(file_paths[0], separator, quoting)
        quotes = QuoteCounter(form)
        table = _of_columns(table_rows(lines, form), lines.name, columns, form, quotes)
        found = filtered(table, filters, lines.name)
        remarks = (*_note_returns(lines), *quotes.remarks)
        return found.corpus(lines.name, lines.carriage_returns, remarks)
    source, target = (StreamedLines(path) for path in file_paths)
    name = f"{source.name} and {target.name}"
    joined = _Joined(source, target)
    found = filtered(joined, filters, name)
    joined.check()
    returns = source.carriage_returns + target.carriage_returns
    return found.corpus(name, returns, _note_returns(source, target))


class _Joined:
    """The pairs of two files with their numbers, as far as both go."""

    def __init__(self, source: StreamedLines, target: StreamedLines) -> None:
        self.source, self.target = source, target
        self.all_tabs = True

    def __iter__(self) -> Iterator[tuple[int, Pair]]:
        sides = iter(self.source), iter(self.target)
        for number, (source, target) in enumerate(zip_longest(*sides), 1):
            if source is None or target is None:
                break
            if self.all_tabs and not ("\t" in source and "\t" in target):
                self.all_tabs = False
            yield number, Pair(source, target)
        for side in sides:
            for _ in side:  # which are counted, for the message
                pass

    def check(self) -> None:
        """Check that they are two sides of pairs, when all pairs were read.

        Raises:
            DataError: If not.
        """
        source, target = self.source, self.target
        if source.count != target.count:
            raise DataError(
                "two files with the same number of lines",
                f"{source.count:,} in {source.name} and {target.count:,} in {target.name}",
                "make line n of one the translation of line n of the other",
            )
        if source.count and self.all_tabs:
            raise DataError(
                "one table, or two files with one sentence a line",
                f"two tables, {source.name} and {target.name}: every line of them has a tab",
                "join the tables to one, for example with cat",
            )


def _note_returns(*files: StreamedLines) -> tuple[str, ...]:
    """What to remark of carriage returns that end no line: some of them may have been meant to."""
    num_returns = sum(lines.returns_inside for lines in files)
    return (
        (f"{count_noun(num_returns, 'carriage return')} within lines, part of the text",)
        if num_returns
        else ()
    )


def _chosen(
    columns: tuple[int, int] | tuple[str, str] | None, first: list[str], name: str
) -> tuple[int, int] | tuple[str, str]:
    """The columns, which are the first two by default, and no header is likely."""
    if columns is not None:
        return columns
    if data_suffix(name) == ".csv":
        raise DataError(
            f"data.columns: which columns of {name} are source and target",
            f"nothing; its first row is {first}",
            'name two of them where that row is a header, such as ["en", "de"]; else give their '
            "numbers, such as [1, 2]",
        )
    return (1, 2)


def _of_columns(
    rows: Iterator[tuple[int, list[str]]],
    name: str,
    columns: tuple[int, int] | tuple[str, str] | None,
    form: TableFormat,
    quotes: QuoteCounter,
) -> Iterator[tuple[int, Pair]]:
    """The pairs, each with the line on which it begins. `quotes` counts their fields in quotes."""
    first_row = next(rows, None)
    if first_row is None:
        return
    _, first = first_row
    columns = _chosen(columns, first, name)
    source, target = (_column_index(column, first, name, form) for column in columns)
    width, others, other = len(first), 0, (0, 0)
    for number, row in rows if isinstance(columns[0], str) else chain([first_row], rows):
        if len(row) == width:
            pair = Pair(row[source], row[target])
            if quotes.counts:
                quotes.read(pair)
            yield number, pair
        else:
            other = other if others else (number, len(row))
            others += 1
    if others:
        number, count = other
        got = f"{_columns(count)} in line {number}"
        more = f"; other numbers than {width} in {others:,} lines"
        hint = "correct that line" if others == 1 else "correct these lines"
        raise DataError(
            f"{_columns(width)} in every line of {name}, as in the first",
            got if others == 1 else got + more,
            hint
            if form.quoting == "csv"
            else f"{hint}; where fields in quotes hold {form.separators} "
            'or line breaks, set data.quoting = "csv"',
        )


def _column_index(column: int | str, first: list[str], name: str, form: TableFormat) -> int:
    """The index of a column, given by its number from 1 or by its name in the header."""
    hint = f"separate the columns by {form.separators}, or set data.separator, or set data.columns"
    if isinstance(column, int):
        if column <= len(first):
            return column - 1
        raise DataError(f"a column {column} in {name}", f"{_columns(len(first))} in line 1", hint)
    if first.count(column) > 1:
        raise DataError(
            f"one column named {column!r} in line 1 of {name}",
            f"the columns {first}",
            "name them apart, or set data.columns to two numbers",
        )
    if column in first:
        return first.index(column)
    advice = hint if len(first) == 1 else "set data.columns to two of them"
    if quoted_header(first, form):
        advice = 'take the quotes off (data.quoting = "csv")'
    raise DataError(
        f"a column named {column!r} in line 1 of {name}", f"the columns {first}", advice
    )


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
