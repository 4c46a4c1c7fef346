"""Tasks: one file for each."""

from attlas.training.recipe import Recipe
from attlas.training.tasks.base import AnyTask
from attlas.training.tasks.classification import ClassificationTask
from attlas.training.tasks.translation import TranslationTask


def task_of(recipe: Recipe) -> type[AnyTask]:
    """What this recipe trains for."""
    return ClassificationTask if recipe.classifies else TranslationTask
