"""BLEU, chrF and TER by sacrebleu: a number never travels without its signature."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attlas.errors import AttlasError
from attlas.metrics.bleu_tokenizer import BleuTokenizer, check_tokenizer

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


def corpus_score(
    hypotheses: Sequence[str], references: Sequence[str], bleu_tokenizer: BleuTokenizer = "13a"
) -> Scores:
    """Scores of detokenised translations against one reference each, over the whole corpus.

    As sacrebleu's defaults are (Post, 2018), so BLEU and chrF are cased and TER is not, but for the
    tokens of BLEU: bleu_tokenizer says what those are, see `BleuTokenizer`: with "13a", a sentence
    without spaces is one token.
    Errors: `AttlasError` for unequal counts, for nothing to score, and for a tokenizer that is
    unknown or not installed.
    """
    bleu = corpus_bleu(hypotheses, references, bleu_tokenizer)
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    chrf = _score("chrF2", CHRF(), hypotheses, references)
    return Scores(bleu, chrf, _score("TER", TER(), hypotheses, references))


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], bleu_tokenizer: BleuTokenizer = "13a"
) -> Score:
    """The BLEU of `corpus_score` alone, which takes a hundredth of the time: long translations
    that are wrong cost TER minutes.
    """
    _checked(hypotheses, references)
    check_tokenizer(bleu_tokenizer)
    # Only here: sacrebleu is slow to import, and `attlas --help` does not need it.
    from sacrebleu.metrics.bleu import BLEU

    return _score("BLEU", BLEU(tokenize=bleu_tokenizer), hypotheses, references)


def _score(
    name: str, metric: "Metric", hypotheses: Sequence[str], references: Sequence[str]
) -> Score:
    found = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(name, found.score, str(metric.get_signature()))


def _checked(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise AttlasError(
            "one translation for each reference",
            f"{len(hypotheses):,} translations and {len(references):,} references",
            "translate the source of these very references, line by line",
        )
    if not references:
        raise AttlasError("at least one sentence to score", "none", "check the files")
