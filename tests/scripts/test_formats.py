"""The tables of docs/reference/columns.md and file_formats.md, and the script that writes them."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from attlas.corpus_statistics.table import ALSO, columns_of

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "formats.py"


@pytest.fixture(scope="module")
def formats() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_tables_are_what_the_source_says(formats: dict[str, Any]) -> None:
    for path in formats["PAGES"]:
        text = path.read_text(encoding="utf-8")
        assert formats["page"](text) == text


def test_every_column_has_one_row(formats: dict[str, Any]) -> None:
    lines = formats["PAGES"][0].read_text(encoding="utf-8").splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert sorted(rows) == sorted(column.name for column in columns_of(by_token=True, also=ALSO))
