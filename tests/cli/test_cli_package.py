"""`import attlas`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attlas


def test_importing_attlas_imports_nothing_heavy() -> None:
    code = (
        "import sys, attlas; dir(attlas); "
        "sys.exit(', '.join({'torch', 'numpy', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", attlas.__all__)
def test_every_name_of_the_package_is_there(name: str) -> None:
    assert getattr(attlas, name) is not None
    assert name in dir(attlas)


def test_every_folder_of_the_package_is_a_name_of_it_but_the_command_line() -> None:
    folders = {file.parent.name for file in Path(attlas.__file__).parent.glob("*/__init__.py")}
    assert folders - {"cli"} <= set(attlas.__all__)


def test_a_type_checker_is_told_of_every_name_and_where_it_comes_from() -> None:
    tree = ast.parse(Path(attlas.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {name.name: line.module for line in block.body for name in line.names}
    homes = {
        name: f"attlas.{attlas._HOME[name]}" if name in attlas._HOME else "attlas"
        for name in attlas.__all__
    }
    assert told == homes


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        attlas.nonsense  # noqa: B018
