"""Where the numbers of a run come from."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import attlas
from attlas.data import Splits


def provenance(splits: Splits, seed: int) -> dict[str, Any]:
    """Versions, commit (None outside a checkout), seed, and the checksum of each split."""
    return {
        "attlas": _version("attlas"),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.platform(),
        "seed": seed,
        "data": checksums(splits),
    }


def checksums(splits: Splits) -> dict[str, dict[str, Any]]:
    """Name, number of pairs and SHA-256 of each split."""
    named = {"train": splits.train, "valid": splits.valid, "test": splits.test}
    return {
        name: {"name": corpus.name, "pairs": len(corpus), "sha256": corpus.checksum}
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
