"""Fonts that draw all characters, so that a figure never shows a box in place of a letter."""

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.font_manager import FontEntry, FontProperties, fontManager, get_font

from attlas.errors import UnsupportedError

BASE = "DejaVu Sans"  # comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more
_EXTRA = "noto_cjk_sans_jp_regular"  # the package behind the extra "cjk"

# Where several fonts know a character, the first of these draws it: sans-serifs that most systems
# hold, made for reading. Every other font that is installed comes after them, by name.
_PREFERRED = (
    "Noto Sans",
    "Noto Sans CJK",
    "Source Han Sans",
    "Hiragino Sans",
    "PingFang",
    "Apple SD Gothic Neo",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "IPAexGothic",
    "Segoe UI",
    "Apple Symbols",
    "Noto Emoji",
    "Symbola",
)


class MissingGlyphs(UserWarning):
    """Some characters are in no font of this machine, and are shown as their code points."""


def families(characters: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """The font families that draw these characters, in order, and those that no font draws.

    Raises:
        UnsupportedError: If Chinese, Japanese or Korean is among the latter, which one command
            mends. A `MissingGlyphs` warning names what no command of ours mends.
    """
    fonts, missing = _chosen(frozenset(characters), len(fontManager.ttflist))
    east = sorted(filter(_is_cjk, missing))
    if east and find_spec(_EXTRA) is None:
        raise UnsupportedError(
            f"a font that has {_list_characters(east)}",
            "a machine where no installed font does",
            "run: pip install 'attlas[cjk]' (or install a system font such as Noto Sans CJK)",
        )
    if missing:
        warnings.warn(
            f"no installed font has {_list_characters(sorted(missing))}: shown as code points; "
            "install a font of that script (the Noto fonts cover nearly all) and draw the figure "
            "again",
            MissingGlyphs,
            stacklevel=3,
        )
    return list(fonts), missing


@lru_cache(maxsize=256)
def _chosen(characters: frozenset[str], num_known: int) -> tuple[tuple[str, ...], frozenset[str]]:
    # `known` is how many faces matplotlib knows: an answer holds until a font is added.
    fonts, missing = [BASE], characters
    for font in _faces(num_known):
        covered = _drawn_by(font, missing)
        missing -= covered
        if covered and font.name != BASE:
            fonts.append(font.name)
        if not missing:
            break
    return tuple(fonts), missing


@lru_cache(maxsize=4)
def _faces(num_known: int) -> tuple[FontEntry, ...]:
    """The plainest face of every family of this machine, in the order in which they are asked."""
    spec = find_spec(_EXTRA)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.otf")):
            if all(font.fname != str(path) for font in fontManager.ttflist):  # it would stand twice
                fontManager.addfont(path)
    families: dict[str, FontEntry] = {}
    for font in sorted(fontManager.ttflist, key=_plainness):
        if "Last Resort" not in font.name:  # it draws a box for every character
            families.setdefault(font.name, font)
    return tuple(sorted(families.values(), key=lambda face: (_rank(face.name), face.name)))


def _plainness(face: FontEntry) -> tuple[bool, bool, bool, str]:
    return face.style != "normal", face.weight != 400, face.stretch != "normal", str(face.fname)


def _rank(family: str) -> int:
    if family == BASE:
        return -1
    # "Noto Sans CJK JP" belongs to "Noto Sans CJK" rather than to the shorter "Noto Sans".
    fits = [i for i, name in enumerate(_PREFERRED) if f"{family} ".startswith(f"{name} ")]
    return max(fits, key=lambda i: len(_PREFERRED[i]), default=len(_PREFERRED))


def _drawn_by(face: FontEntry, characters: frozenset[str]) -> frozenset[str]:
    try:
        font = get_font(face.fname)
        return frozenset(c for c in characters if font.get_char_index(ord(c)))
    except (OSError, RuntimeError):  # a font that is gone or damaged draws nothing
        return frozenset()


def _is_cjk(character: str) -> bool:
    scripts = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "HALFWIDTH")
    punctuation = "\u3000" <= character <= "\u303f"
    return punctuation or unicodedata.name(character, "").startswith(scripts)


def _list_characters(characters: list[str]) -> str:
    """Up to eight of them, and how many more there are."""
    shown = ", ".join(f"{c} (U+{ord(c):04X})" for c in characters[:8])
    more = len(characters) - 8
    return f"{shown} and {more} more" if more > 0 else shown


# Tokens as a person reads them in a figure, and the fonts that draw them.


LONGEST = 28  # characters; a longer token loses its middle, visibly
_SHOWN = {"\u2581": "·", "\t": "⇥", "\n": "⏎", "\r": "⏎"}  # U+2581: sentencepiece's mark of a space
_SHOWN_BY_CATEGORY = {"Zs": "·", "Zl": "⏎", "Zp": "⏎"}


@dataclass(frozen=True)
class TextLayout:
    """The letters of a figure: every text that will stand in it, known before it is drawn.

    Raises:
        UnsupportedError: As `attlas.figures.fonts.families`, when a label is first asked for.
    """

    texts: frozenset[str]

    @classmethod
    def of(cls, *groups: Iterable[str]) -> "TextLayout":
        """The layout of these groups of tokens."""
        return cls(frozenset(text for group in groups for text in group))

    def label(self, token: str) -> str:
        """The token on one line: spaces and line ends as marks, nothing invisible, no box."""
        if not token:
            return "“”"
        if all(unicodedata.category(c) == "Cf" for c in token):
            return _shortened([_code_point(c) for c in token])
        _, missing = self._fonts
        return _shortened([_printable(c, missing) for c in token])

    def line(self, text: str) -> str:
        """A title: as it is, but for what a font or a line cannot hold."""
        _, missing = self._fonts
        return "".join(c if c == " " else _printable(c, missing) for c in text)

    def style(self, size: float) -> dict[str, Any]:
        """Keyword arguments of a matplotlib text of this size in points.

        Tokens are no formulas: "$" and "\\" stand for themselves.
        """
        fonts, _ = self._fonts
        font = FontProperties(family=fonts, size=size)
        return {"fontproperties": font, "parse_math": False, "usetex": False}

    @cached_property
    def _fonts(self) -> tuple[list[str], frozenset[str]]:
        characters = {_mark(c) for text in self.texts for c in text}
        return families(c for c in characters if not _is_unprintable(c))


def _printable(character: str, missing: frozenset[str]) -> str:
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
    joined = "".join(signs)
    if len(joined) <= LONGEST:
        return joined
    head, tail = _fitting(signs, LONGEST // 2), _fitting(signs[::-1], LONGEST // 2 - 1)[::-1]
    while tail and unicodedata.combining(tail[0][:1] or " "):  # a mark without its letter
        tail = tail[1:]
    return f"{''.join(head)}…{''.join(tail)}"


def _fitting(signs: Sequence[str], room: int) -> Sequence[str]:
    """As many of the first signs as fit into so many characters."""
    lengths = accumulate(map(len, signs))
    return signs[: sum(length <= room for length in lengths)]
