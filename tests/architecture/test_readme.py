"""What the README shows runs as it stands."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(page))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_link_and_picture_of_the_readme_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    local = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_the_table_of_results_is_the_one_that_the_records_make() -> None:
    path = ROOT / "scripts" / "results.py"
    spec = importlib.util.spec_from_file_location("results", path)
    assert spec is not None
    assert spec.loader is not None
    results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(results)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert results.with_table(text) == text
