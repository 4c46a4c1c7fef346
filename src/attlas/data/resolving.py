"""Where a path of a recipe leads."""

from pathlib import Path


def resolved(base: Path, path: str) -> Path:
    """The path from `base`, the folder of the recipe file; ~ is the user's home, ~name another's.

    Where there is no such user, the name is one like any other.
    """
    try:
        return base / Path(path).expanduser()
    except RuntimeError:
        return base / path
