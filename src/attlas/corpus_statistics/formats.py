"""Tables on disk: CSV or Parquet, by the name of the output."""

import csv
import io
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from attlas._files import write_durably
from attlas._output import open_output
from attlas.corpus_statistics.table import Column, Frame, Kind
from attlas.errors import AttlasError, missing_extra

_EVERY = 2**20  # bytes that are copied at a time
_GROUP = 1 << 17  # rows of a Parquet row group
_FLAGS = {True: "true", False: "false", None: None}
_FACTS = "attlas"  # the key of the facts among a Parquet file's own metadata
Facts = Mapping[str, str | int | float | bool]


class Table(ABC):
    """Rows as bytes that may be appended one after the other, and the file they come to.

    head: what comes before all rows. beside: the file with the facts of this output, where they do
    not fit into the output itself; None = there is none.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    @property
    @abstractmethod
    def head(self) -> bytes:
        """What comes before the first row."""

    @abstractmethod
    def rows(self, frame: Frame) -> bytes:
        """A frame as bytes."""

    @abstractmethod
    def assemble(self, rows: Path, whole: Path, facts: Facts) -> None:
        """Write the whole file from what `head` and `rows` gave."""

    def beside(self, output: Path) -> Path | None:
        """Where the facts of an output stand, if not in it."""
        return None


class CsvTable(Table):
    """Comma-separated, in UTF-8, with a line of names and "\\n" at the end of each line.

    Floats are written so that they are read back to the bit; true, false; nothing = no such number.
    A name that ends in .gz is gzipped. The facts are a JSON object in NAME.json.
    """

    @property
    def head(self) -> bytes:
        return _as_csv([[column.name for column in self.columns]])

    def rows(self, frame: Frame) -> bytes:
        columns = [frame[column.name] for column in self.columns]
        for index, column in enumerate(self.columns):
            if column.kind == "flag":
                columns[index] = [_FLAGS[flag] for flag in columns[index]]
        return _as_csv(list(zip(*columns, strict=True)))

    def assemble(self, rows: Path, whole: Path, facts: Facts) -> None:
        with ExitStack() as files:
            shutil.copyfileobj(
                files.enter_context(rows.open("rb")), open_output(whole, files), _EVERY
            )

    def beside(self, output: Path) -> Path | None:
        return output.with_name(f"{output.name}.json")


class ParquetTable(Table):
    """Parquet, compressed by zstd; on the way Arrow's stream format, which can be appended to.

    The facts are a JSON object under the key "attlas" of the file's metadata.

    Raises:
        AttlasError: If pyarrow is missing.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__(columns)
        try:
            self._arrow: Any = import_module("pyarrow")
            self._parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise missing_extra("numbers in Parquet", "parquet") from None
        arrow = self._arrow
        kinds: Mapping[Kind, Any] = {
            "whole": arrow.int64(),
            "number": arrow.float64(),
            "flag": arrow.bool_(),
            "text": arrow.string(),
        }
        self._schema = arrow.schema([(column.name, kinds[column.kind]) for column in columns])

    @property
    def head(self) -> bytes:
        return bytes(self._schema.serialize().to_pybytes())

    def rows(self, frame: Frame) -> bytes:
        columns = [frame[column.name] for column in self.columns]
        batch = self._arrow.record_batch(columns, schema=self._schema)
        return bytes(batch.serialize().to_pybytes())

    def assemble(self, rows: Path, whole: Path, facts: Facts) -> None:
        schema = self._schema.with_metadata({_FACTS: json.dumps(facts, ensure_ascii=False)})
        with (
            rows.open("rb") as file,
            self._parquet.ParquetWriter(whole, schema, compression="zstd") as writer,
        ):
            group: list[Any] = []
            for batch in self._arrow.ipc.open_stream(file):
                group.append(batch)
                if sum(part.num_rows for part in group) >= _GROUP:
                    writer.write_table(self._arrow.Table.from_batches(group))
                    group = []
            if group:
                writer.write_table(self._arrow.Table.from_batches(group))


def table_at(output: Path, columns: Sequence[Column]) -> Table:
    """The form that a name asks for.

    Raises:
        AttlasError: For any other name, and for Parquet where pyarrow is missing.
    """
    if output.suffix == ".parquet":
        return ParquetTable(columns)
    if output.name.endswith((".csv", ".csv.gz")):
        return CsvTable(columns)
    raise AttlasError(
        "an output whose name ends in .parquet, .csv or .csv.gz",
        str(output),
        "name one, such as --output stats.csv",
    )


def write_beside(path: Path, facts: Facts) -> None:
    """The facts as JSON, in one step; a link stays a link."""
    content = f"{json.dumps(facts, ensure_ascii=False, indent=1)}\n"
    write_durably(Path(os.path.realpath(path)), content.encode())


def _as_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    returned = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
    # Before Python 3.13 a lone carriage return, which readers take for the end of a line, is not
    # quoted by itself.
    text = io.StringIO(newline="")
    if returned:
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    else:
        csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
