"""What the README shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.minilm import minilm

ROOT = Path(__file__).resolve().parents[2]
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    # The model that README.md names comes as a package of the tests, so that nothing is downloaded.
    code = "\n".join(blocks(page)).replace(f'"{MODEL}"', repr(str(minilm())))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_picture_of_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    local = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    assert [target for target in local if not (page.parent / target).exists()] == []


def sentences(page: Path) -> list[str]:
    """The sentences of a page, without code, tables, headings and the targets of links."""
    text = re.sub(
        r"^```.*?^```|<!--.*?-->|^[|#!].*?$", "", page.read_text("utf-8"), flags=re.M | re.S
    )
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return [
        sentence
        for paragraph in re.split(r"\n\s*\n", text)
        for sentence in re.split(r"(?<=[.!?:])\s+", paragraph.strip())
        if sentence
    ]


def test_the_readme_has_at_most_800_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


def test_no_sentence_of_the_readme_has_more_than_30_words() -> None:
    assert [found for found in sentences(ROOT / "README.md") if len(found.split()) > 30] == []
