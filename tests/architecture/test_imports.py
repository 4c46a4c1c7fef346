"""The listing is the architecture: imports point only to the left."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "attlas"

# Left to right; the members of one set do not know each other.
STRATA: tuple[set[str], ...] = (
    {"errors"},
    {"allocator", "config", "patterns", "processor"},
    {"recording"},
    {"layers", "reference"},
    {"models", "data", "metrics"},
    {"runs"},
    {"decoding", "classifying"},
    {"training", "exporting"},
    {"analysis"},
    {"figures"},
    {"explorer", "cli"},
)
RANK = {name: rank for rank, names in enumerate(STRATA) for name in names}
FILES = sorted(SOURCE.rglob("*.py"))


def stratum(file: Path) -> str:
    """The first part of a module's path inside the package."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file: Path) -> set[str]:
    """The strata that a file imports, at the top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            parts = node.module.split(".")
            if parts == ["attlas"]:
                names |= {alias.name for alias in node.names if alias.name in RANK}
            elif parts[0] == "attlas":
                names.add(parts[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("attlas.")}
    return names


def test_every_folder_is_a_stratum() -> None:
    known = set(RANK) | {"__init__", "__main__", "recipes", "__pycache__"}
    assert {stratum(file) for file in FILES} <= known


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_only_to_the_left(file: Path) -> None:
    here = stratum(file)
    if here in ("__init__", "__main__"):
        return  # the doors of the package open onto everything
    # The command line starts the explorer; nobody starts the command line.
    allowed = {name for name in RANK if RANK[name] < RANK[here]} | {here}
    allowed |= {"explorer"} if here == "cli" else set()
    assert imported(file) <= allowed


def test_nothing_is_called_utils_helpers_or_common() -> None:
    forbidden = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not [file for file in FILES if file.stem in forbidden or stratum(file) in forbidden]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_module_is_a_topic_of_at_most_800_lines(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 800
