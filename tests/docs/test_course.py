"""The chapters of the course as notebooks."""

import ast
import runpy
from pathlib import Path

import pytest

from support.pages import ROOT, pages

NOTEBOOKS = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))
CHAPTERS: list[Path] = NOTEBOOKS["chapters"]()


def test_every_page_of_the_course_but_its_index_is_a_chapter() -> None:
    folder = ROOT / "docs" / "course"
    course = {page for page in pages() if page.parent == folder} - {folder / "index.md"}
    assert set(CHAPTERS) == course
    assert len(course) == 4


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_notebook_has_all_of_its_page_and_the_fields_of_its_format(
    page: Path, tmp_path: Path
) -> None:
    notebook = NOTEBOOKS["notebook"](page, tmp_path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    fields = {"cell_type", "id", "metadata", "source"}
    for cell in cells:
        more = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == fields | more
    text = page.read_text("utf-8")
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == text.count("{code-cell}")
    for source in code:
        ast.parse(source)
    written = sum(len("".join(cell["source"]).split()) for cell in cells)
    fences = 3 * text.count("{code-cell}")  # ```{code-cell} ipython3 … ```
    header = len(text.split("---\n")[1].split()) + 2
    assert written == len(text.split()) - fences - header


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_links_of_a_notebook_lead_to_pages(page: Path, tmp_path: Path) -> None:
    cells = NOTEBOOKS["notebook"](page, tmp_path)["cells"]
    prose = "".join(
        line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"]
    )
    targets = [part.partition(")")[0].partition("#")[0] for part in prose.split("](")[1:]]
    assert targets
    assert [target for target in targets if not (tmp_path / target).exists()] == []
