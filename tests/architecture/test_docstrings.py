"""Every public thing says what it is."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "attlas"
FILES = sorted(SOURCE.rglob("*.py"))


def undocumented(tree: ast.Module) -> list[str]:
    """Public methods without a docstring in classes that inherit from nothing of ours.

    A method that overrides says no more than what it overrides; the linter asks for the rest
    (modules, classes, functions).
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.bases and not node.name.startswith("_"):
            found += [
                f"{node.name}.{item.name}"
                for item in node.body
                if isinstance(item, ast.FunctionDef)
                and not item.name.startswith("_")
                and ast.get_docstring(item) is None
            ]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_every_public_method_of_a_root_class_has_a_docstring(file: Path) -> None:
    assert undocumented(ast.parse(file.read_text(encoding="utf-8"))) == []
