"""Every public thing says what it is."""

import ast
import re
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


SECTION = re.compile(r"^(Args|Returns|Yields|Raises|References|Example|Attributes):$", re.M)
ARGUMENT = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): ", re.M)


def arguments(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """The names that the call takes: parameters, or the fields of a dataclass."""
    if isinstance(node, ast.FunctionDef):
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return {argument.arg for argument in every if argument is not None}
    names = set[str]()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            names.add(item.target.id)
        elif isinstance(item, ast.FunctionDef) and item.name == "__init__":
            names |= arguments(item)
    return names


def unknown_arguments(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """The names under `Args:` that the signature does not have."""
    parts = SECTION.split(ast.get_docstring(node) or "")
    described = [
        text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name == "Args"
    ]
    found = {
        name for text in described for names in ARGUMENT.findall(text) for name in names.split(", ")
    }
    return {name.lstrip("*") for name in found} - arguments(node)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_docstrings_are_in_google_style(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert "Errors:" not in (ast.get_docstring(node) or ""), f"write Raises: in {node.name}"
            assert unknown_arguments(node) == set(), node.name


def test_the_search_for_unknown_arguments_finds_one() -> None:
    source = (
        'def f(a, *b):\n    """Add.\n\n    Args:\n        a, b: Numbers.\n        c: None.\n    """'
    )
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert unknown_arguments(function) == {"c"}
