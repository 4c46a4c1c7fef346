"""Numbers in words, and texts: white space, line breaks, characters that no file can hold."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from attlas.errors import DataError

# How many of something, in words.


def count_noun(number: int, singular: str, plural: str = "") -> str:
    """ "1 pair", "2 pairs", "1,000 batches"; `plural` where it is not `singular` with an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def describe_memory(cpu: int | None, gpu: int | None) -> str:
    """ "peak memory 812 MiB and 96 MiB of the GPU", of bytes; "" where neither is known."""
    amounts = [(cpu, ""), (gpu, " of the GPU")]
    parts = [
        f"{amount / 2**20:,.0f} MiB{device}" for amount, device in amounts if amount is not None
    ]
    return f"peak memory {' and '.join(parts)}" if parts else ""


# Many texts.


_Text = TypeVar("_Text", str, bytes)
_BLOCK, _BLOCK_SIZE = 4096, 2**23
_FEW = 64  # so few texts may be more than a block has room for


def in_blocks(
    texts: Iterator[_Text], most: int = _BLOCK, size: int = _BLOCK_SIZE
) -> Iterator[list[_Text]]:
    """The texts in lists, for work that is faster on many at once.

    Args:
        most: Texts of a list.
        size: Characters after which a list ends, or bytes: long texts come in shorter lists.
    """
    block: list[_Text] = []
    total = 0
    while some := list(islice(texts, min(_FEW, most - len(block)))):
        block += some
        total += sum(map(len, some))
        if len(block) == most or total > size:
            yield block
            block, total = [], 0
    if block:
        yield block


# Line breaks in HTML.


_BREAK = re.compile(r"<\s*(?:/\s*)?br\b[^<>]*>", re.IGNORECASE)


def as_one_line(text: str) -> str:
    """The words of a text with one space between them; `<br>` in all its spellings is white space.

    Texts from web pages break lines by `<br />`, `<BR>`, `</br>` or `<br clear="all">`, which says
    nothing about their meaning.
    """
    return " ".join(_BREAK.sub(" ", text).split())


_BYTES = range(0xDC80, 0xDD00)  # what stands for bytes of the command line that are not UTF-8


def whole_text(text: str) -> str:
    """Return the text if all its characters can be encoded; no file and no vocabulary can hold
    others.

    Raises:
        DataError: If it contains half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = ord(text[error.start])
        got = f"half of a surrogate pair, U+{surrogate:04X}, at character {error.start}"
        if surrogate in _BYTES:
            got = (
                f"{got}: Python's sign for byte 0x{surrogate - _BYTES.start + 0x80:02x}, not UTF-8"
            )
        raise DataError(
            "text in Unicode",
            got,
            "send whole characters, or read the text with errors='replace'",
        ) from None
    return text


def has_part_of_word(pieces: Iterable[str], text: str) -> bool:
    """Return True if one of these pieces of a text is part of a word; of a text without letters and
    digits, if one is more than a space.
    """
    if any(map(str.isalnum, text)):
        return any(any(map(str.isalnum, piece)) for piece in pieces)
    return any(piece != " " for piece in pieces)
