"""Symbols that somebody defines: placeholders and tags, each of which is one token."""

import re
from collections.abc import Iterable, Iterator, Sequence

from attlas.data.normalization import Normalization, normalized
from attlas.data.vocabulary import SPECIAL
from attlas.errors import AttlasError

_OF_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def check_symbols(symbols: Sequence[str], normalization: Normalization) -> None:
    """That each of them can be a token.

    Errors: `AttlasError` for one that is empty, repeats, holds white space or what sentencepiece
    keeps to itself, stands for a special token or a byte, or that `normalization` would change.
    """
    for place, symbol in enumerate(symbols):
        why = ""
        if not symbol or any(map(str.isspace, symbol)):
            why = "is empty or holds white space"
        elif symbol in symbols[:place]:
            why = "is there twice"
        elif symbol in SPECIAL or _OF_BYTE.fullmatch(symbol):
            why = "is the name of another token"
        elif {"\u2581", "\u2585"} & {*symbol} or "\0" in symbol:
            why = "holds a character that sentencepiece keeps to itself"
        elif normalized(symbol, normalization) != symbol:
            why = f"is not in the form {normalization.upper()} of Unicode"
        if why:
            raise AttlasError(
                "vocabulary.user_defined_symbols such as <num> or __URL__",
                f"{symbol!r}, which {why}",
                "write another one",
            )


class Symbols:
    """Where the symbols stand in a text; of two that begin at one place the longer one counts."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.all = tuple(symbols)
        longest_first = sorted(self.all, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The parts of a text in their order, none of them empty; whether one is a symbol."""
        if not self.all:
            yield from [(text, False)] if text else []
            return
        for place, part in enumerate(self._pattern.split(text)):
            if part:
                yield part, place % 2 == 1
