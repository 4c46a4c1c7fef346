"""The chapters of the course as Jupyter notebooks.

python scripts/notebooks.py             write them into the folder notebooks
python scripts/notebooks.py -o FOLDER   or into another one

The cells are those of `docs/course`. Links lead to the pages in `docs`.
"""

import argparse
import json
import os
import re
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1] / "docs" / "course"
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```\n?", re.M | re.S)
_HEADER = re.compile(r"\A---\n.*?^---\n", re.M | re.S)
_LINK = re.compile(r"(\]\()([^)#:]+)(#[^)]*)?\)")


def chapters() -> list[Path]:
    """The pages of the course that have code."""
    return sorted(page for page in COURSE.glob("*.md") if _CELL.search(page.read_text("utf-8")))


def notebook(page: Path, folder: Path) -> dict[str, object]:
    """A page as a notebook of `folder`, format 4.5."""
    text = _HEADER.sub("", page.read_text("utf-8"))
    parts = _CELL.split(text)  # prose and code take turns
    cells = [
        _cell(number, part, page, folder, is_code=number % 2 == 1)
        for number, part in enumerate(parts)
        if part.strip()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, text: str, page: Path, folder: Path, *, is_code: bool) -> dict[str, object]:
    def moved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        return (
            f"{link[1]}{Path(os.path.relpath(target, folder.resolve())).as_posix()}{link[3] or ''})"
        )

    source = text if is_code else _LINK.sub(moved, text)
    common = {"id": f"cell-{number}", "metadata": {}, "source": source.strip().splitlines(True)}
    if is_code:
        return {"cell_type": "code", **common, "execution_count": None, "outputs": []}
    return {"cell_type": "markdown", **common}


def main() -> None:
    """Write every chapter into the folder that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("notebooks"), help="the folder")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for page in chapters():
        path = folder / f"{page.stem}.ipynb"
        content = json.dumps(notebook(page, folder), indent=1, ensure_ascii=False)
        path.write_text(f"{content}\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
