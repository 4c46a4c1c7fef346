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
    _checked(hypotheses, references)
    check_tokenizer(bleu_tokenizer)
    return Scores(
        *(
            Score(
                name, metric.corpus_score(list(hypotheses), [list(references)]).score, _of(metric)
            )
            for name, metric in _metrics(bleu_tokenizer).items()
        )
    )


def _metrics(bleu_tokenizer: BleuTokenizer) -> "dict[str, Metric]":
    # Only here: sacrebleu is slow to import, and `attlas --help` does not need it.
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    return {"BLEU": BLEU(tokenize=bleu_tokenizer), "chrF2": CHRF(), "TER": TER()}


def _of(metric: "Metric") -> str:
    return str(metric.get_signature())


def _checked(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise AttlasError(
            "one translation for each reference",
            f"{len(hypotheses):,} translations and {len(references):,} references",
            "translate the source of these very references, line by line",
        )
    if not references:
        raise AttlasError("at least one sentence to score", "none", "check the files")
