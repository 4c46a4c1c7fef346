"""Where a path of a recipe leads."""

from pathlib import Path

from attlas.errors import AttlasError


def resolved(base: Path, path: str) -> Path:
    """The path from `base`, the folder of the recipe file; ~ is the user's home, ~name another's.

    Where there is no such user, the name is one like any other.

    Errors: `AttlasError` for one that is no UTF-8, which a run could not hold.
    """
    try:
        found = base / Path(path).expanduser()
    except RuntimeError:
        found = base / path
    try:
        str(found).encode()
    except UnicodeEncodeError:
        raise AttlasError(
            "data at a path that is UTF-8, because the run holds it",
            ascii(str(found)),
            "rename the folder, or work in another one",
        ) from None
    return found
