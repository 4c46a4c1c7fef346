"""Score functions on captions, and on a language with another word order: what attention adds."""

from collections.abc import Iterator
from typing import Any

from attlas.lab.data import Pair, parallel_files, tanaka_pairs
from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Published,
    Scale,
    Source,
)
from attlas.lab.experiments.alignment import bleu_of, sampled
from attlas.lab.experiments.luong_ladder import captions
from attlas.lab.experiments.mechanisms import BLEU, NUMBERS, SCORES, recipe_of_updates
from attlas.lab.trainings import trained
from attlas.lab.verdict import All, Difference, Provided
from attlas.runs import Run

GERMAN, JAPANESE = "German captions", "Japanese sentences"
MODELS = ("none", "additive", "dot", "general", "concat")


def pairs_to(language: str, most: int) -> list[Pair]:
    """English texts of at most so many words, with their translations."""
    if language == GERMAN:
        return captions("train", most)
    return [pair for pair in tanaka_pairs() if len(pair[0].split()) <= most]


def measure_captions(context: Context) -> Iterator[Measurement]:
    """Models that translate captions to German."""
    return measure_language(context, GERMAN)


def measure_japanese(context: Context) -> Iterator[Measurement]:
    """Models that translate sentences to Japanese."""
    return measure_language(context, JAPANESE)


def measure_language(context: Context, language: str) -> Iterator[Measurement]:
    """Train each model for as many updates, and translate pairs that were held back."""
    s = context.settings
    sizes = s["pairs"], s["held back"]
    train, new = sampled(pairs_to(language, s["most words"]), context.seed, sizes, 4)
    for score in MODELS:
        run = translator_with_score(context, train, new, score)
        where: Condition = {"score": score}
        total = sum(parameter.numel() for parameter in run.model().parameters())
        yield Measurement(NUMBERS, float(total), where)
        yield Measurement(BLEU, bleu_of(run), where)


def translator_with_score(context: Context, train: list[Pair], new: list[Pair], score: str) -> Run:
    """A GRU with this score function."""
    files = {
        name: parallel_files(context.folder, f"{score}-{name}", pairs)
        for name, pairs in (("train", train), ("new", new))
    }
    settings = [
        f"data.train={files['train']}",
        f"data.valid={files['new']}",
        f"data.test={files['new']}",
        *context.settings["recipe"],
        *SCORES[score],
    ]
    return trained(context, score, "multi30k", settings)


def _more(more: str, less: str, bound: float) -> Provided:
    """More BLEU, where one of the two models has learnt to translate."""
    one: Condition = {"score": more}
    other: Condition = {"score": less}
    return Provided(Difference(BLEU, one, other, bound), BLEU, 5.0, one, other)


_BRITZ = Source("Britz et al., 2017", "table of attention mechanisms", read=False)
_LUONG = Source("Luong et al., 2015", "table 4", read=True)
_CLAIMS = (
    Claim(
        "Each score over all positions translates better than no attention.",
        _BRITZ,
        All(*(_more(score, "none", 2.0) for score in ("additive", "dot", "general", "concat"))),
        "A score function that is within 2 BLEU of no attention.",
        (
            Published("BLEU, English to German, additive", 22.47, _BRITZ),
            Published("BLEU, English to German, multiplicative", 22.33, _BRITZ),
            Published("BLEU, English to German, no attention", 9.98, _BRITZ),
        ),
        judged_at=("full",),
    ),
    Claim(
        "Additive attention translates better than multiplicative attention.",
        _BRITZ,
        _more("additive", "general", 0.5),
        "A general score that is within half a BLEU point.",
        (
            Published("BLEU, English to German, additive", 22.47, _BRITZ),
            Published("BLEU, English to German, multiplicative", 22.33, _BRITZ),
        ),
        judged_at=("full",),
    ),
    Claim(
        "A general score translates better than concat.",
        _LUONG,
        _more("general", "concat", 0.5),
        "Concat that is within half a BLEU point.",
        judged_at=("full",),
    ),
)
_METHOD = (
    "They differ in the score function alone: none, additive, dot, general and concat. The "
    "decoder is Bahdanau's, which asks with its previous state. All have as many pairs and as many "
    "updates. English texts have at most twelve words and marks. BLEU is that of pairs that were "
    "held back. "
)
_SETTINGS: dict[Scale, dict[str, Any]] = {
    "quick": {
        "pairs": 1000,
        "held back": 20,
        "most words": 12,
        "recipe": recipe_of_updates(8),
    },
    "full": {
        "pairs": 12_000,
        "held back": 300,
        "most words": 12,
        "recipe": recipe_of_updates(600),
    },
}
EXPERIMENTS = (
    Experiment(
        name="mechanisms-captions",
        title="Score functions on captions, English to German",
        method="GRUs learn to translate English captions to German (Multi30k). "
        f"{_METHOD}The rules were written before any training.",
        measure=measure_captions,
        settings=_SETTINGS,
        seeds={"quick": 1, "full": 3},
        deterministic=(NUMBERS,),
        claims=_CLAIMS,
        needs=("multi30k",),
    ),
    Experiment(
        name="mechanisms-japanese",
        title="Score functions on another word order, English to Japanese",
        method="GRUs learn to translate English sentences to Japanese (Tanaka). "
        f"{_METHOD}Japanese is cut into words as the corpus has them, so its BLEU cannot be "
        "compared with that of another language. The rules were written before any training.",
        measure=measure_japanese,
        settings=_SETTINGS,
        seeds={"quick": 1, "full": 3},
        deterministic=(NUMBERS,),
        claims=_CLAIMS,
        needs=("tanaka-en-ja",),
    ),
)
