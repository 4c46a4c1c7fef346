"""Who keeps the checkpoints of a training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from attlas.errors import AttlasError
from attlas.runs import BEST, LAST, Shelf, numbered
from attlas.runs.checkpoint import under
from attlas.training.averaging import LastAveraging, MovingAveraging, mean_weights
from attlas.training.learner import AVERAGE, Learner
from attlas.training.settings import TrainingConfig
from attlas.training.state import TrainingState


class Saver:
    """Puts a learner and its state on the shelf of a run, and takes them from there."""

    def __init__(self, learner: Learner[Any, Any], settings: TrainingConfig, folder: Path) -> None:
        self.learner, self.settings, self.folder = learner, settings, folder
        self.shelf = Shelf(folder)

    def restore(self) -> TrainingState:
        """Take the last checkpoint; the state of the very beginning where there is none.

        Errors: `AttlasError` where there are checkpoints and nothing says which is the last.
        """
        self.shelf.clean()
        name = self.shelf.named(LAST)
        if name is None and self.shelf.begun():
            raise AttlasError(
                f"the file `last` in {self.folder}, beside its checkpoints",
                "none",
                f"write one of these into it: {', '.join(self.shelf.names())}",
            )
        return self.restored(self.learner.fleet.agreed(0 if name is None else int(name)))

    def restored(self, update: int) -> TrainingState:
        """Take the checkpoint of this update, as all processes of a fleet do; 0: the beginning."""
        if not update:
            return TrainingState()
        checkpoint = self.shelf.read(numbered(update))
        self.learner.restore(checkpoint, self.folder)
        return TrainingState.of(checkpoint.facts)

    def put_back(self, state: TrainingState) -> None:
        """Make the folder what it was at the checkpoint: what came after will come again."""
        best = state.best_update
        self.shelf.point(BEST, None if best is None else numbered(best))
        self.shelf.forget_after(state.update)
        self.shelf.prune(state.kept)

    def save(self, state: TrainingState) -> None:
        """A checkpoint of this very moment: the file, then the pointers, then the tidying."""
        self.shelf.write(numbered(state.update), self.learner.checkpoint(state.facts()))
        if state.best_update is not None:
            self.shelf.point(BEST, numbered(state.best_update))
        self.shelf.point(LAST, numbered(state.update))
        self.shelf.prune(state.kept)

    def listed(self, state: TrainingState) -> TrainingState:
        """The state in which this update is among those whose checkpoints the recipe keeps."""
        return replace(state, saved=(*state.saved, state.update)[-self.settings.keep :])

    def averaged(self, state: TrainingState) -> dict[str, Tensor] | None:
        """The average that the recipe asks for, of what is saved; None: none, or there is only one
        checkpoint.
        """
        averaging = self.settings.averaging
        if isinstance(averaging, MovingAveraging):
            return under(AVERAGE, self.shelf.read(numbered(state.update)).training)
        if not isinstance(averaging, LastAveraging):
            return None
        updates = sorted({*state.saved, state.update})[-averaging.count :]
        if len(updates) == 1:
            return None
        return mean_weights(self.shelf.read(numbered(update)).model for update in updates)
