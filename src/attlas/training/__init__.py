"""Training: from a recipe to a run."""

from attlas.training.config import TrainingConfig, ValidationConfig
from attlas.training.events import (
    EpochFinished,
    Event,
    Interrupted,
    Outcome,
    Preparing,
    Report,
    Started,
    Trained,
    Validated,
    silent,
)
from attlas.training.progress import Progress
from attlas.training.recipe import Recipe, read_recipe
from attlas.training.tasks.base import ValidationMeasurement
from attlas.training.trainer import train
from attlas.training.validation import Evaluation, evaluate, validation_loss

__all__ = [
    "EpochFinished",
    "Evaluation",
    "Event",
    "Interrupted",
    "Outcome",
    "Preparing",
    "Progress",
    "Recipe",
    "Report",
    "Started",
    "Trained",
    "TrainingConfig",
    "Validated",
    "ValidationConfig",
    "ValidationMeasurement",
    "evaluate",
    "read_recipe",
    "silent",
    "train",
    "validation_loss",
]
