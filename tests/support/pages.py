"""The pages that people read: README.md and docs/, without what a build leaves there."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pages() -> list[Path]:
    """README.md first, then docs/ by path."""
    docs = ROOT / "docs"
    found = [page for page in docs.rglob("*.md") if "_build" not in page.parts]
    return [ROOT / "README.md", *sorted(found)]
