"""Which state of the source the results are of: a commit, or one with changes, which is told."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a figure depends on; the results and their tables are what comes of it.
SOURCE = (
    "src", "benchmarks", "pyproject.toml", "constraints.txt",
    ":(exclude)benchmarks/results.json", ":(exclude)benchmarks/README.md",
    ":(exclude)benchmarks/explorer.json",
)  # fmt: skip


def warning() -> str:
    """What to say where nobody could measure the same again; else nothing."""
    known = commit()
    if known is None:
        said = ["This is no checkout: the results cannot say which source they are of."]
    elif known.endswith("+"):
        said = [
            f"The source is not that of a commit: the results will say {known}.",
            "Commit these first, and measure then:",
            *(changes := _changes())[:10],
            *([f"and {len(changes) - 10} more"] if len(changes) > 10 else []),
        ]
    else:
        return ""
    line = "!" * 80
    return "\n".join([line, *(f"!!! {one}" for one in said), line, ""])


def commit() -> str | None:
    """Of the source; "+" where it is not as that commit has it."""
    found = _git("rev-parse", "--short", "HEAD")
    return found and found.strip() + "+" * bool(_changes())


def _changes() -> list[str]:
    """What of the source is not as the commit has it."""
    return (_git("status", "--porcelain", "--", *SOURCE) or "").splitlines()


def _git(*words: str) -> str | None:
    """What git says; None where there is none, or no checkout."""
    git = ["git", "--no-optional-locks", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(git, capture_output=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
