"""Parallel text in files: two of them, or one table; plain or gzipped; or the standard input."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from glob import escape, glob, has_magic
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from attlas._files import sha256_of
from attlas._text import count_noun
from attlas.data.base import (
    DataSettings,
    check_choice,
    resolved_name,
    split_validation,
)
from attlas.data.corpus import (
    AT_ONCE,
    Corpus,
    FilterConfig,
    JoinedFiles,
    SplitName,
    Splits,
    corpus_of,
    filtered_blocks,
    pair_blocks,
)
from attlas.data.lines import STDIN, MissingFileError, StreamedLines, coming_from, shown_path
from attlas.data.stored_pairs import Pair, PairBlock
from attlas.data.tables import (
    QuoteCounter,
    Quoting,
    Separator,
    TableFormat,
    data_suffix,
    quoted_header,
    table_rows,
)
from attlas.errors import ConfigError, DataError, quoted

# Which files a set of pairs is in.


FilePair = tuple[str, ...]
"""A table, or a file of sources and one of targets."""


def _file_names(value: Any) -> Any:
    """The value of a setting as tuples.

    Raises:
        ConfigError: For anything but names of files.
    """
    paths = (value,) if isinstance(value, str | Path) else value
    flat = _flat(paths)
    if not flat or not all(isinstance(name, str | Path) and str(name) for name in flat):
        raise _not_files(value)
    pairs = file_pairs(paths)
    if not all(len(pair) in (1, 2) for pair in pairs):
        raise _not_files(value)
    if (STDIN, STDIN) in pairs:
        raise ConfigError(
            "the standard input for one side, or for both as TSV",
            repr(_plain(value)),
            'write a single "-" for TSV',
        )
    return pairs if len(flat) > len(paths) or len(pairs) > 1 else pairs[0]


def _file_names_or_none(value: Any) -> Any:
    """The same; "" is none, for which TOML has no word."""
    return None if value in ("", None) else _file_names(value)


def _not_files(value: Any) -> ConfigError:
    return ConfigError(
        '[source, target], or one TSV file, or one CSV, or "-" for the standard input; several of '
        'them as [["a.en", "a.de"], ["b.en", "b.de"]]',
        repr(_plain(value)),
        "name one file or two, or a list of such",
    )


def _flat(paths: Any) -> list[Any]:
    """All names, in lists of lists; no names for an empty one."""
    if not isinstance(paths, list | tuple):
        return [paths]
    parts = [_flat(part) for part in paths]
    return list(chain.from_iterable(parts)) if all(parts) else []


def _plain(paths: Any) -> Any:
    return [_plain(part) for part in paths] if isinstance(paths, list | tuple) else paths


def file_pairs(paths: Sequence[Any]) -> tuple[FilePair, ...]:
    """The files of a set: each a table, or a file of sources and one of targets.

    Two names or more that end in .tsv or .csv, perhaps with .gz behind it, are tables.

    Example:
        >>> file_pairs(["a.en", "a.de"]), file_pairs(["a.tsv", "b.tsv"])
        ((('a.en', 'a.de'),), (('a.tsv',), ('b.tsv',)))
    """
    parts = [
        (str(part),) if isinstance(part, str | Path) else tuple(map(str, part)) for part in paths
    ]
    if any(isinstance(part, list | tuple) for part in paths):
        return tuple(parts)
    names = tuple(chain.from_iterable(parts))
    return tuple(parts) if are_tables(names) else (names,)


def are_tables(names: Sequence[str]) -> bool:
    """Return True if each of the names is of a table."""
    return all(data_suffix(name) in (".tsv", ".csv") for name in names)


def _absolute(base: Path, path: str) -> str:
    """The path from `base`, which is no part of a pattern."""
    name = resolved_name(base, path)
    if path == STDIN or os.path.exists(name) or not has_magic(name):
        return path if path == STDIN else name
    return resolved_name(Path(escape(str(base))), path)


def _each(paths: Any, change: Callable[[str], str]) -> Any:
    """The same, with each name changed."""
    return (
        tuple(_each(part, change) for part in paths) if isinstance(paths, tuple) else change(paths)
    )


def _has_pattern(paths: Any, base: Path) -> bool:
    return any(_is_pattern(_absolute(base, name)) for pair in file_pairs(paths) for name in pair)


def files_of(paths: Sequence[Any], base: Path) -> tuple[FilePair, ...]:
    """The files of a set, from the folder `base`, with those that patterns match.

    Raises:
        DataError: See `expanded`.
    """
    pairs = [tuple(_absolute(base, name) for name in pair) for pair in file_pairs(paths)]
    return tuple(chain.from_iterable(map(expanded, pairs)))


def _is_pattern(name: str) -> bool:
    return name != STDIN and has_magic(name) and not os.path.exists(name)


def expanded(pair: FilePair) -> tuple[FilePair, ...]:
    """The files that the patterns match, in the order of their names.

    A source and its target match their patterns with the same characters: those of 1.en and 1.de
    are "1". A name without `*`, `?` or `[` is its own match; so is that of a file which is there.

    Raises:
        DataError: For a pattern without a match, and for a source or target without the other.
    """
    if not any(map(_is_pattern, pair)):
        return (pair,)
    matches = [_matches(name) for name in pair]
    if len(matches) == 1:
        return tuple((name,) for name in matches[0].values())
    sources, targets = matches
    if alone := sorted({**sources, **targets}.keys() - (sources.keys() & targets.keys())):
        raise DataError(
            f"for each file of {_shown(pair[0])} one of {_shown(pair[1])}",
            f"{count_noun(len(sources), 'file')} and {len(targets)}; without the other: "
            + ", ".join(map(quoted, alone[:3])),
            "name the files one by one, or take away those that are alone",
        )
    return tuple((sources[part], targets[part]) for part in sources)


def _matches(name: str) -> dict[str, str]:
    """The files that a pattern matches, by the characters for which its wildcards stand."""
    found = sorted(path for path in glob(name, recursive=True) if os.path.isfile(path))
    if not found:
        plain = not _WILDCARD.search(name)
        raise MissingFileError(
            "a text file" if plain else f"a file whose name matches {_shown(name)}",
            f"no file at {_shown(name)}" if plain else "none",
            "check the path" if plain else "check the pattern and the folder",
        )
    parts = _WILDCARD.split(name)
    begin, end = len(_shown(parts[0])), len(_shown(parts[-1]))
    return {path[begin : len(path) - end]: path for path in found}


_WILDCARD = re.compile(r"\*+|\?|\[(?!.\])[^]]+\]")  # but no character that `escape` put in brackets


def _shown(name: str) -> str:
    """A pattern as it was written, before `escape`."""
    return re.sub(r"\[([*?[])\]", r"\1", name)


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


Paths = Annotated[tuple[str | FilePair, ...], BeforeValidator(_file_names)]
PathsOrNone = Annotated[tuple[str | FilePair, ...] | None, BeforeValidator(_file_names_or_none)]
Columns = Annotated[tuple[int, int] | tuple[str, str], AfterValidator(_different)]


class FilesData(DataSettings):
    """Sentence pairs from files, plain or gzipped.

    Gzip is known by its first bytes. A set may be in several files: `["a.tsv", "b.tsv"]`,
    `[["a.en", "a.de"], ["b.en", "b.de"]]`, or the pattern of their names, `"part-*.tsv"` or
    `["*.en", "*.de"]`. Two names or more that end in .tsv or .csv are tables. A run holds the
    names that a pattern matched when it began. The bounds of the filters hold for the pairs that
    are trained on alone: a score is comparable only when it is taken on the whole of a set. No
    source is both in the training part and in the part that is held back, see `split_validation`.
    """

    kind: Literal["files"] = "files"
    train: Paths
    """The pairs to train on: `["train.en", "train.de"]`, `"train.tsv"`, `"part-*.csv"`, or "-" for
    the standard input.
    """
    valid: PathsOrNone = None
    """The pairs to choose the best checkpoint by; without them, set held_back. An empty name is
    none.
    """
    test: PathsOrNone = None
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
        tables = any(len(pair) == 1 for split in self._splits for pair in split)
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
        if self._names.count(STDIN) > 1:
            raise ConfigError(
                'the standard input ("-") for one file at most, as it can be read once',
                "it for several",
                "put the others into files",
            )
        return self

    @property
    def _splits(self) -> tuple[tuple[FilePair, ...], ...]:
        return tuple(file_pairs(paths) for paths in (self.train, self.valid, self.test) if paths)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for split in self._splits for pair in split for name in pair)

    def resolved(self, base: Path) -> "FilesData":
        def absolute(paths: Any) -> Any:
            if not paths or not _has_pattern(paths, base):
                return paths and _each(paths, lambda path: _absolute(base, path))
            try:
                return files_of(paths, base)
            except DataError:  # reading them says it, where they are read from this folder
                return _each(paths, lambda path: _absolute(base, path))

        return self.model_copy(
            update={name: absolute(getattr(self, name)) for name in ("train", "valid", "test")}
        )

    @property
    def passing(self) -> bool:
        return STDIN in self._names

    @property
    def size_on_disk(self) -> int:
        names = chain.from_iterable(file_pairs(self.train))
        return sum(os.path.getsize(name) for name in names if os.path.isfile(name))

    def fingerprint(self) -> dict[str, Any] | None:
        if self.passing:
            return None
        pairs = (*file_pairs(self.train), *file_pairs(self.valid or ()))
        names = dict.fromkeys(chain.from_iterable(pairs))
        if not all(map(os.path.isfile, names)):  # a pipe can be read once
            return None
        try:
            files = dict(zip(names, sha256_of([*map(Path, names)]), strict=True))
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

    def _some(self, corpus: Corpus, paths: Sequence[Any]) -> Corpus:
        """The corpus, where there is a pair in it."""
        if not corpus.pairs:
            pairs = file_pairs(paths)
            raise DataError(
                f"at least one sentence pair in {_name_of(pairs)}",
                str(corpus.report),
                "give the data on the standard input, again where a run goes on"
                if any(STDIN in pair for pair in pairs)
                else "check the file and the filters",
            )
        return corpus


def read_pairs(
    paths: Sequence[Path | str] | Sequence[Sequence[Path | str]],
    columns: tuple[int, int] | tuple[str, str] | None = None,
    filters: FilterConfig | None = None,
    *,
    separator: str | None = None,
    quoting: Quoting | None = None,
) -> Corpus:
    """The pairs of two line-parallel files, of two columns of one table, or of several of these.

    Args:
        paths: See `file_pairs` and `expanded`. Each table has the header of its own.
        columns: Their numbers from 1, or their names in a header; None = the first two, which a CSV
            does not have by itself, because most begin with a header.
        separator, quoting: See `TableFormat`. All that a table holds is text, whatever it looks
            like.

    Raises:
        AttlasError: If the files have unequal numbers of lines, or a tab in every line of both;
            where a row has another number of columns than the first, a file is not UTF-8, or a
            filter set to "error" meets a fault.
    """
    pairs = tuple(chain.from_iterable(map(expanded, file_pairs(_file_names(paths)))))
    quotes = dict[TableFormat, QuoteCounter]()
    readers = [
        _Table(pair[0], columns, TableFormat.of(pair[0], separator, quoting), quotes)
        if len(pair) == 1
        else _Joined(*map(StreamedLines, pair))
        for pair in pairs
    ]
    files = JoinedFiles([reader.name for reader in readers]) if len(readers) > 1 else None
    name = _name_of(pairs)
    blocks = _one_after_another(readers, files)
    found = filtered_blocks(blocks, filters or FilterConfig(), name, files)
    read = [lines for reader in readers for lines in reader.files]
    remarks = [remark for counter in quotes.values() for remark in counter.remarks]
    returns = sum(lines.carriage_returns for lines in read)
    return found.corpus(name, returns, (*_note_returns(*read), *remarks))


def _name_of(pairs: Sequence[FilePair]) -> str:
    """What a message calls a set in these files."""
    first, *others = (" and ".join(map(shown_path, pair)) for pair in pairs)
    if len(others) < 2:
        return " and ".join([first, *others])
    kind = ("table", "tables") if len(pairs[0]) == 1 else ("pair of files", "pairs of files")
    return f"{first} and {count_noun(len(others), f'more {kind[0]}', f'more {kind[1]}')}"


def _one_after_another(
    readers: "Sequence[_Table | _Joined]", files: JoinedFiles | None
) -> Iterator[PairBlock]:
    before = 0
    for reader in readers:
        for block in reader.blocks():
            yield block._replace(numbers=[before + n for n in block.numbers]) if before else block
        reader.check()
        before += reader.files[0].count
        if files is not None:
            files.ends.append(before)


class _Table:
    """The pairs of one table with their numbers."""

    def __init__(
        self,
        path: str,
        columns: tuple[int, int] | tuple[str, str] | None,
        form: TableFormat,
        quotes: dict[TableFormat, QuoteCounter],
    ) -> None:
        lines = StreamedLines(path)
        self.name, self.files = lines.name, (lines,)
        self._columns, self._form = columns, form
        self._quotes = quotes.setdefault(form, QuoteCounter(form))

    def blocks(self) -> Iterator[PairBlock]:
        rows = table_rows(self.files[0], self._form)
        pairs = _of_columns(rows, self.name, self._columns, self._form, self._quotes)
        return pair_blocks(pairs)

    def check(self) -> None:
        """A table is checked while it is read."""


class _Joined:
    """The pairs of two files with their numbers, as far as both go."""

    def __init__(self, source: StreamedLines, target: StreamedLines) -> None:
        self.source, self.target = source, target
        self.name, self.files = f"{source.name} and {target.name}", (source, target)
        self.all_tabs = True

    def blocks(self) -> Iterator[PairBlock]:
        sides = iter(self.source), iter(self.target)
        begin = 1
        while True:
            sources, targets = (list(islice(side, AT_ONCE)) for side in sides)
            count = min(len(sources), len(targets))
            if not count:
                break
            if self.all_tabs:
                both = zip(sources, targets, strict=False)
                self.all_tabs = all("\t" in source and "\t" in target for source, target in both)
            numbers = range(begin, begin + count)
            yield PairBlock(numbers, sources[:count], targets[:count])
            begin += count
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
                "give them names that end in .tsv, or set "
                f'data.train = [["{source.name}"], ["{target.name}"]]',
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
    width, others, other = len(first), 0, (0, 0, False)
    for number, row in rows if isinstance(columns[0], str) else chain([first_row], rows):
        if len(row) == width:
            pair = Pair(row[source], row[target])
            if quotes.counts:
                quotes.read(pair)
            yield number, pair
        else:
            other = other if others else (number, len(row), not any(map(str.strip, row)))
            others += 1
    if others:
        number, count, is_empty = other
        got = f"{_columns(count)} in line {number}" + ", which is empty" * is_empty
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
