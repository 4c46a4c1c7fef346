"""Who measures a model on the validation set, and says whether it is the best so far."""

from dataclasses import asdict

from torch import nn

from attlas.training.state import TrainingState
from attlas.training.tasks import AnyTask
from attlas.training.teller import Teller


class Judge:
    """Measures by the criterion of the recipe, and tells what came out."""

    def __init__(self, task: AnyTask, teller: Teller) -> None:
        self.task, self.teller = task, teller
        self.criterion = task.recipe.training.validation

    def judged(
        self,
        model: nn.Module,
        checkpoint: str,
        state: TrainingState,
        best: tuple[float, float] | None,
    ) -> tuple[tuple[float, float], bool]:
        """The value of the criterion, and whether it beats the best; both are told."""
        found = self.task.measure(model)
        value = found.judged(self.criterion.criterion)
        better = self.criterion.better(value, best)
        moment = self.teller.clock.moment(state)
        self.teller.tell(found.event(**moment, checkpoint=checkpoint, best=better, **asdict(found)))
        return value, better
