"""Labelled texts as JSON lines."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attlas.config import parse_json
from attlas.data.lines import read_lines
from attlas.data.pair import Labelled, OnFault, Place
from attlas.errors import AttlasError

_MEND = "mend that line, or name the field (data.text, data.label)"
SKIPPED = 'data.unlabelled = "skip" leaves such texts out'
_ONE_A_LINE = (
    "mend that line: write one object a line, with no list around them; the name of a table ends "
    "in .csv or .tsv"
)
_KINDS: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}  # which may be long


def json_entries(
    path: Path | str, text: str, label: str, unlabelled: OnFault = "error"
) -> list[tuple[Place, Labelled]]:
    """One JSON object per line; a blank line between two is an error: nothing is left out.

    unlabelled: "skip" = a label that is null or missing is an empty one.
    """
    lines = read_lines(path)
    found: list[tuple[Place, Labelled]] = []
    named = False
    for number, line in enumerate(lines.rows, 1):
        where = f"line {number} of {lines.name}"
        entry = json_object(line, where)
        named = named or label in entry
        if unlabelled == "skip" and _is_missing(entry.get(label)):
            entry = {**entry, label: ""}
        found.append((number, _labelled(entry, text, label, where)))
    if found and not named:  # then it is the name that is wrong
        raise AttlasError(f"a field {label!r} in {lines.name}", "no line that has it", _MEND)
    return found


def _labelled(entry: Mapping[str, Any], text: str, label: str, where: str) -> Labelled:
    for key in (text, label):
        if key not in entry:
            raise AttlasError(f"a field {key!r} in {where}", f"the fields {sorted(entry)}", _MEND)
    if not isinstance(entry[text], str):
        raise AttlasError(f"text in field {text!r} of {where}", _shown(entry[text]), _MEND)
    return Labelled(entry[text], _name(entry[label], f"field {label!r} of {where}"))


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object that a line spells. Errors: `AttlasError` for anything else."""
    try:
        entry = parse_json(line, _once)
    except json.JSONDecodeError as error:  # whose own text counts lines within this one
        found = f"{error.msg} at character {error.pos + 1}"
    except ValueError as error:
        found = str(error)
    else:
        if isinstance(entry, dict):
            return entry
        found = _shown(entry)
    raise AttlasError(f"a JSON object in {where}", found, _ONE_A_LINE)


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose fields have different names: else one of them would be lost."""
    found = dict(fields)
    if len(found) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {json.dumps(twice)} more than once")
    return found


def _name(label: object, where: str) -> str:
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
        raise AttlasError(f"text or a whole number in {where}", _shown(label), advice)
    return json.dumps(label)


def _is_missing(label: object) -> bool:
    """null, or NaN, which pandas has for it."""
    return label is None or label != label


def _shown(value: object) -> str:
    """What there is, in words or as JSON writes it."""
    return _KINDS.get(type(value)) or json.dumps(value)
