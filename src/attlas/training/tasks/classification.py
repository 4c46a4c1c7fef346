"""Classification: one text in, one label out."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas._text import count_noun
from attlas.data import (
    Bucketed,
    EncodedCorpus,
    LabelledBatch,
    LabelledBatches,
    LabelledSplits,
    LabelledVocabularies,
    Labels,
    batches_by_length,
    build_vocabulary,
    describe_labels,
    encode_labelled,
    labelled_batch,
    sample_labelled,
)
from attlas.errors import ConfigError, join_names
from attlas.metrics import label_scores, macro_f1
from attlas.models import Classifier, ClassifierConfig, build_classifier
from attlas.models.classifier import unreachable_tokens
from attlas.models.transformer.config import parse_patterns
from attlas.training.events import Validated
from attlas.training.loss import cross_entropy, rdrop_cross_entropy
from attlas.training.recipe import Recipe
from attlas.training.tasks.base import Task, ValidationMeasurement, finite


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsValidated(Validated):
    """Nats per text; the part of the texts that got the right label, 0 … 1; how many they are; the
    mean F1 of the labels (see `macro_f1`).
    """

    accuracy: float
    texts: int
    macro_f1: float

    def scores(self) -> list[str]:
        return [f"{self.accuracy:.2%} of {self.texts:,} right", f"macro-F1 {self.macro_f1:.2%}"]


@dataclass(frozen=True, slots=True)
class TextsMeasured(ValidationMeasurement):
    """The fields of `TextsValidated`."""

    event: ClassVar[type[Validated]] = TextsValidated
    accuracy: float
    texts: int
    macro_f1: float


class ClassificationTask(Task[LabelledSplits, LabelledVocabularies]):
    """−Σ_n w(label_n) log p(label_n | text_n), smoothed as `training.label_smoothing` says; w are
    the class weights.

    Validated without smoothing and weights on every text, whatever its length; what is too long for
    a batch is one of its own.
    """

    epoch_scores: ClassVar = {
        "loss": "validation_loss",
        "accuracy": "accuracy",
        "macro_f1": "macro_f1",
    }
    example = "text"
    counted = "text"

    def __init__(
        self,
        recipe: Recipe,
        splits: LabelledSplits,
        vocabularies: LabelledVocabularies,
        encoded: EncodedCorpus | None = None,
    ) -> None:
        super().__init__(recipe, splits, vocabularies, encoded)
        self._valid = encode_labelled(splits.valid, vocabularies)
        self._check_positions()
        self._unseen = self._note_reach()

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
        return LabelledBatches(encoded, recipe.batching, recipe.seed, self.class_weights)

    @cached_property
    def class_weights(self) -> Float[Tensor, " classes"] | None:
        """How much a text of each label counts; None: all alike."""
        kind, names = self.recipe.training.class_weights, self.vocabularies.labels.names
        if kind == "none":
            return None
        if isinstance(kind, str):
            counts = Counter(self.splits.train.labels)
            texts = len(self.splits.train)
            weights = {name: texts / (len(counts) * count) for name, count in counts.items()}
        else:
            unknown = sorted(kind.keys() - set(names))
            if unknown:
                raise ConfigError(
                    f"weights of the labels {self.vocabularies.labels} in training.class_weights",
                    f"one of {', '.join(map(repr, unknown))}",
                    "name labels of the training data",
                )
            weights = dict(kind)
        return torch.tensor([weights.get(name, 1.0) for name in names])

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
        if alpha := settings.rdrop_alpha_at(number):
            doubled_logits = model(batch.source.repeat(2, 1), batch.source_mask.repeat(2, 1))
            readings = doubled_logits.unflatten(0, (2, -1)).transpose(0, 1)
            return rdrop_cross_entropy(
                readings, batch.labels, settings.label_smoothing, alpha, batch.class_weights
            )
        logits = model(batch.source, batch.source_mask)
        return cross_entropy(logits, batch.labels, settings.label_smoothing, batch.class_weights)

    def _check_positions(self) -> None:
        """Check that no text is longer than there are positions: now rather than in the middle."""
        recipe, model = self.recipe, self.config
        if model.positions != "learned":
            return
        # Sampled subwords may be as many as are let pass.
        train = recipe.batching.max_length if recipe.vocabulary.sampling else self._plain.longest
        longest = 1 + max(train, int(self._valid.source.lengths.max(initial=0)))
        if longest > model.max_positions:
            raise ConfigError(
                f"model.max_positions of {longest} at least, the tokens of the longest text with "
                f"its end",
                str(model.max_positions),
                "raise it, or set model.positions = 'sinusoidal'",
            )

    def _note_reach(self) -> str:
        """What to report where the first token, which alone is pooled, sees no text whole."""
        model = self.config
        if model.pooling != "first":
            return ""
        lengths = self._lengths()
        unseen = unreachable_tokens(parse_patterns(model.patterns, model.layers), lengths.tolist())
        texts = sum(map(bool, unseen))
        if not texts:
            return ""
        seeing = [f"either({pattern}, landmarks(0))" for pattern in model.patterns]
        return (
            f"WARNING: {texts:,} of {count_noun(len(unseen), 'text')} are not read whole. "
            "model.pooling = 'first' reads the first token alone, and with model.patterns = "
            f"{list(model.patterns)} in {count_noun(model.layers, 'layer')} it never sees "
            f"{sum(unseen):,} of {count_noun(int(lengths.sum()), 'token')}: "
            f"set model.pooling = 'mean' or 'attentive', or model.patterns = {seeing}"
        )

    def _lengths(self) -> NDArray[np.int64]:
        """How many tokens of each text are read, in training and in validation."""
        assert isinstance(self._plain, LabelledBatches)
        batching, train = self.recipe.batching, self._plain.encoded.source.lengths
        fit = train <= batching.max_length
        lengths = train[fit] if batching.overlong == "skip" else train.clip(max=batching.max_length)
        return np.concatenate([lengths, self._valid.source.lengths])

    def notes(self, batches: Bucketed[LabelledBatch]) -> list[str]:
        notes = [*super().notes(batches), describe_labels(self.splits.train)]
        if self.class_weights is not None:
            weights = zip(self.vocabularies.labels.names, self.class_weights.tolist(), strict=True)
            notes.append(f"class weights: {join_names(f'{name} {w:.4g}' for name, w in weights)}")
        return [*notes, self._unseen] if self._unseen else notes

    @torch.no_grad()
    def measure(self, model: Classifier) -> TextsMeasured:
        was_training, device = model.training, next(model.parameters()).device
        model.eval()
        loss, texts = 0.0, self._valid
        names = self.vocabularies.labels.names
        empty = [""] * len(texts)
        sources = [texts.source[index] for index in range(len(texts))]
        for indices in batches_by_length(sources, self.recipe.batching.max_tokens):
            batch = labelled_batch(texts, indices).to(device)
            logits = model(batch.source, batch.source_mask).float()
            loss += cross_entropy(logits, batch.labels).item()
            for index, number in zip(indices, logits.argmax(1).tolist(), strict=True):
                empty[index] = names[number]
        model.train(was_training)
        scores = label_scores(self.splits.valid.labels, empty, names)
        right = sum(score.right for score in scores.values()) / len(texts)
        return TextsMeasured(finite(loss / len(texts)), right, len(texts), macro_f1(scores))
