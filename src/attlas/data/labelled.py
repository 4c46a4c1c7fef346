"""Labelled texts for classification: JSON lines, tables, and a folder for each label."""

from dataclasses import dataclass
from pathlib import Path

from attlas.data.labelled_folder import folder_entries
from attlas.data.labelled_json import json_entries
from attlas.data.labelled_table import table_entries
from attlas.data.lines import shown
from attlas.data.pair import Labelled, Place

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


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


def read_labelled_texts(
    path: Path | str, text: str = "text", label: str = "label"
) -> LabelledTexts:
    """Read a folder, or a file, plain or gzipped; `text` and `label` name the fields of a file.

    A folder has one folder for each label, and in it one file for each text (NAME.txt), as the
    Large Movie Review Dataset (aclImdb; Maas et al., 2011) does; what lies in "unsup" has no label
    and is left out with a remark. A file that ends in .csv or .tsv (.csv.gz, …) is a table with a
    header, whose quoted fields may hold line breaks. Any other has one JSON object per line; there
    a label may be text, a whole number or true/false, and is kept as text.
    Errors: `AttlasError` with file and line for everything that is not such an entry.
    """
    if Path(path).is_dir():
        entries, remarks = folder_entries(Path(path))
    else:
        delimiter = _DELIMITERS.get(Path(str(path).removesuffix(".gz")).suffix.lower())
        if delimiter is None:
            entries = json_entries(path, text, label)
        else:
            entries = table_entries(path, text, label, delimiter)
        remarks = ()
    places = tuple(place for place, _ in entries)
    return LabelledTexts(shown(path), tuple(entry for _, entry in entries), places, remarks)


def read_labelled(
    path: Path | str, text: str = "text", label: str = "label"
) -> tuple[Labelled, ...]:
    """The entries alone; see `read_labelled_texts`."""
    return read_labelled_texts(path, text, label).entries
