"""Labelled texts as JSON lines."""

import json
from pathlib import Path

from attlas.data.lines import read_lines
from attlas.data.pair import Labelled, Place
from attlas.errors import AttlasError


def json_entries(path: Path | str, text: str, label: str) -> list[tuple[Place, Labelled]]:
    """One JSON object per line; blank lines are errors: nothing is left out."""
    lines = read_lines(path)
    return [
        (number, _labelled(line, text, label, f"line {number} of {lines.name}"))
        for number, line in enumerate(lines.texts, 1)
    ]


def _labelled(line: str, text: str, label: str, where: str) -> Labelled:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise AttlasError(f"a JSON object in {where}", str(error), "mend that line") from None
    if not isinstance(entry, dict):
        raise AttlasError(f"a JSON object in {where}", type(entry).__name__, "mend that line")
    for key in (text, label):
        if key not in entry:
            raise AttlasError(
                f"a field {key!r} in {where}", f"the fields {sorted(entry)}", "name the right field"
            )
    if not isinstance(entry[text], str):
        raise AttlasError(
            f"text in field {text!r} of {where}", repr(entry[text]), "name the right field"
        )
    if not isinstance(entry[label], str | int):  # bool is an int
        raise AttlasError(
            f"text or a whole number in field {label!r} of {where}",
            repr(entry[label]),
            "name the right field",
        )
    # As JSON writes it, so that true is the same label in a table.
    named = entry[label] if isinstance(entry[label], str) else json.dumps(entry[label])
    return Labelled(entry[text], named)
