"""Where a path of a recipe leads."""

from pathlib import Path

from attlas.errors import AttlasError


def resolved(base: Path, path: str) -> Path:
    """The path from `base`, the folder of the recipe file; ~ is the user's home, ~name another's.

    Where there is no such user, the name is one like any other.
    """
    try:
        return base / Path(path).expanduser()
    except RuntimeError:
        return base / path


def resolved_name(base: Path, path: str) -> str:
    """The same as a run holds it.

    Errors: `AttlasError` for one that is no UTF-8.
    """
    found = str(resolved(base, path))
    try:
        found.encode()
    except UnicodeEncodeError:
        raise AttlasError(
            "data at a path that is UTF-8, because the run holds it",
            ascii(found),
            "rename the folder, or work in another one",
        ) from None
    return found
