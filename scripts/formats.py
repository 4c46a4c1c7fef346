"""The tables of docs/reference/columns.md and file_formats.md, from the source.

python scripts/formats.py    write them between the marks `<!-- table: NAME -->` and `<!-- end -->`
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attlas.corpus_statistics.table import ALSO, COLUMNS, FORMAT, TOKEN_COLUMNS, Column, columns_of
from attlas.data.lines import LONGEST_LINE
from attlas.recording.trace import TRACE_FORMAT
from attlas.runs.run import FILES

_REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGES = (_REFERENCE / "columns.md", _REFERENCE / "file_formats.md")
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """The text of a page, with the tables as the source has them."""
    tables = _tables()
    return _MARKED.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", text)


def _tables() -> dict[str, str]:
    also = columns_of(by_token=False, also=ALSO)
    numbers = {
        "metadata `format` of a trace": f"`{TRACE_FORMAT}`",
        "format number of the columns of `attlas stats`": str(FORMAT),
        "longest line of a text, in bytes": f"{LONGEST_LINE:,}",
    }
    return {
        "columns": _table("column", _meanings(COLUMNS)),
        "also": _table("column", _meanings(also, COLUMNS)),
        "token": _table("column", _meanings(TOKEN_COLUMNS, COLUMNS)),
        "run": _table("file", {f"`{name}`": meaning for name, meaning in FILES.items()}),
        "numbers": _table("number", numbers),
    }


def _meanings(columns: Iterable[Column], known: Iterable[Column] = ()) -> dict[str, str]:
    """The columns that are not known yet, and what they mean."""
    names = {column.name for column in known}
    return {f"`{column.name}`": column.meaning for column in columns if column.name not in names}


def _table(head: str, meanings: Mapping[str, str]) -> str:
    rows = [f"| {name} | {meaning} |" for name, meaning in meanings.items()]
    return "\n".join([f"| {head} | meaning |", "|---|---|", *rows])


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
