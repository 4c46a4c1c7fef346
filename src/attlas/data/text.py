"""A text that can be read and written."""

from attlas.errors import AttlasError

_BYTES = range(0xDC80, 0xDD00)  # what stands for bytes of the command line that are not UTF-8


def whole_text(text: str) -> str:
    """The text, if every character of it is one; no file and no vocabulary can hold the others.

    Errors: `AttlasError` for half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        came = f"half of a surrogate pair, U+{half:04X}, at character {error.start}"
        if half in _BYTES:
            came = f"{came}: Python's sign for byte 0x{half - _BYTES.start + 0x80:02x}, not UTF-8"
        raise AttlasError(
            "text in Unicode",
            came,
            "send whole characters, or read the text with errors='replace'",
        ) from None
    return text
