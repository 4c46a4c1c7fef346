"""The listing is the architecture: imports point upwards in a list of strata, without a circle."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "attlas"

# From the bottom to the top; the members of one set do not know each other.
STRATA: tuple[set[str], ...] = (
    {"errors"},
    {"_text"},
    {"_files", "_hardware", "_output", "_parallel", "_signals"},
    {"config", "patterns"},
    {"recording"},
    {"ops", "monitoring"},
    {"layers", "reference"},
    {"models", "data", "metrics"},
    {"decoding"},
    {"runs"},
    {"export"},
    {"inference"},
    {"training", "analysis", "corpus_statistics", "figures"},
    {"explorer"},
    {"lab"},
    {"jobs"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(STRATA) for name in names}
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("attlas", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): file
    for file in FILES
}
# The doors of the package open onto everything, and what is copied out imports nothing of ours.
DOORS = ("__init__", "__main__")


def stratum(file: Path) -> str:
    """The first part of a module's path inside the package."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file: Path) -> set[str]:
    """The modules of attlas that a file imports, at the top or inside a function.

    What only a type checker imports doesn't count.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    unread: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            unread.update(id(inner) for inner in ast.walk(node))
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                names.add(inner if inner in MODULES else node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name in MODULES}
    return names


def cyclic(graph: dict[str, set[str]]) -> set[str]:
    """The nodes that are left when those without a way on are taken away, again and again."""
    left = {node: {other for other in others if other != node} for node, others in graph.items()}
    while True:
        ends = {node for node, others in left.items() if not others & left.keys()}
        starts = left.keys() - set().union(*left.values())
        if not ends | starts:
            return set(left)
        left = {node: others for node, others in left.items() if node not in ends | starts}


def test_every_folder_is_a_stratum() -> None:
    known = {*RANK, *DOORS, "recipes", "__pycache__"}
    assert {stratum(file) for file in FILES} <= known


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_only_upwards(file: Path) -> None:
    here = stratum(file)
    if here in DOORS:
        return
    allowed = {name for name in RANK if RANK[name] < RANK[here]} | {here}
    assert {name.split(".")[1] for name in imported(file) if "." in name} <= allowed


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {name: imported(file) for name, file in MODULES.items() if name != "attlas"}
    assert cyclic(graph) == set()


def test_no_folders_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, file in MODULES.items():
        if stratum(file) not in DOORS:
            others = {other.split(".")[1] for other in imported(file) if "." in other}
            graph.setdefault(name.split(".")[1], set()).update(others)
    assert cyclic(graph) == set()


def test_the_search_for_circles_finds_one() -> None:
    assert cyclic({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"c"}, "e": {"e"}}) == {"b", "c"}


def test_nothing_is_called_utils_helpers_or_common() -> None:
    forbidden = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not [file for file in FILES if file.stem in forbidden or stratum(file) in forbidden]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_module_is_a_topic_of_at_most_800_lines(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 800
