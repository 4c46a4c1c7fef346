"""Translation: one sentence in, another out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas._text import count_noun
from attlas.data import (
    Batch,
    Batches,
    Bucketed,
    Corpus,
    EncodedCorpus,
    Splits,
    Vocabularies,
    build_vocabularies,
    corpus_of,
    encode_corpus,
    sample_corpus,
)
from attlas.data.normalization import normalized
from attlas.errors import ConfigError
from attlas.metrics import better_tokenizers
from attlas.models import ClassifierConfig, SequenceToSequence, TransformerConfig, build
from attlas.training.events import Validated
from attlas.training.loss import cross_entropy, rdrop_sequence_loss, sequence_loss
from attlas.training.reading import processes_of
from attlas.training.recipe import Recipe
from attlas.training.scheduled_sampling import scheduled_sampling_logits, teacher_forced
from attlas.training.tasks.base import Task, ValidationMeasurement, finite
from attlas.training.validation import evaluate, free_running_loss, validation_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationsValidated(Validated):
    """Nats per token; BLEU with its signature and the part of the sentences that is exactly right,
    0 … 1 (None: not translated); how many sentences were translated.

    Of these sentences, too: free_running_loss, in nats per token, when the model reads what it
    wrote itself (see `free_running_loss`); token_accuracy, the part of the tokens that is right,
    place by place; average_length and reference_length, the tokens of a translation and of its
    reference.
    """

    bleu: float | None
    signature: str | None
    accuracy: float | None
    sentences: int
    free_running_loss: float | None = None
    token_accuracy: float | None = None
    average_length: float | None = None
    reference_length: float | None = None

    def scores(self) -> list[str]:
        parts = [] if self.bleu is None else [f"BLEU {self.bleu:.2f}"]
        if self.accuracy is not None:
            parts.append(f"{self.accuracy:.1%} of {self.sentences:,} exactly right")
        return parts


@dataclass(frozen=True, slots=True)
class TranslationsMeasured(ValidationMeasurement):
    """The fields of `TranslationsValidated`."""

    event: ClassVar[type[Validated]] = TranslationsValidated
    bleu: float | None = None
    signature: str | None = None
    accuracy: float | None = None
    sentences: int = 0
    free_running_loss: float | None = None
    token_accuracy: float | None = None
    average_length: float | None = None
    reference_length: float | None = None


class TranslationTask(Task[Splits, Vocabularies]):
    """−Σ_t log p(y_t | y_<t, x): the loss of `sequence_loss`, fed as `training.scheduled_sampling`
    says."""

    epoch_scores: ClassVar = {
        "loss": "validation_loss",
        "free_running_loss": "free_running_loss",
        "token_accuracy": "token_accuracy",
        "accuracy": "sequence_accuracy",
        "average_length": "average_length",
        "reference_length": "reference_length",
        "bleu": "bleu",
    }
    example = "pair"
    counted = "token"

    def __init__(
        self,
        recipe: Recipe,
        splits: Splits,
        vocabularies: Vocabularies,
        encoded: EncodedCorpus | None = None,
    ) -> None:
        super().__init__(recipe, splits, vocabularies, encoded)
        valid = encode_corpus(splits.valid, vocabularies)
        self.valid_batches = Batches(valid, recipe.batching, recipe.seed)
        validation = recipe.training.validation
        self._translated = valid.source.lengths[: validation.sentences]
        if not validation.translate:
            self._translated = self._translated[:0]
        self._check_positions()

    @staticmethod
    def vocabularies_of(recipe: Recipe, splits: Splits) -> Vocabularies:
        return build_vocabularies(recipe.vocabulary, splits.train.pairs, processes_of(recipe))

    @staticmethod
    def vocabularies_in(folder: Path) -> Vocabularies:
        return Vocabularies.load(folder)

    def encoded(self, epoch: int | None = None) -> Batches:
        recipe, train, sampling = self.recipe, self.splits.train, self.recipe.vocabulary.sampling
        if epoch is None:
            encoded = self.stored or encode_corpus(train, self.vocabularies)
        else:
            encoded = sample_corpus(train, self.vocabularies, sampling, recipe.seed, epoch)
        return Batches(encoded, recipe.batching, recipe.seed)

    def _check_positions(self) -> None:
        """Check that no side of a pair is longer than there are positions: now, not in the
        middle.
        """
        recipe, model = self.recipe, self.recipe.model
        if not isinstance(model, TransformerConfig) or model.positions != "learned":
            return
        # Sampled subwords may be as many as are let pass.
        train = recipe.batching.max_length if recipe.vocabulary.sampling else self._plain.longest
        max_source_length = recipe.training.validation.decoding.max_source_length
        longest_source = int(self._translated.max(initial=0))
        longest = 1 + max(
            train,
            self.valid_batches.longest,
            min(longest_source, max_source_length) if max_source_length else longest_source,
        )
        if longest > model.max_positions:
            raise ConfigError(
                f"model.max_positions of {longest} at least, the tokens of the longest side of a "
                f"pair "
                "with its begin or end",
                str(model.max_positions),
                "raise it, lower batching.max_length and "
                "training.validation.decoding.max_source_length, or set model.positions = "
                "'sinusoidal'",
            )

    def build(self) -> SequenceToSequence[Any]:
        config, vocabularies = self.recipe.model, self.vocabularies
        assert not isinstance(config, ClassifierConfig)  # or this would be another task
        return build(config, len(vocabularies.source), len(vocabularies.target))

    def loss(
        self,
        model: SequenceToSequence[Any],
        batch: Batch,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[nn.Parameter],
    ) -> Float[Tensor, ""]:
        settings = self.recipe.training
        target, token_mask = batch.expected, batch.expected_mask
        if alpha := settings.rdrop_alpha_at(number):
            features = teacher_forced(model, batch.twice())
            return rdrop_sequence_loss(
                model.logits,
                features,
                target,
                token_mask,
                settings.label_smoothing,
                alpha,
                parameters,
                scale,
            )
        probability = self.teacher_forcing(number)
        if probability >= 1.0:  # all positions at once
            features = teacher_forced(model, batch)
            return sequence_loss(
                model.logits,
                features,
                target,
                token_mask,
                settings.label_smoothing,
                parameters,
                scale,
            )
        logits = scheduled_sampling_logits(
            model, batch, probability, settings.scheduled_sampling.token, generator
        )
        return cross_entropy(logits[token_mask], target[token_mask], settings.label_smoothing)

    def teacher_forcing(self, number: int) -> float:
        return self.recipe.training.scheduled_sampling.probability(number - 1)

    def measure(self, model: SequenceToSequence[Any]) -> TranslationsMeasured:
        settings = self.recipe.training.validation
        loss = finite(validation_loss(model, self.valid_batches))
        if not settings.translate:
            return TranslationsMeasured(loss)
        corpus = self.valid_corpus()
        evaluation = evaluate(
            model, corpus, self.vocabularies, settings.decoding, settings.bleu_tokenizer
        )
        value, signature = evaluation.bleu.value, evaluation.bleu.signature
        return TranslationsMeasured(
            loss=loss,
            bleu=value,
            signature=signature,
            accuracy=evaluation.accuracy,
            sentences=len(corpus),
            free_running_loss=free_running_loss(model, self.valid_batches, len(corpus)),
            token_accuracy=evaluation.token_accuracy,
            average_length=evaluation.average_length,
            reference_length=evaluation.reference_length,
        )

    def valid_corpus(self) -> Corpus:
        """What is translated at each validation."""
        valid, max_sentences = self.splits.valid, self.recipe.training.validation.sentences
        return (
            valid if max_sentences is None else corpus_of(valid.pairs[:max_sentences], valid.name)
        )

    def notes(self, batches: Bucketed[Any]) -> list[str]:
        notes, report = super().notes(batches), self.valid_batches.report
        if report.skipped:
            notes.append(str(report))
        form = self.recipe.vocabulary.normalization
        others = sum(normalized(text, form) != text for text in self.splits.valid.targets)
        if others:
            notes.append(
                f"WARNING: {others:,} of {count_noun(len(self.splits.valid), 'target')} of "
                f"{self.splits.valid.name} are not in the form {form.upper()} of Unicode, in which "
                "the model writes: BLEU compares them as they stand"
            )
        notes += self._unfit_tokenizer()
        max_source_length = self.recipe.training.validation.decoding.max_source_length
        cut = int((self._translated > max_source_length).sum()) if max_source_length else 0
        if cut:
            notes.append(
                f"{cut:,} of {count_noun(len(self._translated), 'source')} of "
                f"{self.splits.valid.name} "
                "longer than training.validation.decoding.max_source_length = "
                f"{max_source_length:,}: "
                "a validation translates no more than so many tokens of each"
            )
        return notes

    def _unfit_tokenizer(self) -> list[str]:
        """Check that BLEU would take each sentence for a token."""
        settings = self.recipe.training.validation
        if not settings.translate:
            return []
        better = better_tokenizers(self.splits.valid.targets, settings.bleu_tokenizer)
        if not better:
            return []
        return [
            f"WARNING: the targets of {self.splits.valid.name} have no spaces between words: BLEU "
            f"with the tokens of {settings.bleu_tokenizer} says little; set "
            f'training.validation.bleu_tokenizer = "{better[0]}"'
            + "".join(f' or "{other}"' for other in better[1:])
        ]
