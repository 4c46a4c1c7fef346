"""The protocol of tasks: everything that the trainer does not know."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.data import EncodedCorpus, FilterReport
from attlas.data.bucketing import Bucketed
from attlas.training.events import Validated
from attlas.training.learner import NotFiniteError
from attlas.training.recipe import Recipe


@runtime_checkable
class CorpusLike(Protocol):
    """A corpus of any task."""

    @property
    def name(self) -> str:
        """Where it came from."""

    @property
    def report(self) -> FilterReport:
        """What was kept of it."""

    @property
    def checksum(self) -> str:
        """The SHA-256 of its content."""

    def __len__(self) -> int: ...


@runtime_checkable
class SplitsLike(Protocol):
    """The three corpora of any task."""

    @property
    def train(self) -> CorpusLike:
        """What is trained on."""

    @property
    def valid(self) -> CorpusLike:
        """What decides which checkpoint is the best."""

    @property
    def test(self) -> CorpusLike:
        """What is reported."""


@runtime_checkable
class VocabulariesLike(Protocol):
    """How the text of any task becomes numbers."""

    def save(self, folder: Path) -> None:
        """Write the files of a run."""


S = TypeVar("S", bound=SplitsLike)
V = TypeVar("V", bound=VocabulariesLike)


@dataclass(frozen=True, slots=True)
class ValidationMeasurement:
    """One validation: the loss in nats, and what a task adds to it."""

    event: ClassVar[type[Validated]] = Validated
    loss: float

    def criterion_value(self, criterion: str) -> tuple[float, float]:
        """The number to choose by, and the loss."""
        value: float | None = getattr(self, criterion)
        assert value is not None  # the recipe asks for what it chooses by
        return value, self.loss


class Task(ABC, Generic[S, V]):
    """Vocabularies, batches, model, loss and measures of a training.

    A task is made once in a session, of the recipe, its data and its vocabularies, and does not
    change: `loss` may be called from several threads at once.

    Args:
        encoded: The training data as ids, where they lie in files of the run.
    """

    epoch_scores: ClassVar[Mapping[str, str]]  # what the line of an epoch says of a validation
    example: ClassVar[str]  # what is learned from
    counted: ClassVar[str]  # what the loss is averaged over

    def __init__(
        self, recipe: Recipe, splits: S, vocabularies: V, encoded: EncodedCorpus | None = None
    ) -> None:
        self.recipe, self.splits, self.vocabularies = recipe, splits, vocabularies
        self.stored = encoded
        if not recipe.vocabulary.sampling:  # else it is another every time
            _ = self._plain

    @cached_property
    def _plain(self) -> Bucketed[Any]:
        """The training data with its best subwords."""
        return self.encoded()

    @staticmethod
    @abstractmethod
    def vocabularies_of(recipe: Recipe, splits: S) -> V:
        """Those of a new run, built from its training data."""

    @staticmethod
    @abstractmethod
    def vocabularies_in(folder: Path) -> V:
        """Those of a run that has begun."""

    @abstractmethod
    def encoded(self, epoch: int | None = None) -> Bucketed[Any]:
        """The training data as batches; its subwords drawn for an epoch, or None: the best ones."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A model with fresh parameters, drawn from torch's generator."""

    @abstractmethod
    def loss(
        self,
        model: Any,
        batch: Any,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[nn.Parameter],
    ) -> Float[Tensor, ""]:
        """The loss of a batch in update `number` (from 1): the sum over its `batch.tokens`.

        Args:
            scale, parameters: See `sequence_loss`.
            generator: For draws that are not dropout's.
        """

    @abstractmethod
    def measure(self, model: Any) -> ValidationMeasurement:
        """How good a model is on the validation set.

        Raises:
            NotFiniteError: If the loss is not finite.
        """

    def teacher_forcing(self, number: int) -> float | None:
        """The probability of the right token at update `number`; None: nothing is fed."""
        return None

    def batches(self, epoch: int) -> Bucketed[Any]:
        """The training batches of an epoch: with subword sampling, other tokens in each."""
        return self.encoded(epoch) if self.recipe.vocabulary.sampling else self._plain

    def notes(self, batches: Bucketed[Any]) -> list[str]:
        """What people should know of the data, and of the first batches of a session.

        Where train and valid come from the same files, each line says which of them it is about.
        """
        train, valid = self.splits.train.report, self.splits.valid.report
        splits = [("train: ", train), ("valid: ", valid)]
        splits += [("train: ", batches.report)] if batches.report.skipped else []
        return [f"{set_ if train.name == valid.name else ''}{report}" for set_, report in splits]


def finite(loss: float) -> float:
    """The loss of a validation; `NotFiniteError` where it is not finite."""
    if not math.isfinite(loss):
        raise NotFiniteError(
            "a finite validation loss",
            str(loss),
            "train in another folder (--out) with a lower training.learning_rate or a longer "
            "training.schedule.warmup",
        )
    return loss


AnyTask = Task[Any, Any]
