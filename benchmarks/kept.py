"""What contenders keep of a course, so that it can go on after it was broken off."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attlas.errors import AttlasError

TOLD = "told.json"  # what a contender was told


@contextmanager
def place(kept: Path | None, name: str) -> Iterator[Path]:
    """Where contenders work: a folder that is gone afterwards, or one of this name, kept."""
    if kept is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = kept.resolve() / name
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def check_same(reported: dict[str, Any], folder: Path) -> None:
    """That what is kept here is of what is asked for now, wherever it lies.

    Errors: `AttlasError` where it is not.
    """
    before = folder / TOLD
    if not before.is_file():
        return
    kept, requested = (
        json.loads(before.read_text(encoding="utf-8")),
        json.loads(json.dumps(reported)),
    )
    others = sorted(
        k for k in requested if k not in ("corpus", "run") and kept.get(k) != requested[k]
    )
    if others:
        raise AttlasError(
            f"the course that {folder} keeps", f"one with another {', '.join(others)}",
            "name another --kept, or ask for what was asked for there",
        )  # fmt: skip
