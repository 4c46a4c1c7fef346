"""Figures as files: the same figure gives the same bytes, whatever the machine's clock says."""

import threading
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.text import Text

from attlas.errors import AttlasError

# What matplotlib would fill with a date or its version.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "attlas"},
    ".svg": {"Creator": "attlas", "Date": None},
    ".pdf": {"Creator": "attlas", "Producer": "attlas", "CreationDate": None},
}
_settings = threading.Lock()  # matplotlib keeps these settings in one place for all threads


def save(figure: Figure, path: Path | str) -> None:
    """Write a PNG, SVG or PDF, by the suffix of the path.

    An SVG's text stays text. A PDF holds the outlines of the letters it needs, as TrueType where
    the fonts are, which journals ask for.

    Errors: `AttlasError` for another suffix, or a path that cannot be written.
    """
    path = Path(path)
    suffix = suffix_of(path)
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "attlas",
        "pdf.fonttype": 42 if _all_truetype(figure) else 3,
    }
    with _settings, mpl.rc_context(settings):
        try:
            figure.savefig(path, format=suffix[1:], metadata=_METADATA[suffix])
        except OSError as error:
            raise AttlasError(
                f"to write {path}", error.strerror or str(error), "choose a folder that exists"
            ) from None


def suffix_of(path: Path) -> str:
    """ ".png", ".svg" or ".pdf". Errors: `AttlasError` for any other."""
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise AttlasError(
            f"a file name that ends in {', '.join(_METADATA)}", str(path), "choose one of these"
        )
    return suffix


def _all_truetype(figure: Figure) -> bool:
    """Type 42 is for TrueType outlines alone: letters of an OpenType/CFF font would be lost."""
    names = {n for text in figure.findobj(Text) for n in text.get_fontfamily()}
    paths = {str(findfont(FontProperties(family=[name]))) for name in names}
    return all(Path(path).read_bytes()[:4] in (b"\x00\x01\x00\x00", b"true") for path in paths)
