"""Figures as files: the same figure always gives the same bytes."""

import io
import os
import secrets
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.text import Text

from attlas.errors import UnsupportedError, unwritable
from attlas.figures.fonts import BASE

# Metadata in which matplotlib would write a date or its version.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "attlas"},
    ".svg": {"Creator": "attlas", "Date": None},
    ".pdf": {"Creator": "attlas", "Producer": "attlas", "CreationDate": None},
}
_settings = threading.Lock()  # matplotlib keeps these settings in one place for all threads


def save(figure: Figure, path: Path | str) -> None:
    """Write a PNG, SVG or PDF, by the suffix of the path.

    The text of an SVG stays text if `BASE` draws all of it, because every viewer has such letters.
    If another font is needed, the letters are outlines. A PDF embeds the letters that it needs, as
    TrueType where possible, which journals ask for.

    The file is replaced in one step.

    Raises:
        UnsupportedError: For another suffix, or a path that cannot be written.
    """
    path = Path(path)
    content = image_of(figure, figure_suffix(path))
    try:
        _put(memoryview(content), path)
    except OSError as error:
        raise unwritable(path, error) from None


def image_of(figure: Figure, suffix: str) -> bytes:
    """What `save` writes into a file with this suffix."""
    image = io.BytesIO()
    faces = _faces({name for text in figure.findobj(Text) for name in text.get_fontfamily()})
    settings: dict[Any, Any] = {
        "svg.fonttype": "none" if faces <= _faces({BASE}) else "path",
        "svg.hashsalt": "attlas",
        "pdf.fonttype": 42 if _all_truetype(faces) else 3,
    }
    with _settings, mpl.rc_context(settings):
        figure.savefig(image, format=suffix[1:], metadata=_METADATA[suffix])
    return image.getvalue()


def figure_suffix(path: Path) -> str:
    """ ".png", ".svg" or ".pdf".

    Raises:
        UnsupportedError: For any other.
    """
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise UnsupportedError(
            f"a file name that ends in {', '.join(_METADATA)}", str(path), "choose one of these"
        )
    return suffix


def _put(content: memoryview, path: Path) -> None:
    """Write under a temporary name and rename; a pipe, or any other special file, is written
    directly.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    part = target.with_name(f".attlas-{secrets.token_hex(8)}.tmp")
    try:
        part.write_bytes(content)
        with suppress(OSError):  # the rights of what is replaced, if there is something
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _faces(families: Iterable[str]) -> set[Path]:
    """The font files that draw these families."""
    return {Path(str(findfont(FontProperties(family=[name])))) for name in families}


def _all_truetype(faces: Iterable[Path]) -> bool:
    """Type 42 is for TrueType outlines alone: letters of an OpenType/CFF font would be lost."""
    return all(font_file.read_bytes()[:4] in (b"\x00\x01\x00\x00", b"true") for font_file in faces)
