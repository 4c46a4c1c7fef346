"""Trained models for experiments: `attlas.train` in the folder of the experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

import attlas
from attlas.data import Corpus, SplitName
from attlas.data.vocabulary import BEGIN, END
from attlas.decoding import DecodingConfig
from attlas.errors import DataError
from attlas.inference import Translation, Translator
from attlas.lab.experiment import AttentionExample, Context
from attlas.metrics import corpus_bleu, token_accuracy
from attlas.models import SequenceToSequence
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


SMALL_TRANSFORMER = (
    "model.kind=transformer",
    "model.embed_dim=64",
    "model.ffn_dim=128",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.dropout=0",
    "training.learning_rate=2e-3",
)
"""A Transformer for toys. An experiment that uses it has it among its settings, so that its results
depend on it.
"""
SMALL_RECURRENT = (
    "model.embed_dim=32",
    "model.hidden_dim=64",
    "model.encoder_hidden_dim=32",
    "training.learning_rate=3e-3",
)
"""The same of a GRU; its encoder reads in both directions."""


def toy_settings(
    task: str,
    lengths: tuple[int, int],
    updates: int,
    *,
    warmup: int = 50,
    pairs: int | None = None,
) -> list[str]:
    """A toy of 16 symbols: each update reads 64 sequences at most, of so many `pairs` in all.

    Without `pairs` each update reads new ones.

    The learning rate rises in a straight line during the first `warmup` updates, half of all at the
    most, and then falls.
    """
    warmup = min(warmup, updates // 2)
    return [
        f"data.task={task}",
        f"data.length=[{lengths[0]}, {lengths[1]}]",
        "data.symbols=16",
        f"data.train={pairs or 64 * updates}",
        "batching.rows=64",
        f"batching.max_tokens={64 * (lengths[1] + 2)}",  # with BEGIN and END
        f"training.max_steps={updates}",
        f"training.schedule={{kind='linear', warmup={warmup}, total_steps={updates}, final=0.05}}",
        f"training.validation={{criterion='loss', translate=false, every={updates}}}",
    ]


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


def pairs_of(run: Run, split: SplitName) -> Corpus:
    """A part of the data of a run.

    Raises:
        DataError: If it has none.
    """
    corpus = Recipe.read(run.config, str(run.path)).data.corpus(split)
    if not isinstance(corpus, Corpus) or not corpus.pairs:
        raise DataError(f"a run with pairs for data.{split}", str(run.path), f"set data.{split}")
    return corpus


@dataclass(frozen=True)
class ForcedBatch:
    """Sequences of one length for a model that is fed with the right tokens.

    Args:
        source: Each with END.
        target: BEGIN and the right tokens.
        expected: What each position of `target` is to predict: the right tokens and END.
    """

    source: Int[Tensor, "batch keys"]
    target: Int[Tensor, "batch queries"]
    expected: Int[Tensor, "batch queries"]

    def logits(self, model: SequenceToSequence[Any]) -> Float[Tensor, "batch queries vocabulary"]:
        """What the model predicts at all positions."""
        with torch.no_grad():
            logits: Tensor = model(self.source, self.target)
        return logits

    def accuracy(self, model: SequenceToSequence[Any]) -> float:
        """The share of positions whose most probable token is the right one."""
        right = self.logits(model).argmax(-1) == self.expected
        return right.double().mean().item()


def forced_batch(run: Run, count: int, split: SplitName = "test") -> ForcedBatch:
    """The first pairs of a part of the data of a run, whose sequences have one length."""
    corpus, vocabularies = pairs_of(run, split), run.vocabularies()
    source = [vocabularies.source.encode(text) for text in corpus.sources[:count]]
    target = [vocabularies.target.encode(text) for text in corpus.targets[:count]]
    return ForcedBatch(
        torch.tensor([[*ids, END] for ids in source]),
        torch.tensor([[BEGIN, *ids] for ids in target]),
        torch.tensor([[*ids, END] for ids in target]),
    )


def forced_example(run: Run, name: str, caption: str, count: int = 4) -> AttentionExample:
    """Where a trained model looks while it is fed with the right tokens of a few test pairs.

    The queries have the name of the token that they predict.
    """
    vocabularies, batch, model = run.vocabularies(), forced_batch(run, count), run.model()
    with torch.no_grad(), attlas.observe(model) as trace:
        model(batch.source, batch.target)
    keys = [vocabularies.source.pieces(ids) for ids in batch.source.tolist()]
    queries = [vocabularies.target.pieces(ids) for ids in batch.expected.tolist()]
    trace.label(keys, queries)
    return AttentionExample(name, caption, trace, list(trace)[-1])


def translations(
    run: Run, corpus: Corpus, *, checkpoint: str = BEST, **search: Any
) -> list[Translation]:
    """The translations of a corpus, greedy unless `search` says otherwise."""
    config = DecodingConfig.read({"method": "greedy", **search}, "the experiment")
    return list(Translator(run, config, checkpoint=checkpoint).stream(corpus.sources))


def score(run: Run, corpus: Corpus | None = None, **search: Any) -> RunScore:
    """Translate the test set without teacher forcing, and compare it with its other side."""
    corpus = corpus or pairs_of(run, "test")
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
