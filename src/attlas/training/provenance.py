"""Where the numbers of a run come from."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import attlas
from attlas.processor import processor_name
from attlas.training.tasks.task import SplitsLike


def provenance(splits: SplitsLike, example: str, seed: int) -> dict[str, Any]:
    """Versions, machine, commit, seed, and the checksum of each split."""
    return {
        **this_attlas(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.platform(),
        "processor": processor_name(),
        "seed": seed,
        "data": checksums(splits, example),
    }


def this_attlas() -> dict[str, str | None]:
    """The code that is running: its version, and its commit (None outside a checkout)."""
    return {"attlas": _version("attlas"), "commit": _commit()}


def checksums(splits: SplitsLike, example: str) -> dict[str, dict[str, Any]]:
    """Name, number of examples (such as "pairs") and SHA-256 of each split."""
    named = {"train": splits.train, "valid": splits.valid, "test": splits.test}
    return {
        name: {"name": corpus.name, f"{example}s": len(corpus), "sha256": corpus.checksum}
        for name, corpus in named.items()
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that attlas runs from, "+" where files differ from it."""
    file = Path(attlas.__file__)

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(file.parent), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", file.name) is None:  # a checkout of something else
        return None
    commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".")
    return f"{commit}+" if commit and changes else commit
