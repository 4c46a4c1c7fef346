"""The sizes of which a mechanism is made."""

from numbers import Integral

from attlas.errors import AttlasError


def check_widths(**widths: int | None) -> None:
    """Errors: `AttlasError` for a size that is no whole number ≥ 1; None has its own meaning."""
    for name, width in widths.items():
        whole = isinstance(width, Integral) and not isinstance(width, bool)
        if width is not None and not (whole and width >= 1):
            raise AttlasError(f"{name} as a whole number ≥ 1", repr(width), "choose such a size")
