"""A dataset of Hugging Face, by its name or from a local folder, where `datasets` is installed."""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from importlib.resources import as_file, files
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from attlas._files import parse_json
from attlas._text import count_noun
from attlas.config import Config
from attlas.data.base import (
    EMPTY_IS_NONE,
    DataSettings,
    check_choice,
    note_overlap,
    resolved,
    resolved_name,
    split_validation,
)
from attlas.data.corpus import (
    Corpus,
    FilterConfig,
    FilterReport,
    OnFault,
    SplitName,
    Splits,
    corpus_of,
    filtered,
)
from attlas.data.labelled import (
    LabelledCorpus,
    LabelledSplits,
    json_object,
    labelled_corpus_of,
    read_labelled_texts,
)
from attlas.data.lines import StreamedLines, coming_from, read_lines, stream_lines
from attlas.data.parallel_files import FilesData, read_pairs
from attlas.data.stored_pairs import Pair
from attlas.data.tables import QuoteCounter, Quoting, Separator, TableFormat, table_rows
from attlas.errors import AttlasError, ConfigError, DataError, missing_extra

Rows = Iterator[tuple[int, Mapping[str, Any]]]
"""Each row of a split with its number, or in a file of text with the line on which it begins."""


class _Split(NamedTuple):
    """One split of a dataset: `rows` yields its rows anew, `form` is the format of its tables, if
    any.
    """

    rows: Callable[[], Rows]
    form: TableFormat | None = None


Dataset = Mapping[str, _Split]
"""The splits by name."""


class HuggingFaceData(DataSettings):
    """Sentence pairs of a dataset of Hugging Face.

    What CSV, TSV and JSON files hold is read as the text that it is: "null", "NA" and 007 are
    words, and "2020-01-01" is no date.
    """

    kind: Literal["huggingface"] = "huggingface"
    name: str
    """The name of the dataset on the Hub, or a folder (files, or what `save_to_disk` wrote)."""
    config: str | None = None
    """The configuration of the dataset, where it has several."""
    source: str = "translation.en"
    """The column of the source; a dot goes into a nested column."""
    target: str = "translation.de"
    """The column of the target."""
    train: str = "train"
    """The split to train on."""
    valid: str = "validation"
    """The split to choose the best checkpoint by."""
    test: str = "test"
    """The split to score in the end; "" = none."""
    quoting: Quoting | None = None
    """Whether quotes around a field are taken off ("csv"), or belong to the text ("none"). Left
    out: taken off in a CSV.
    """
    filters: FilterConfig = FilterConfig()
    """Which pairs are left out."""

    def resolved(self, base: Path) -> "HuggingFaceData":
        if not resolved(base, self.name).is_dir():
            return self
        return self.model_copy(update={"name": resolved_name(base, self.name)})

    def load(self) -> Splits:
        dataset = _opened(self.name, self.config, self.quoting)  # once for all three
        train, valid = self._of(dataset, "train"), self._of(dataset, "valid")
        return Splits(train, note_overlap(train, valid), self._of(dataset, "test"))

    def corpus(self, split: SplitName) -> Corpus:
        return self._of(_opened(self.name, self.config, self.quoting), split)

    def _of(self, dataset: Dataset, split: SplitName) -> Corpus:
        is_filtered = self.filters.empties_alone
        if split == "train":
            return self._split(dataset, self.train, self.filters)
        if split == "valid":
            return self._split(dataset, self.valid, is_filtered)
        return (
            self._split(dataset, self.test, is_filtered) if self.test else corpus_of((), "no test")
        )

    def _split(self, dataset: Dataset, split: str, filters: FilterConfig) -> Corpus:
        if split not in dataset:
            raise DataError(
                f"a split {split!r} in the dataset {self.name}",
                f"the splits {sorted(dataset)}",
                'name its splits in data.train and so on, or data.test = "" where there is none',
            )
        location = f"{self.name} {split}"
        form = dataset[split].form
        quotes = QuoteCounter(form) if form else None

        def pairs() -> Iterator[tuple[int, Pair]]:
            columns = (self.source, self.target)
            for number, row in dataset[split].rows():
                pair = Pair(*[_cell(row, column, location, number) for column in columns])
                if quotes is not None:
                    quotes.read(pair)
                yield number, pair

        found = filtered(pairs(), filters, location)
        return found.corpus(location, remarks=quotes.remarks if quotes is not None else ())


def _opened(name: str, config: str | None, quoting: Quoting | None) -> Dataset:
    try:
        import datasets
    except ImportError:
        raise missing_extra("datasets of Hugging Face", "datasets") from None
    try:
        if (Path(name) / "dataset_dict.json").is_file():
            return _typed(datasets.load_from_disk(name))
        return _as_text(name, config, quoting) or _typed(datasets.load_dataset(name, config))
    except AttlasError:
        raise
    except Exception as error:  # its many kinds of error share no base, and all mean: not readable
        raise DataError(
            f"a dataset of Hugging Face at {name!r}",
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'}",
            "check its name, its configuration and the network, or pass a local folder",
        ) from error


def _typed(loaded: Mapping[str, Any]) -> Dataset:
    return {str(split): _Split(partial(enumerate, rows, 1)) for split, rows in loaded.items()}


def _as_text(name: str, config: str | None, quoting: Quoting | None) -> Dataset | None:
    """A dataset of CSV, TSV or JSON files, read as they are; None for any other.

    `datasets` gives such files to pandas and pyarrow, which take words for missing values, numbers
    and dates: "null" is lost, 007 is 7.
    """
    import datasets

    try:
        builder = datasets.load_dataset_builder(name, config)
    except Exception:  # `load_dataset` says why
        return None
    settings, kind = builder.config, builder.name
    form: TableFormat | None = None
    reader: Callable[[str], Rows] = _json_rows
    if kind == "csv":
        _check_plain(settings, name)
        usual: Quoting = "none" if settings.sep == "\t" else "csv"
        form = TableFormat(settings.sep, quoting or usual, quoting is None)
        reader = partial(_table_rows, form=form, names=settings.names)
    elif kind != "json" or settings.field is not None:
        return None
    download = datasets.DownloadManager(dataset_name=name).download
    files = {str(split): download(list(paths)) for split, paths in settings.data_files.items()}
    if kind == "json" and not all(_is_read(path) for paths in files.values() for path in paths):
        return None
    return {
        split: _Split(partial(_read_all, reader, paths), form) for split, paths in files.items()
    }


def _read_all(reader: Callable[[str], Rows], paths: Sequence[str]) -> Rows:
    return chain.from_iterable(map(reader, paths))


def _check_plain(settings: Any, name: str) -> None:
    """Check that a dataset's card asks for no way of reading CSV that attlas does not know."""
    known_settings = {"name", "version", "data_dir", "data_files", "description"}
    allowed = {
        "sep",
        "delimiter",
        "names",
        "column_names",
        "features",
        "chunksize",
        *known_settings,
    }
    defaults = type(settings)()
    others = [
        field.name
        for field in fields(settings)
        if field.name not in allowed
        and getattr(settings, field.name) != getattr(defaults, field.name)
    ]
    if others:
        raise DataError(
            f"a CSV with a header, in UTF-8, in the dataset {name}",
            f"a card that sets {', '.join(others)}",
            "save it as Parquet or JSON lines, and name that folder",
        )


def _table_rows(path: str, form: TableFormat, names: Sequence[str] | None) -> Rows:
    """The rows of a CSV or TSV.

    Args:
        names: Of its columns, None = its first row.
    """
    lines = StreamedLines(path)
    rows = table_rows(lines, form)
    header = list(names) if names else next(rows, (1, []))[1]
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{count_noun(len(header), 'field')} in every row of {lines.name}, as in its "
                "header",
                f"{count_noun(len(row), 'field')} in the row of line {number}",
                "correct that row",
            )
        yield number, dict(zip(header, row, strict=True))


def _json_rows(path: str) -> Rows:
    """The objects of a list, or one of each line."""
    if _is_list(stream_lines(path)):
        lines = read_lines(path)
        try:
            content = parse_json("\n".join(lines.texts))
        except ValueError as error:
            raise DataError(
                f"a list of JSON objects in {lines.name}", str(error), "correct that file"
            ) from None
        yield from enumerate(content, 1)
        return
    streamed = StreamedLines(path)
    for number, line in enumerate(streamed.rows, 1):
        yield number, json_object(line, f"line {number} of {streamed.name}")


def _is_list(lines: Iterable[str]) -> bool:
    return next((line.strip()[0] for line in lines if line.strip()), "") == "["


def _is_read(path: str) -> bool:
    """Return True if a file of JSON is a list, or its first line a whole object."""
    first = next((line for line in stream_lines(path) if line.strip()), "")
    try:
        return _is_list([first]) or isinstance(parse_json(first), dict)
    except ValueError:
        return False


def _cell(row: Mapping[str, Any], column: str, location: str, number: int) -> str:
    """The column of that name in one row, or the one to which its dots lead."""
    value: Any = row
    for key in [column] if column in row else column.split("."):
        if not isinstance(value, Mapping) or key not in value:
            valid = list(value) if isinstance(value, Mapping) else "no columns inside"
            raise DataError(
                f"a column {column!r} in {location}",
                f"{valid} where {key!r} should be",
                'set data.source and data.target, with dots into nested columns ("translation.en")',
            )
        value = value[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"text in column {column!r} of {location}",
            f"{type(value).__name__} in row {number}",
            "name a column of text",
        )
    return value


# Where labelled texts come from.


class LabelledData(Config):
    """Labelled texts, each set a file or a folder, see `read_labelled_texts`.

    Where a folder has folders called train, valid or test, as aclImdb has, that of the split is
    taken. `<br />` counts as white space. An empty text is left out. No text is both in the
    training part and in the part that is held back, see `split_validation`.
    """

    kind: Literal["labelled"] = "labelled"
    train: str = Field(min_length=1)
    """The texts to train on: a JSONL, CSV or TSV file, or a folder with a folder for each label."""
    valid: Annotated[str | None, EMPTY_IS_NONE] = None
    """The texts to choose the best checkpoint by; without them, set held_back. An empty name is
    none.
    """
    test: Annotated[str | None, EMPTY_IS_NONE] = None
    """The texts to score in the end, if there are some. An empty name is none."""
    held_back: int | float = 0
    """Texts of train that are kept for validation: a whole number, or a share below 1; 0 = none."""
    text: str = "text"
    """The field of the text."""
    label: str = "label"
    """The field of the label."""
    separator: Separator | None = None
    """What separates the columns of a table. Left out: commas in a .csv, tabs in any other."""
    quoting: Quoting | None = None
    """Whether quotes around a field are taken off ("csv"), or belong to the text ("none"). Left
    out: taken off in a .csv.
    """
    unlabelled: OnFault = "error"
    """What to do with a text without a label; "skip" leaves it out and counts it."""
    origin: str = ""
    """Where the files come from; a message says it where one is missing."""
    seed: int = Field(default=1, ge=0)
    """The seed of the choice of texts that are held back."""

    @model_validator(mode="after")
    def _one_to_choose_by(self) -> Self:
        check_choice(self.held_back, self.valid, "text")
        return self

    @property
    def passing(self) -> bool:
        """Return True if a part of the data comes from the standard input: none does."""
        return False

    def resolved(self, base: Path) -> "LabelledData":
        """The same with relative paths taken from `base`, the folder of the recipe file."""

        def absolute(path: str | None) -> str | None:
            return path and resolved_name(base, path)

        names = ("train", "valid", "test")
        return self.model_copy(update={name: absolute(getattr(self, name)) for name in names})

    def corpus(self, split: SplitName) -> LabelledCorpus:
        """Read one split alone; a mistake in the data is an `AttlasError` that names its place."""
        if split == "test" and self.test is None:
            return _none("no test")
        if split == "test" or not self.held_back:
            return self._read(split)
        train, valid = split_validation(self._read("train"), self.held_back, self.seed)
        return train if split == "train" else valid

    def load(self) -> LabelledSplits:
        """Read the three splits."""
        test = self.corpus("test")
        if self.held_back:
            return LabelledSplits(
                *split_validation(self._read("train"), self.held_back, self.seed), test
            )
        train, valid = self.corpus("train"), self.corpus("valid")
        return LabelledSplits(train, note_overlap(train, valid), test)

    def _read(self, split: SplitName) -> LabelledCorpus:
        path = getattr(self, split)
        inner = Path(path) / split
        with coming_from(self.origin, f"data.{split}"):
            texts = read_labelled_texts(
                inner if inner.is_dir() else path,
                self.text,
                self.label,
                separator=self.separator,
                quoting=self.quoting,
                unlabelled=self.unlabelled,
            )
        corpus = labelled_corpus_of(texts, self.unlabelled)
        if not corpus.texts:
            raise DataError(
                f"at least one labelled text in {path}", str(corpus.report), "check the data"
            )
        return corpus


def _none(name: str) -> LabelledCorpus:
    return LabelledCorpus(name, (), (), (), FilterReport(name, 0, 0, example="text"))


# The corpus that comes with attlas: short everyday English–German pairs from Tatoeba.


SHIPPED = files("attlas") / "data" / "shipped"


class ShippedData(DataSettings):
    """English–German from Tatoeba (CC BY 2.0 FR), split by English sentence.

    No English sentence, whatever its case and punctuation, is on two sides.
    """

    kind: Literal["shipped"] = "shipped"
    direction: Literal["en-de", "de-en"] = "en-de"
    """From which language into which."""

    def corpus(self, split: SplitName) -> Corpus:
        columns = (1, 2) if self.direction == "en-de" else (2, 1)
        with as_file(SHIPPED / f"{split}.en-de.tsv.gz") as path:
            pairs = read_pairs((path,), columns, quoting="none")
            return pairs.renamed(f"tatoeba {self.direction} {split}")


def attribution() -> str:
    """Whose sentences these are, under which licence, and what was changed."""
    return (SHIPPED / "ATTRIBUTION.md").read_text(encoding="utf-8")


# The toy tasks: sequences whose right answer, and whose right attention, is known.


_FEW = 1_000  # so many sequences are listed and dealt out; more are distinguished by their hash

_SIDES = ("test", "valid", *["train"] * 8)  # a tenth, a tenth, and the rest
TASKS: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "reverse": lambda sequence: list(sequence)[::-1],
    "copy": list,
    "sort": sorted,
}


class ToyData(DataSettings):
    """Sequences of the symbols "0" … "n − 1", drawn with a seed, and what becomes of them.

    Lengths are uniform over `length`, symbols uniform and independent. Each sequence belongs to one
    split (4 in 5 to train), so none is on two sides; within a split short ones may repeat.
    """

    kind: Literal["toy"] = "toy"
    task: Literal["reverse", "copy", "sort"] = "reverse"
    """What becomes of a sequence: it is reversed, copied or sorted."""
    length: tuple[int, int] = (1, 20)
    """The shortest and the longest sequence."""
    symbols: int = Field(default=32, ge=1)
    """How many different symbols there are."""
    train: int = Field(default=20_000, ge=1)
    """How many sequences to train on."""
    valid: int = Field(default=500, ge=1)
    """How many sequences to choose the best checkpoint by."""
    test: int = Field(default=500, ge=1)
    """How many sequences to score in the end."""
    seed: int = 1
    """The seed of the sequences."""

    @model_validator(mode="after")
    def _some_length(self) -> "ToyData":
        shortest, longest = self.length
        if not 1 <= shortest <= longest:
            raise ConfigError(
                "length = [shortest, longest] with 1 ≤ shortest ≤ longest",
                f"[{shortest}, {longest}]",
                "correct data.length",
            )
        return self

    def corpus(self, split: SplitName) -> Corpus:
        size = {"train": self.train, "valid": self.valid, "test": self.test}[split]
        draw = random.Random(f"{self.seed} {split}")
        answer = TASKS[self.task]
        dealt = self._dealt()
        pairs: list[Pair] = []
        while len(pairs) < size:
            sequence = draw.choices(range(self.symbols), k=draw.randint(*self.length))
            source = _as_symbols(sequence)
            side = dealt[source] if dealt else _SIDES[self._lot(source)[0] % len(_SIDES)]
            if side == split:
                pairs.append(Pair(source, _as_symbols(answer(sequence))))
        return corpus_of(pairs, f"{self.task} {split}")

    def _dealt(self) -> dict[str, str]:
        """The side of every sequence, where there are few; a hash could leave a side without."""
        shortest, longest = self.length
        count = 0
        for length in range(shortest, longest + 1):
            count += self.symbols**length
            if count > _FEW:
                return {}
        if count < len({*_SIDES}):
            raise ConfigError(
                "three different sequences at least, so that train, valid and test share none",
                f"{self.symbols} symbol(s) in lengths {shortest} to {longest}",
                "allow more lengths or more symbols",
            )
        sequences = (
            _as_symbols(sequence)
            for length in range(shortest, longest + 1)
            for sequence in product(range(self.symbols), repeat=length)
        )
        ordered = sorted(sequences, key=self._lot)
        return {source: _SIDES[rank % len(_SIDES)] for rank, source in enumerate(ordered)}

    def _lot(self, source: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {source}".encode()).digest()


def _as_symbols(sequence: Sequence[int]) -> str:
    return " ".join(map(str, sequence))


# From settings to corpora.


DataConfig = Annotated[
    FilesData | ShippedData | ToyData | HuggingFaceData | LabelledData,
    Field(discriminator="kind"),
]
"""Where the data of any task comes from; `kind` says which."""


def load_splits(config: FilesData | ShippedData | ToyData | HuggingFaceData) -> Splits:
    """The three splits of sentence pairs that the settings describe, each with its report."""
    return config.load()
