"""Labelled texts for classification: JSON lines, tables, and a folder for each label."""

from dataclasses import dataclass
from pathlib import Path

from attlas.data.labelled_folder import folder_entries
from attlas.data.labelled_json import json_entries
from attlas.data.labelled_table import table_entries
from attlas.data.lines import shown
from attlas.data.pair import Labelled, OnFault, Place
from attlas.data.table import Quoting, TableFormat, suffix_of


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts and labels as they stand in a file or folder, in its order.

    places: the number of the line with which each begins, or the name of its file. remarks: what
    was left out on purpose.
    """

    name: str
    entries: tuple[Labelled, ...]
    places: tuple[Place, ...]
    remarks: tuple[str, ...] = ()


_JSON = (".json", ".jsonl", ".ndjson")


def read_labelled_texts(
    path: Path | str,
    text: str = "text",
    label: str = "label",
    *,
    separator: str | None = None,
    quoting: Quoting | None = None,
    unlabelled: OnFault = "error",
) -> LabelledTexts:
    """Read a folder, or a file, plain or gzipped; `text` and `label` name the fields of a file.

    A folder has one folder for each label, and in it one file for each text (NAME.txt), as the
    Large Movie Review Dataset (aclImdb; Maas et al., 2011) does; what lies in "unsup" has no label
    and is left out with a remark. A file that ends in .csv or .tsv (.csv.gz, …) is a table with a
    header, and so is one with another name than .json, .jsonl or .ndjson where separator or quoting
    is given. In a CSV a field in quotes may hold anything; a TSV is read as one of pairs is: a tab
    ends a field, a line feed a row, and a quotation mark is part of the text; see `TableFormat`.
    All that a table holds is text: "null", "NA" and 007 are what they look like. Any other file has
    one JSON object per line; there a label may be text, a whole number (1.0 is the number 1) or
    true/false, and is kept as text. unlabelled: "skip" = a label that is null or missing there is
    read as an empty one, as a table has it.
    Errors: `AttlasError` with file and line for everything that is not such an entry.
    """
    remarks: tuple[str, ...] = ()
    suffix = suffix_of(path)
    of_table = suffix in (".csv", ".tsv") or bool(separator or quoting)
    if Path(path).is_dir():
        entries, remarks = folder_entries(Path(path))
    elif of_table and suffix not in _JSON:
        form = TableFormat.of(path, separator, quoting)
        entries, remarks = table_entries(path, text, label, form)
    else:
        entries = json_entries(path, text, label, unlabelled)
    places = tuple(place for place, _ in entries)
    return LabelledTexts(shown(path), tuple(entry for _, entry in entries), places, remarks)


def read_labelled(
    path: Path | str, text: str = "text", label: str = "label"
) -> tuple[Labelled, ...]:
    """The entries alone; see `read_labelled_texts`."""
    return read_labelled_texts(path, text, label).entries
