"""Classification: one text in, one label out."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.data import (
    Bucketed,
    LabelledBatch,
    LabelledBatches,
    LabelledSplits,
    LabelledVocabularies,
    Labels,
    batches_by_length,
    build_vocabulary,
    encode_labelled,
    labelled_batch,
    labels_told,
    sample_labelled,
)
from attlas.data.amount import amount
from attlas.errors import AttlasError
from attlas.models import Classifier, ClassifierConfig, build_classifier
from attlas.models.block import patterns_of
from attlas.models.classifier.reach import out_of_sight
from attlas.training.consistency import consistent_cross_entropy
from attlas.training.events import Validated
from attlas.training.loss import cross_entropy
from attlas.training.recipe import Recipe
from attlas.training.tasks.task import Measurement, Task, finite


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsValidated(Validated):
    """Nats per text; the part of the texts that got the right label, 0 … 1; how many they are."""

    accuracy: float
    texts: int

    def scores(self) -> list[str]:
        return [f"{self.accuracy:.2%} of {self.texts:,} right"]


@dataclass(frozen=True, slots=True)
class TextsMeasured(Measurement):
    """What `TextsValidated` tells."""

    event: ClassVar[type[Validated]] = TextsValidated
    accuracy: float
    texts: int


class Classifying(Task[LabelledSplits, LabelledVocabularies]):
    """−Σ_n log p(label_n | text_n), smoothed as `training.smoothing` says.

    Validated on every text, whatever its length; what is too long for a batch is one of its own.
    """

    example = "text"
    counted = "text"

    def __init__(
        self, recipe: Recipe, splits: LabelledSplits, vocabularies: LabelledVocabularies
    ) -> None:
        super().__init__(recipe, splits, vocabularies)
        self._valid = encode_labelled(splits.valid, vocabularies)
        self._check_positions()
        self._unseen = self._told_of_reach()

    @staticmethod
    def vocabularies_of(recipe: Recipe, splits: LabelledSplits) -> LabelledVocabularies:
        train = splits.train
        text = build_vocabulary(recipe.vocabulary, train.texts, "vocabulary")
        return LabelledVocabularies(text, Labels.of(train.labels))

    @staticmethod
    def vocabularies_in(folder: Path) -> LabelledVocabularies:
        return LabelledVocabularies.load(folder)

    def encoded(self, epoch: int | None = None) -> LabelledBatches:
        recipe, train, sampling = self.recipe, self.splits.train, self.recipe.vocabulary.sampling
        if epoch is None:
            encoded = encode_labelled(train, self.vocabularies)
        else:
            encoded = sample_labelled(train, self.vocabularies, sampling, recipe.seed, epoch)
        return LabelledBatches(encoded, recipe.batching, recipe.seed)

    def build(self) -> Classifier:
        vocabularies = self.vocabularies
        return build_classifier(self.config, len(vocabularies.text), len(vocabularies.labels))

    @property
    def config(self) -> ClassifierConfig:
        """The settings of its model."""
        config = self.recipe.model
        assert isinstance(config, ClassifierConfig)  # or this would be another task
        return config

    def loss(
        self,
        model: Classifier,
        batch: LabelledBatch,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[nn.Parameter],
    ) -> Float[Tensor, ""]:
        settings = self.recipe.training
        if alpha := settings.consistency_at(number):
            twice = model(batch.source.repeat(2, 1), batch.source_real.repeat(2, 1))
            return consistent_cross_entropy(
                twice.unflatten(0, (2, -1)).transpose(0, 1), batch.labels, settings.smoothing, alpha
            )
        logits = model(batch.source, batch.source_real)
        return cross_entropy(logits, batch.labels, settings.smoothing)

    def _check_positions(self) -> None:
        """That no text is longer than there are positions: now rather than in the middle."""
        recipe, model = self.recipe, self.config
        if model.positions != "learned":
            return
        # Sampled subwords may be as many as are let pass.
        train = recipe.batching.max_length if recipe.vocabulary.sampling else self._plain.longest
        longest = 1 + max(train, int(self._valid.source.lengths.max(initial=0)))
        if longest > model.longest:
            raise AttlasError(
                f"model.longest of {longest} at least, the tokens of the longest text with its end",
                str(model.longest),
                "raise it, or set model.positions = 'sinusoidal'",
            )

    def _told_of_reach(self) -> str:
        """What is to be told where the first token, which alone is pooled, sees no text whole."""
        model = self.config
        if model.pooling != "first":
            return ""
        lengths = self._lengths()
        unseen = out_of_sight(patterns_of(model.patterns, model.layers), lengths.tolist())
        texts = sum(map(bool, unseen))
        if not texts:
            return ""
        seeing = [f"either({pattern}, landmarks(0))" for pattern in model.patterns]
        return (
            f"WARNING: {texts:,} of {amount(len(unseen), 'text')} are not read whole. "
            "model.pooling = 'first' reads the first token alone, and with model.patterns = "
            f"{list(model.patterns)} in {amount(model.layers, 'layer')} it never sees "
            f"{sum(unseen):,} of {amount(int(lengths.sum()), 'token')}: "
            f"set model.pooling = 'mean' or 'attentive', or model.patterns = {seeing}"
        )

    def _lengths(self) -> NDArray[np.int64]:
        """How many tokens of each text are read, in training and in validation."""
        assert isinstance(self._plain, LabelledBatches)
        batching, train = self.recipe.batching, self._plain.encoded.source.lengths
        fit = train <= batching.max_length
        read = train[fit] if batching.overlong == "skip" else train.clip(max=batching.max_length)
        return np.concatenate([read, self._valid.source.lengths])

    def notes(self, batches: Bucketed[LabelledBatch]) -> list[str]:
        told = [*super().notes(batches), labels_told(self.splits.train)]
        return [*told, self._unseen] if self._unseen else told

    @torch.no_grad()
    def measure(self, model: Classifier) -> TextsMeasured:
        was_training, device = model.training, next(model.parameters()).device
        model.eval()
        loss, right, texts = 0.0, 0, self._valid
        sources = [texts.source[place] for place in range(len(texts))]
        for indices in batches_by_length(sources, self.recipe.batching.tokens):
            batch = labelled_batch(texts, indices).to(device)
            logits = model(batch.source, batch.source_real).float()
            loss += cross_entropy(logits, batch.labels).item()
            right += int((logits.argmax(1) == batch.labels).sum())
        model.train(was_training)
        return TextsMeasured(finite(loss / len(texts)), right / len(texts), len(texts))
