"""What the processes of a fleet do that do not lead it."""

from pathlib import Path
from typing import Any

from attlas.training.course import Course
from attlas.training.events import Outcome
from attlas.training.fleet import Word
from attlas.training.interrupts import Interrupts
from attlas.training.learner import Learner
from attlas.training.saver import Saver
from attlas.training.sitting import outcome_at
from attlas.training.tasks import AnyTask


def follow(task: AnyTask, learner: Learner[Any, Any], folder: Path) -> Outcome:
    """Take the checkpoint that the first process has taken, and do what it says until the end.

    The outcome is the one that the first process wrote down. `KeyboardInterrupt` where it was
    interrupted: Ctrl-C reaches every process, and the first one decides when they stop.
    """
    state = Saver(learner, task.recipe.training, folder).restored(learner.fleet.agreed(0))
    course = Course(task, learner)
    with Interrupts(lambda: None):
        while (word := learner.fleet.hear()) is not Word.FINISHED:
            match word:
                case Word.UPDATE:
                    state, _ = course.advance(state)
                case Word.GATHER_WEIGHTS:
                    learner.gather_weights()
                case Word.GATHER_ALL:
                    learner.gather_all()
                case Word.INTERRUPTED:
                    raise KeyboardInterrupt
    outcome = outcome_at(folder, state.update)
    assert outcome is not None  # it was written down before the word was said
    return outcome
