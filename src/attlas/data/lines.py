"""Lines of a text file: UTF-8, perhaps gzipped, split on line feeds alone."""

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, cast

from attlas._text import count_noun
from attlas.errors import AttlasError, DataError

STDIN = "-"
LONGEST_LINE = 2**24  # bytes, its end included: a file may have no end, and a small gzip hold much
_AT_ONCE = 2**18  # bytes that are read at once, of many lines
_GZIP = b"\x1f\x8b"
_PACKED = {
    b"PK\x03\x04": "an archive (zip)",
    b"\xfd7zXZ\x00": "an xz file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
}
_NO_TEXT = {
    b"\x7fELF": "a program",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF-": "a PDF document",
}
_TAR, _TAR_AT = (b"ustar\x00", b"ustar  \x00"), 257  # of POSIX, of GNU
_BYTE_ORDER_MARK = "\ufeff"


class MissingFileError(DataError):
    """The file does not exist."""


@contextmanager
def coming_from(origin: str, setting: str) -> Iterator[None]:
    """If a file is missing in the block, say where to get it; "" = unknown.

    Args:
        setting: The one that names the file, such as "data.train".
    """
    try:
        yield
    except MissingFileError as error:
        if not origin:
            raise
        advice = f"get it from {origin}, or name another with --set {setting}=…"
        raise MissingFileError(error.expected, error.got, advice) from None


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file, without their line feeds, and the name to use in messages.

    Only "\\n" ends a line: U+2028, "\\x85" or a lone "\\r" are part of the text. The last line
    counts with or without "\\n"; nothing after the last "\\n" is not a line. Two things are taken
    off because they belong to the file and not to its text: a byte order mark at the very start,
    and, in a file from Windows, one "\\r" before "\\n"; `carriage_returns` says how many of them.
    """

    name: str
    texts: tuple[str, ...]
    carriage_returns: int = 0

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def returns_inside(self) -> int:
        """How many carriage returns are part of the text."""
        return sum(text.count("\r") for text in self.texts)

    @property
    def rows(self) -> tuple[str, ...]:
        """The lines of a table, in which blank ones at the end are none."""
        last = len(self.texts)
        while last and not self.texts[last - 1].strip(" "):
            last -= 1
        return self.texts[:last]


class StreamedLines:
    """The lines of a file one by one, as `Lines` has them, for a file that is too large for memory.

    What `Lines` knows of a whole file is known when all lines were read.
    """

    def __init__(self, path: Path | str) -> None:
        self.name, self._path = shown_path(path), path
        self.count = self.carriage_returns = self.returns_inside = 0

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[list[str]]:
        """Some thousand lines at a time; of long ones fewer."""
        blocks = _of_file(self._path, self.name, _line_blocks)
        first = next(blocks, b"")
        if first.count(b"\n") == 1:
            first += next(blocks, b"")  # nothing, if the file has one line
        texts = self._counted(first)
        if len(texts) == 1 and not self.carriage_returns and self.returns_inside:
            raise _of_old_macs(self.name, self.returns_inside, "one line feed")
        yield texts
        for block in blocks:
            plain = _plain_texts(block)
            if plain is None:  # then line by line, for what there is to count or to refuse
                yield self._counted(block)
            else:
                self.count += len(plain)
                yield plain

    def _counted(self, block: bytes) -> list[str]:
        texts = []
        for raw in io.BytesIO(block):
            self.count += 1
            text, had_return = _decoded_line(raw, self.count, self.name)
            self.carriage_returns += had_return
            self.returns_inside += text.count("\r")
            texts.append(text)
        return texts

    @property
    def rows(self) -> Iterator[str]:
        """The lines of a table, in which blank ones at the end are none."""
        blank: list[str] = []
        for text in self:
            if text and text.strip(" "):
                if blank:
                    yield from blank
                    blank = []
                yield text
            else:
                blank.append(text)


def read_lines(path: Path | str) -> Lines:
    """Read a whole file; "-" is the standard input. Gzip is known by its first bytes, not its name.

    Raises:
        MissingFileError: If not.
        DataError: For an unreadable file, for an archive, for a line of more than `LONGEST_LINE`
            bytes, for bytes that are not UTF-8, with file and line, and for a file whose lines end
            with carriage returns alone.
    """
    texts, returned = [], 0
    for text, had_return in _decoded(path):
        texts.append(text)
        returned += had_return
    if len(texts) == 1 and not returned and "\r" in texts[0]:  # one line feed, at the very end
        raise _of_old_macs(shown_path(path), texts[0].count("\r"), "one line feed")
    return Lines(shown_path(path), tuple(texts), returned)


def stream_lines(path: Path | str, name: str | None = None) -> Iterator[str]:
    """The same lines one by one, each as soon as it is there.

    Args:
        name: What a message calls the file, where that is a copy of another.

    Raises:
        DataError: As `read_lines`.
    """
    return (text for text, _ in _decoded(path, name))


def open_input(path: Path) -> IO[bytes]:
    """The bytes of a file. A name that no file can have, with U+0000 in it, is an `OSError` too."""
    try:
        return path.open("rb")
    except ValueError as error:
        raise OSError(str(error)) from None


def check_given_again(run: Path, advice: str) -> None:
    """Check that the standard input is no terminal if data must come from it again.

    Args:
        run: What began with that data.
        advice: What to do, in words.

    Raises:
        DataError: If it is a terminal.
    """
    if sys.stdin.isatty():
        raise DataError(
            f"the data with which {run} began, which came from the standard input",
            "a terminal there",
            advice,
        )


def shown_path(path: Path | str) -> str:
    """How a message names this file."""
    return "the standard input" if str(path) == STDIN else str(path)


def _decoded(path: Path | str, name: str | None = None) -> Iterator[tuple[str, bool]]:
    """Each line, and whether a carriage return was taken off its end."""
    name = shown_path(path) if name is None else name
    for number, raw in enumerate(_of_file(path, name, _bounded), 1):
        yield _decoded_line(raw, number, name)


def _decoded_line(raw: bytes, number: int, name: str) -> tuple[str, bool]:
    if number == 1 and b"\r" in raw and not raw.endswith(b"\n"):  # and so the file ends here
        raise _of_old_macs(name, raw.count(b"\r"), "no line feed")
    had_return = raw.endswith(b"\r\n")
    line = raw.removesuffix(b"\r\n") if had_return else raw.removesuffix(b"\n")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"UTF-8 text in {name}",
            f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of line {number}",
            "convert the file to UTF-8 (for example with iconv)",
        ) from None
    return text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text, had_return


def _plain_texts(block: bytes) -> list[str] | None:
    """The texts of lines that are UTF-8 and hold no carriage return; None where others are."""
    if b"\r" in block:
        return None
    try:
        texts = block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if block.endswith(b"\n"):
        del texts[-1]
    return texts


def _of_old_macs(name: str, returns: int, feeds: str) -> AttlasError:
    """The error for a file that ends its lines as Mac OS did before 2001."""
    return DataError(
        f"lines that end with a line feed in {name}",
        f"{count_noun(returns, 'carriage return')} and {feeds}",
        r"convert it, for example with tr '\r' '\n' < OLD > NEW",
    )


_Text = gzip.GzipFile | io.BufferedReader


def _of_file(
    path: Path | str, name: str, divided: Callable[[_Text, str], Iterator[bytes]]
) -> Iterator[bytes]:
    """The bytes of a file, divided after b"\\n" alone, which is what a binary file does."""
    try:
        if str(path) == STDIN:
            yield from divided(_unzipped(sys.stdin.buffer, name), name)
        else:
            with open_input(Path(path)) as file:
                yield from divided(_unzipped(file, name), name)
    except FileNotFoundError:
        raise MissingFileError("a text file", f"no file at {name}", "check the path") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"a whole gzip file at {name}", f"a damaged one ({error})", "copy or pack it again"
        ) from None
    except OSError as error:
        raise DataError(
            f"a readable file at {name}", error.strerror or str(error), "check it"
        ) from None


def _bounded(text: _Text, name: str) -> Iterator[bytes]:
    """Its lines, none of them so long that it would take all memory."""
    number = 1
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise _too_long(name, number)
        yield line
        number += 1


def _line_blocks(text: _Text, name: str) -> Iterator[bytes]:
    """The same, many lines at a time."""
    number, begun = 1, b""  # the line that is not read to its end, and how it begins
    while content := text.read(min(_AT_ONCE, LONGEST_LINE)):
        end = content.rfind(b"\n") + 1
        if len(begun) + (content.find(b"\n") + 1 or len(content)) > LONGEST_LINE:
            raise _too_long(name, number)
        if end:
            block = begun + content[:end]
            number += block.count(b"\n")
            yield block
            begun = b""
        begun += content[end:]
    if begun:
        yield begun


def _too_long(name: str, number: int) -> DataError:
    return DataError(
        f"lines of at most {LONGEST_LINE:,} bytes in {name}",
        f"a longer one, line {number:,}",
        "check that this is the right file, or divide that line",
    )


def _unzipped(file: IO[bytes] | io.BufferedIOBase, name: str) -> _Text:
    # A replaced standard input may have no `peek`.
    reader = file if isinstance(file, io.BufferedReader) else _peekable(file.read())
    zipped = reader.peek(2)[:2] == _GZIP
    text: _Text = gzip.GzipFile(fileobj=reader) if zipped else reader
    begin = text.peek(_TAR_AT + max(map(len, _TAR)))
    packed = next((kind for magic, kind in _PACKED.items() if begin.startswith(magic)), None)
    if begin.startswith(_TAR, _TAR_AT):
        packed = "an archive (tar)"
    if packed is not None:
        raise DataError(
            f"a text file, plain or gzipped, at {name}", packed, "unpack it, and name what is in it"
        )
    other = next((kind for magic, kind in _NO_TEXT.items() if begin.startswith(magic)), None)
    if other is not None:
        raise DataError(f"a text file at {name}", other, "name a file of text")
    if _is_utf_16(begin):
        raise DataError(
            f"UTF-8 text in {name}",
            "a NUL in every other byte, as in UTF-16",
            "convert the file to UTF-8 (for example with iconv -f UTF-16 -t UTF-8)",
        )
    return text


def _is_utf_16(begin: bytes) -> bool:
    """Return True if it begins like Latin letters in UTF-16, which are also valid UTF-8."""
    begin = begin[: len(begin) // 2 * 2]
    halves = [half_bytes.count(0) for half_bytes in (begin[::2], begin[1::2])]
    return min(halves) == 0 and max(halves) > 1 and max(halves) * 4 >= len(begin)


def _peekable(content: bytes) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content)))
