"""What the numbers of a run depend on, beside the texts."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attlas.exporting.subject import Subject
from attlas.runs import BEST, LAST, Run

DIGITS = 16  # hexadecimal: enough to tell models apart, and short enough for a message


def run_facts(run: Run, which: str, model: Any, vocabularies: Any, device: str) -> dict[str, str]:
    """Its checkpoint by name and checksum, its settings and vocabularies by checksum.

    A run that was moved has the same.
    """
    name = run.shelf.named(which) if which in (BEST, LAST) else which
    subject = Subject(run, name or which, model, vocabularies)
    settings = hashlib.sha256(repr(sorted(run.table("model").items())).encode())
    return {
        "model": type(model).__name__,
        "checkpoint": f"{subject.checkpoint} ({subject.weights[:DIGITS]})",
        "settings": settings.hexdigest()[:DIGITS],
        "vocabularies": _checksum(vocabularies),
        "device": device,
    }


def _checksum(vocabularies: Any) -> str:
    digest = hashlib.sha256()
    with TemporaryDirectory() as folder:
        vocabularies.save(Path(folder))
        for file in sorted(Path(folder).iterdir()):
            digest.update(f"{file.name}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:DIGITS]
