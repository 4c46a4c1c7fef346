"""What a translation depends on, beside its text."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attlas.cli.part import Origin
from attlas.data import Vocabularies
from attlas.decoding import Translator
from attlas.exporting.subject import Subject
from attlas.runs import BEST, LAST, Run

_DIGITS = 16  # hexadecimal


def origin_of(
    run: Run, checkpoint: str, translator: Translator, *, numbered: bool, window: int
) -> Origin:
    """What a change of would change a translation, but for the roundings of another machine."""
    name = run.shelf.named(checkpoint) if checkpoint in (BEST, LAST) else checkpoint
    subject = Subject(run, name or checkpoint, translator.model, translator.vocabularies)
    settings = translator.config.model_dump(mode="json")
    return {
        "attlas": version("attlas"),
        "checkpoint": f"{subject.checkpoint} ({subject.weights[:_DIGITS]})",
        "model": short(hashlib.sha256(repr(sorted(run.table("model").items())).encode())),
        "vocabularies": _checksum(translator.vocabularies),
        "engine": str(translator.facts.get("engine", "attlas")),
        "device": translator.device.type,
        "n-best lists": numbered,
        "window": window,
        **{f"decoding.{key}": value for key, value in settings.items()},
    }


def _checksum(vocabularies: Vocabularies) -> str:
    digest = hashlib.sha256()
    with TemporaryDirectory() as folder:
        vocabularies.save(Path(folder))
        for file in sorted(Path(folder).iterdir()):
            digest.update(f"{file.name}\n".encode())
            digest.update(file.read_bytes())
    return short(digest)


def short(digest: Any) -> str:
    """A checksum from hashlib, long enough to tell texts apart and short enough for a message."""
    whole: str = digest.hexdigest()
    return whole[:_DIGITS]
