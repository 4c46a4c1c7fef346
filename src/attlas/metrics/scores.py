"""BLEU, chrF and TER by sacrebleu: a number never travels without its signature."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from attlas.errors import AttlasError
from attlas.metrics.bleu_tokenizer import (
    ASIAN,
    BleuTokenizer,
    check_tokenizer,
    divided_by_characters,
)

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

    As sacrebleu's defaults are (Post, 2018), so BLEU and chrF are cased and TER is not, but for
    what a token is: bleu_tokenizer says it, see `BleuTokenizer`. With "13a" a sentence without
    spaces is one token. TER has the tokens of Asian scripts (normalized, asian_support) where BLEU
    has those of one; with "char" the characters of other scripts without spaces too, which its
    signature then says (chars:yes). chrF needs no tokens.

    references: one list, or several, each as long as the hypotheses; the signatures count them.
    Errors: `AttlasError` for unequal counts, for nothing to score, and for a tokenizer that is
    unknown or not installed.
    """
    bleu = corpus_bleu(hypotheses, references, bleu_tokenizer)
    from sacrebleu.metrics.chrf import CHRF

    several = _several(references)
    chrf = _score("chrF2", CHRF(), hypotheses, several)
    return Scores(bleu, chrf, _ter(hypotheses, several, bleu_tokenizer))


def corpus_bleu(
    hypotheses: Sequence[str], references: References, bleu_tokenizer: BleuTokenizer = "13a"
) -> Score:
    """The BLEU of `corpus_score` alone, which takes a hundredth of the time: long translations
    that are wrong cost TER minutes.
    """
    several = _several(references)
    _checked(hypotheses, several)
    check_tokenizer(bleu_tokenizer)
    # Only here: sacrebleu is slow to import, and `attlas --help` does not need it.
    from sacrebleu.metrics.bleu import BLEU

    return _score("BLEU", BLEU(tokenize=bleu_tokenizer), hypotheses, several)


def _ter(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], tokenizer: BleuTokenizer
) -> Score:
    from sacrebleu.metrics.ter import TER

    asian = tokenizer in ASIAN
    metric = TER(normalized=asian, asian_support=asian)
    if tokenizer != "char":
        return _score("TER", metric, hypotheses, references)
    divided = [divided_by_characters(text) for text in hypotheses]
    theirs = [[text and divided_by_characters(text) for text in one] for one in references]
    score = _score("TER", metric, divided, theirs)
    if divided == list(hypotheses) and theirs == [list(one) for one in references]:
        return score
    return replace(score, signature=f"{score.signature}|chars:yes")


def _score(
    name: str,
    metric: "Metric",
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str | None]],
) -> Score:
    # sacrebleu's annotation forgets None, of which its documentation and its code know.
    theirs: Any = [list(one) for one in references]
    found = metric.corpus_score(list(hypotheses), theirs)
    return Score(name, found.score, str(metric.get_signature()))


def _several(references: References) -> Sequence[Sequence[str | None]]:
    """The references as a list of lists."""
    if all(isinstance(one, str) for one in references):
        return [cast("Sequence[str]", references)]
    return references


def _checked(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> None:
    for one in references:
        if len(hypotheses) != len(one):
            raise AttlasError(
                "one translation for each reference",
                f"{len(hypotheses):,} translations and {len(one):,} references",
                "translate the source of these very references, line by line",
            )
    if not hypotheses:
        raise AttlasError("at least one sentence to score", "none", "check the files")
    for place, own in enumerate(zip(*references, strict=True)):
        if all(one is None for one in own):
            raise AttlasError(
                "a reference for each translation",
                f"none for the translation at index {place}",
                "leave out that translation",
            )
