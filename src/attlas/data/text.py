"""A text that can be read and written."""

from attlas.errors import AttlasError


def whole_text(text: str) -> str:
    """The text, if every character of it is one; no file and no vocabulary can hold the others.

    Errors: `AttlasError` for half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise AttlasError(
            "text in Unicode",
            f"half of a surrogate pair, U+{ord(text[error.start]):04X}, at character {error.start}",
            "send whole characters, or read the text with errors='replace'",
        ) from None
    return text
