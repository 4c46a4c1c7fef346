"""A file that is whole after a power cut: in which order it reaches the disk."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attlas._files import write_durably

OPERATIONS = ("open", "write", "fsync", "replace")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every operation with the name of what it was done to."""
    operations: list[tuple[str, str]] = []
    opened: dict[int, str] = {}

    def recorded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(what: Any, *arguments: Any) -> Any:
            place = opened[what] if isinstance(what, int) else Path(what).name
            operations.append((name, place))
            result = real(what, *arguments)
            if name == "open":
                opened[result] = place
            return result

        return operation

    for name in OPERATIONS:
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    return operations


def test_the_content_is_safe_before_it_gets_its_name_and_then_the_name_is(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    write_durably(tmp_path / "file", b"content")
    assert done == [
        ("open", "file.tmp"),
        ("write", "file.tmp"),
        ("fsync", "file.tmp"),
        ("replace", "file.tmp"),
        ("open", tmp_path.name),
        ("fsync", tmp_path.name),
    ]
