"""What can be learned: one file per task."""

from typing import Any

from attlas.training.recipe import Recipe
from attlas.training.tasks.classifying import Classifying
from attlas.training.tasks.task import Measurement, Task
from attlas.training.tasks.translating import Translating

__all__ = ["AnyTask", "Classifying", "Measurement", "Task", "Translating", "task_of"]

AnyTask = Task[Any, Any]


def task_of(recipe: Recipe) -> type[AnyTask]:
    """What this recipe trains for."""
    return Classifying if recipe.classifies else Translating
