"""Checksums of what numbers depend on: long enough to tell things apart, short for a message."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attlas.data import LabelledVocabularies, Vocabularies
from attlas.exporting.subject import Subject
from attlas.runs import BEST, LAST, Run

_DIGITS = 16  # hexadecimal


def short(digest: Any) -> str:
    """Of a digest from hashlib."""
    whole: str = digest.hexdigest()
    return whole[:_DIGITS]


def of_text(text: str) -> str:
    """The SHA-256 of a text in UTF-8."""
    return short(hashlib.sha256(text.encode()))


def of_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by its name."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def of_vocabularies(vocabularies: Vocabularies | LabelledVocabularies) -> str:
    """Of the names and the bytes of the files that they are saved as."""
    digest = hashlib.sha256()
    with TemporaryDirectory() as folder:
        vocabularies.save(Path(folder))
        for file in sorted(Path(folder).iterdir()):
            digest.update(f"{file.name}\n".encode())
            digest.update(file.read_bytes())
    return short(digest)


def of_settings(run: Run) -> str:
    """Of the settings of a run's model."""
    return of_text(repr(sorted(run.table("model").items())))


def of_checkpoint(run: Run, which: str, model: Any, vocabularies: Any) -> str:
    """The own name of a checkpoint, also where "best" or "last" was asked for, with a checksum of
    its weights.
    """
    name = run.shelf.named(which) if which in (BEST, LAST) else which
    subject = Subject(run, name or which, model, vocabularies)
    return f"{subject.checkpoint} ({subject.weights[:_DIGITS]})"
