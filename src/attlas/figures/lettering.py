"""Tokens as a person reads them in a figure, and the fonts that draw them."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from matplotlib.font_manager import FontProperties

from attlas.figures.fonts import families

LONGEST = 28  # characters; a longer token loses its middle, visibly
_SHOWN = {"\u2581": "·", "\t": "⇥", "\n": "⏎", "\r": "⏎"}  # U+2581: sentencepiece's mark of a space
_SHOWN_BY_CATEGORY = {"Zs": "·", "Zl": "⏎", "Zp": "⏎"}


@dataclass(frozen=True)
class Lettering:
    """The letters of a figure: every text that will stand in it, known before it is drawn.

    Errors: as `attlas.figures.fonts.families`, when a label is first asked for.
    """

    texts: frozenset[str]

    @classmethod
    def of(cls, *groups: Iterable[str]) -> "Lettering":
        """The lettering of these groups of tokens."""
        return cls(frozenset(text for group in groups for text in group))

    def label(self, token: str) -> str:
        """The token on one line: spaces and line ends as marks, nothing invisible, no box."""
        if not token:
            return "“”"
        if all(unicodedata.category(c) == "Cf" for c in token):
            return _shortened([_code_point(c) for c in token])
        _, missing = self._fonts
        return _shortened([_shown(c, missing) for c in token])

    def line(self, text: str) -> str:
        """A title: as it is, but for what a font or a line cannot hold."""
        _, missing = self._fonts
        return "".join(c if c == " " else _shown(c, missing) for c in text)

    def style(self, size: float) -> dict[str, Any]:
        """Keyword arguments of a matplotlib text of this size in points.

        Tokens are no formulas: "$" and "\\" stand for themselves.
        """
        chosen, _ = self._fonts
        font = FontProperties(family=chosen, size=size)
        return {"fontproperties": font, "parse_math": False, "usetex": False}

    @cached_property
    def _fonts(self) -> tuple[list[str], frozenset[str]]:
        needed = {_mark(c) for text in self.texts for c in text}
        return families(c for c in needed if not _is_unprintable(c))


def _shown(character: str, missing: frozenset[str]) -> str:
    mark = _mark(character)
    if unicodedata.category(mark) == "Cf" and mark in missing:
        return ""  # joiners and directions: nothing to see
    return _code_point(mark) if _is_unprintable(mark) or mark in missing else mark


def _mark(character: str) -> str:
    by_category = _SHOWN_BY_CATEGORY.get(unicodedata.category(character), character)
    return _SHOWN.get(character, by_category)


def _is_unprintable(character: str) -> bool:
    """Control characters and lone surrogates: no font is asked for them."""
    return unicodedata.category(character) in ("Cc", "Cs")


def _code_point(character: str) -> str:
    return f"‹U+{ord(character):04X}›"


def _shortened(signs: Sequence[str]) -> str:
    whole = "".join(signs)
    if len(whole) <= LONGEST:
        return whole
    head, tail = _fitting(signs, LONGEST // 2), _fitting(signs[::-1], LONGEST // 2 - 1)[::-1]
    while tail and unicodedata.combining(tail[0][:1] or " "):  # a mark without its letter
        tail = tail[1:]
    return f"{''.join(head)}…{''.join(tail)}"


def _fitting(signs: Sequence[str], room: int) -> Sequence[str]:
    """As many of the first signs as fit into so many characters."""
    lengths = accumulate(map(len, signs))
    return signs[: sum(length <= room for length in lengths)]
