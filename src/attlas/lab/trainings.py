"""Trained models for experiments: `attlas.train` in the folder of the experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attlas.data import Corpus
from attlas.decoding import DecodingConfig
from attlas.errors import DataError
from attlas.inference import Translation, Translator
from attlas.lab.experiment import Context
from attlas.metrics import corpus_bleu, token_accuracy
from attlas.runs import BEST, Run
from attlas.training import Recipe, read_recipe, train
from attlas.training.validation import exactly_right


@dataclass(frozen=True)
class RunScore:
    """Free-running results on a test set.

    Args:
        token_accuracy: The share of right tokens, position by position.
        sequence_accuracy: The share of texts that are right to the last token.
        bleu: BLEU, 13a.
    """

    token_accuracy: float
    sequence_accuracy: float
    bleu: float


def recipe_of(context: Context, name: str, assignments: Sequence[str]) -> Recipe:
    """A recipe with settings put in, for the seed of the context."""
    seeded = [f"seed={context.seed}"]
    recipe = read_recipe(name, [*assignments, *seeded])
    if hasattr(recipe.data, "seed"):
        recipe = read_recipe(name, [*assignments, *seeded, f"data.seed={context.seed}"])
    return recipe


def trained(context: Context, label: str, name: str, assignments: Sequence[str]) -> Run:
    """The run of a recipe. An interrupted training goes on; a finished one is opened.

    Args:
        label: The name of its folder, unique in the experiment.
        name: A shipped recipe or a file.
        assignments: Settings, as `--set` takes them.
    """
    folder: Path = context.folder / label
    context.report(f"training {label}")
    train(recipe_of(context, name, assignments), folder)
    return Run(folder)


def test_set(run: Run) -> Corpus:
    """The test set of a run.

    Raises:
        DataError: If it has none.
    """
    corpus = Recipe.read(run.config, str(run.path)).data.corpus("test")
    if not isinstance(corpus, Corpus) or not corpus.pairs:
        raise DataError("a run with a test set of pairs", str(run.path), "set data.test")
    return corpus


def translations(
    run: Run, corpus: Corpus, *, checkpoint: str = BEST, **search: Any
) -> list[Translation]:
    """The translations of a corpus, greedy unless `search` says otherwise."""
    config = DecodingConfig.read({"method": "greedy", **search}, "the experiment")
    return list(Translator(run, config, checkpoint=checkpoint).stream(corpus.sources))


def score(run: Run, corpus: Corpus | None = None, **search: Any) -> RunScore:
    """Translate the test set without teacher forcing, and compare it with its other side."""
    corpus = corpus or test_set(run)
    results = translations(run, corpus, **search)
    vocabulary = run.vocabularies().target
    references = [vocabulary.encode(text) for text in corpus.targets]
    hypotheses = [vocabulary.encode(translation.text) for translation in results]
    right = exactly_right(results, references, vocabulary)
    return RunScore(
        token_accuracy(hypotheses, references),
        sum(right) / len(right),
        corpus_bleu([translation.text for translation in results], corpus.targets).value,
    )
