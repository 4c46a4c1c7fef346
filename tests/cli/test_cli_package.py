"""`import attlas`."""

import subprocess
import sys

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


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        attlas.nonsense  # noqa: B018
