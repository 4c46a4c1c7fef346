"""Who measures a model on the validation set, and says whether it is the best so far."""

from dataclasses import asdict
from typing import Any

from attlas.models import SequenceToSequence
from attlas.training.evaluation import measure
from attlas.training.events import Validated
from attlas.training.material import Material
from attlas.training.state import TrainingState
from attlas.training.teller import Teller


class Judge:
    """Measures by the criterion of the recipe, and tells what came out."""

    def __init__(self, material: Material, teller: Teller) -> None:
        self.material, self.teller = material, teller
        self.criterion = material.recipe.training.validation

    def judged(
        self,
        model: SequenceToSequence[Any],
        checkpoint: str,
        state: TrainingState,
        best: tuple[float, float] | None,
    ) -> tuple[tuple[float, float], bool]:
        """The value of the criterion, and whether it beats the best; both are told."""
        material = self.material
        found = measure(
            model,
            material.valid_batches,
            material.valid_corpus(),
            material.vocabularies,
            self.criterion,
        )
        value = found.judged(self.criterion.criterion)
        better = self.criterion.better(value, best)
        moment = self.teller.clock.moment(state)
        self.teller.tell(Validated(**moment, checkpoint=checkpoint, best=better, **asdict(found)))
        return value, better
