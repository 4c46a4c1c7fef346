"""What the numbers of a run depend on, beside the texts."""

from typing import Any

from attlas.exporting.checksums import of_checkpoint, of_settings, of_vocabularies
from attlas.runs import Run


def run_facts(run: Run, which: str, model: Any, vocabularies: Any, device: str) -> dict[str, str]:
    """Its checkpoint by name and checksum, its settings and vocabularies by checksum.

    A run that was moved has the same.
    """
    return {
        "model": type(model).__name__,
        "checkpoint": of_checkpoint(run, which, model, vocabularies),
        "settings": of_settings(run),
        "vocabularies": of_vocabularies(vocabularies),
        "device": device,
    }
