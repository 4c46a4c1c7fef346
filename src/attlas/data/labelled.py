"""Labelled texts for classification: JSON lines, tables, and a folder for each label."""

import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas._files import parse_json, stored_bytes
from attlas._text import as_one_line, count_noun
from attlas.data.corpus import FaultCounter, FilterReport, Labelled, OnFault, Place, note_damage
from attlas.data.lines import LONGEST_LINE, read_lines, shown_path
from attlas.data.tables import (
    Quoting,
    TableFormat,
    data_suffix,
    note_quotes,
    quoted_header,
    table_rows,
)
from attlas.errors import DataError

# Labelled texts as a folder: one folder for each label, one file for each text.


_WITHOUT_LABEL = "unsup"  # the name of unlabelled texts in the Large Movie Review Dataset
_TEXT = ".txt"


def folder_entries(folder: Path) -> tuple[list[tuple[Place, Labelled]], tuple[str, ...]]:
    """Each text with its name (LABEL/NAME.txt), in the order of the names; and what to remark.

    A file beside the folders is none of the texts, nor is what has a name that begins with a dot.
    """
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    labels = sorted(path.name for path in entries if path.is_dir())
    found: list[tuple[Place, Labelled]] = []
    remarks: list[str] = []
    for label in labels:
        names = sorted(path.name for path in (folder / label).iterdir())
        texts = [name for name in names if name.endswith(_TEXT) and not name.startswith(".")]
        if label == _WITHOUT_LABEL:
            remarks.append(
                f"{count_noun(len(texts), 'text')} in {label}, without a label, left out"
            )
            continue
        if len(texts) < len(names):
            others = count_noun(len(names) - len(texts), "file")
            remarks.append(
                f"{others} in {label} left out, hidden or with a name that does not end in {_TEXT}"
            )
        found += [
            (f"{label}/{name}", Labelled(_read(folder / label / name), label)) for name in texts
        ]
    if not found:
        raise DataError(
            f"one folder for each label in {folder}, with texts (NAME{_TEXT}) in it",
            f"the folders {labels}" if labels else "no folder",
            "name the folder that holds those of the labels, such as aclImdb/train",
        )
    return found, tuple(remarks)


def _read(path: Path) -> str:
    try:
        content = stored_bytes(path, LONGEST_LINE + 1)
        if len(content) > LONGEST_LINE:
            raise DataError(
                f"a text of at most {LONGEST_LINE:,} bytes at {path}", "a longer one", "divide it"
            )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            f"a readable file at {path}", error.strerror or str(error), "check it"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"UTF-8 text in {path}",
            f"byte 0x{error.object[error.start]:02x} at byte {error.start + 1}",
            "convert the file to UTF-8 (for example with iconv)",
        ) from None


# Labelled texts as JSON lines.


_MEND = "correct that line, or name the field (data.text, data.label)"
SKIPPED = 'data.unlabelled = "skip" leaves such texts out'
_ONE_A_LINE = (
    "correct that line: write one object a line, with no list around them; the name of a table "
    "ends "
    "in .csv or .tsv"
)
_KINDS: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}  # which may be long


def json_entries(
    path: Path | str, text: str, label: str, unlabelled: OnFault = "error"
) -> list[tuple[Place, Labelled]]:
    """One JSON object per line; a blank line between two is an error: nothing is left out.

    Args:
        unlabelled: "skip" = a label that is null or missing is an empty one.
    """
    lines = read_lines(path)
    entries: list[tuple[Place, Labelled]] = []
    has_names = False
    for number, line in enumerate(lines.rows, 1):
        location = f"line {number} of {lines.name}"
        entry = json_object(line, location)
        has_names = has_names or label in entry
        if unlabelled == "skip" and _is_missing(entry.get(label)):
            entry = {**entry, label: ""}
        entries.append((number, _labelled(entry, text, label, location)))
    if entries and not has_names:  # then it is the name that is wrong
        raise DataError(f"a field {label!r} in {lines.name}", "no line that has it", _MEND)
    return entries


def _labelled(entry: Mapping[str, Any], text: str, label: str, location: str) -> Labelled:
    for key in (text, label):
        if key not in entry:
            raise DataError(f"a field {key!r} in {location}", f"the fields {sorted(entry)}", _MEND)
    if not isinstance(entry[text], str):
        raise DataError(f"text in field {text!r} of {location}", _json_kind(entry[text]), _MEND)
    return Labelled(entry[text], _name(entry[label], f"field {label!r} of {location}"))


def json_object(line: str, location: str) -> dict[str, Any]:
    """Parse the JSON object of a line.

    Raises:
        DataError: For anything else.
    """
    try:
        entry = parse_json(line, _once)
    except json.JSONDecodeError as error:  # whose own text counts lines within this one
        description = f"{error.msg} at character {error.pos + 1}"
    except ValueError as error:
        description = str(error)
    else:
        if isinstance(entry, dict):
            return entry
        description = _json_kind(entry)
    raise DataError(f"a JSON object in {location}", description, _ONE_A_LINE)


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, and refuse a repeated name: otherwise one of them would be lost."""
    result = dict(fields)
    if len(result) < len(fields):
        names = [name for name, _ in fields]
        repeated_name = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {json.dumps(repeated_name)} more than once")
    return result


def _name(label: object, location: str) -> str:
    """A label as text. A number is written as JSON writes it, and true as true, so that they are
    the same labels in a table. JSON has one kind of number: 1.0, which pandas writes where a column
    has gaps, is 1.
    """
    if isinstance(label, str):
        return label
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if not isinstance(label, int):  # bool is an int
        advice = f"{_MEND}; {SKIPPED}" if label is None else _MEND
        raise DataError(f"text or a whole number in {location}", _json_kind(label), advice)
    return json.dumps(label)


def _is_missing(label: object) -> bool:
    """null, or NaN, which pandas writes for it."""
    return label is None or label != label


def _json_kind(value: object) -> str:
    """What there is, in words or as JSON writes it."""
    return _KINDS.get(type(value)) or json.dumps(value)


# Labelled texts as a table: comma- or tab-separated, with a header.


def table_entries(
    path: Path | str, text: str, label: str, form: TableFormat
) -> tuple[list[tuple[Place, Labelled]], tuple[str, ...]]:
    """Each row with the line on which it begins, and what to remark."""
    lines = read_lines(path)
    entries = _entries(table_rows(lines, form), lines.name, (text, label), form)
    fields = (field for _, entry in entries for field in entry)
    return entries, note_quotes(fields, form)


def _entries(
    rows: Iterable[tuple[int, list[str]]],
    name: str,
    fields: tuple[str, str],
    form: TableFormat,
) -> list[tuple[Place, Labelled]]:
    """The two fields of each row below the header."""
    remaining = iter(rows)
    first, header = next(remaining, (1, []))
    text_at, label_at = (_column_index(field, header, name, form) for field in fields)
    entries: list[tuple[Place, Labelled]] = []
    for number, row in remaining:
        if len(row) != len(header):
            raise DataError(
                f"{count_noun(len(header), 'field')} in every row of {name}, as in its header "
                f"(line {first})",
                f"{count_noun(len(row), 'field')} in the row of line {number}",
                form.advice,
            )
        entries.append((number, Labelled(row[text_at], row[label_at])))
    return entries


def _column_index(field: str, header: list[str], name: str, form: TableFormat) -> int:
    if header.count(field) != 1:
        advice = "name the right field (data.text, data.label)"
        if quoted_header(header, form):
            advice = 'take the quotes off (data.quoting = "csv"), or name the field with them'
        elif len(header) == 1:
            advice = f"separate the fields by {form.separators}, or set data.separator"
        raise DataError(
            f"one field {field!r} in the header of {name}", f"the fields {header}", advice
        )
    return header.index(field)


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts and labels as they stand in a file or folder, in its order.

    Args:
        places: The number of the line with which each begins, or the name of its file.
        remarks: What was left out on purpose.
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
    true/false, and is kept as text.

    Args:
        unlabelled: "skip" = a label that is null or missing there is read as an empty one, as a
            table has it.

    Raises:
        DataError: With file and line for everything that is not such an entry.
    """
    remarks: tuple[str, ...] = ()
    suffix = data_suffix(path)
    of_table = suffix in (".csv", ".tsv") or bool(separator or quoting)
    if Path(path).is_dir():
        entries, remarks = folder_entries(Path(path))
    elif of_table and suffix not in _JSON:
        form = TableFormat.of(path, separator, quoting)
        entries, remarks = table_entries(path, text, label, form)
    else:
        entries = json_entries(path, text, label, unlabelled)
    locations = tuple(location for location, _ in entries)
    return LabelledTexts(shown_path(path), tuple(entry for _, entry in entries), locations, remarks)


def read_labelled(
    path: Path | str, text: str = "text", label: str = "label"
) -> tuple[Labelled, ...]:
    """The entries alone; see `read_labelled_texts`."""
    return read_labelled_texts(path, text, label).entries


# A corpus of labelled texts: what they are, where they came from, what was left out.


@dataclass(frozen=True, slots=True)
class LabelledCorpus:
    """Texts, each as one line (see `as_one_line`), and their labels, in the order of their file.

    Args:
        places: Where each stands there. `checksum` is the SHA-256 of texts and labels, so that a
            score can say what it was measured on.
    """

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[Place, ...]
    report: FilterReport
    checksum: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for text, label in zip(self.texts, self.labels, strict=True):
            digest.update(f"{label}\n{text}\n".encode())
        object.__setattr__(self, "checksum", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def sources(self) -> tuple[str, ...]:
        """What is read: the texts, by the name that pairs have for it."""
        return self.texts

    @property
    def targets(self) -> tuple[str, ...]:
        """What is to come out: the labels, by the name that pairs have for it."""
        return self.labels

    def part(
        self, indices: Sequence[int] | NDArray[np.integer[Any]], name: str, report: FilterReport
    ) -> "LabelledCorpus":
        """The texts at these indices, under another name and with a report of their own."""
        return LabelledCorpus(
            name,
            tuple(self.texts[index] for index in indices),
            tuple(self.labels[index] for index in indices),
            tuple(self.places[index] for index in indices),
            replace(report, name=name, kept=len(indices)),
        )

    def remarked(self, remark: str) -> "LabelledCorpus":
        """The same with a remark more in its report."""
        report = replace(self.report, remarks=(*self.report.remarks, remark))
        return replace(self, report=report)


@dataclass(frozen=True, slots=True)
class LabelledSplits:
    """What is trained on, what decides when to stop, and what is reported."""

    train: LabelledCorpus
    valid: LabelledCorpus
    test: LabelledCorpus


_AROUND = re.compile(r"^[\s\u200b\u2060\ufeff]+|[\s\u200b\u2060\ufeff]+$")  # some have no width


def labelled_corpus_of(
    labelled_texts: LabelledTexts, unlabelled: OnFault = "error"
) -> LabelledCorpus:
    """Build a corpus. A text of white space alone is left out, and reported.

    White space around a label is removed.

    Args:
        unlabelled: What to do with a text without a label; "skip" leaves it out, and reports it.
            Labels that differ in case or in Unicode form alone stay different, and are reported.

    Raises:
        DataError: With its place for a text without a label, or with half a character.
    """
    kept_texts: list[tuple[str, str, Place]] = []
    skipped = FaultCounter()
    without = [
        location
        for entry, location in zip(labelled_texts.entries, labelled_texts.places, strict=True)
        if not _trimmed(entry.label)
    ]
    if without and unlabelled == "error":
        others = f"none, nor in {len(without) - 1:,} others" if without[1:] else "none"
        raise DataError(
            f"a label in {_where(without[0])} of {labelled_texts.name}",
            others,
            f"give each text one; {SKIPPED}",
        )
    for entry, location in zip(labelled_texts.entries, labelled_texts.places, strict=True):
        text, label = as_one_line(entry.text), _trimmed(entry.label)
        try:
            f"{label}{text}".encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"text in Unicode in {_where(location)} of {labelled_texts.name}",
                f"half of a surrogate pair, {error.object[error.start]!r}",
                "write whole characters there",
            ) from None
        if not label:
            skipped.add(location, "no label")
        elif text:
            kept_texts.append((text, label, location))
        else:
            skipped.add(location, "an empty text")
    texts, labels, locations = zip(*kept_texts, strict=True) if kept_texts else ((), (), ())
    report = FilterReport(
        labelled_texts.name,
        len(labelled_texts.entries),
        len(kept_texts),
        left_out=skipped.faults,
        example="text",
        remarks=(*labelled_texts.remarks, *_note_alike(labels), *note_damage(texts)),
    )
    return LabelledCorpus(labelled_texts.name, texts, labels, locations, report)


def label_key(label: str) -> str:
    """The key of labels that differ only in case, in width, or in their Unicode form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())


def _note_alike(labels: Iterable[str]) -> tuple[str, ...]:
    """The remark about labels that probably mean the same."""
    counts = Counter(labels)
    groups: dict[str, list[str]] = defaultdict(list)
    for label in sorted(counts):
        groups[label_key(label)].append(label)
    return tuple(
        "WARNING: the labels "
        + " and ".join(f"{_seen(label, group)} ({counts[label]:,})" for label in group)
        + " differ in case or in Unicode form alone, and count as different: write them alike if "
        "they are one"
        for group in groups.values()
        if len(group) > 1
    )


def _seen(label: str, group: Sequence[str]) -> str:
    """In quotes; spelt out where others of the group would look the same."""
    composed = {unicodedata.normalize("NFC", text) for text in group}
    return repr(label) if len(composed) == len(group) else ascii(label)


def _trimmed(label: str) -> str:
    """With single spaces inside, and without invisible characters around."""
    return " ".join(_AROUND.sub("", label).split())


def _where(location: Place) -> str:
    return f"line {location}" if isinstance(location, int) else location
