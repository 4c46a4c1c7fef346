"""The course of a training: which examples each update learns from, and where it is then."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attlas.data import Bucketed
from attlas.training.learner import Learner
from attlas.training.limits import planned
from attlas.training.state import TrainingState, Window
from attlas.training.tasks import AnyTask
from attlas.training.update import Update


class Course:
    """The updates of a training, one after another, the same in every process of a fleet.

    An update's batches are dealt out row by row to all who share it, the threads of a crew or the
    processes of a fleet: what an update learns from does not depend on how many they are, nor what
    it comes to beyond the rounding of sums, and the masks of dropout.
    """

    def __init__(self, task: AnyTask, learner: Learner[Any, Any]) -> None:
        self.task, self.learner = task, learner
        self._batches: tuple[int, Bucketed[Any], list[tuple[int, ...]]] | None = None

    def advance(self, state: TrainingState) -> tuple[TrainingState, Update]:
        """The next update, made, and the state after it."""
        start = time.monotonic()
        batches, order = self.epoch(state.epoch)
        accumulate = self.task.recipe.training.accumulate
        group = order[state.position : state.position + accumulate]
        update = self.learner.update(self._shares(batches, group), state.update + 1)
        position = state.position + len(group)
        ended = position == len(order)
        window = Window(
            state.window.loss + update.loss,
            state.window.tokens + update.tokens,
            state.window.seconds + time.monotonic() - start,
            state.window.weight + update.weight,
        )
        return replace(
            state,
            update=state.update + 1,
            epoch=state.epoch + ended,
            position=0 if ended else position,
            window=window,
        ), update

    def epoch(self, number: int) -> tuple[Bucketed[Any], list[tuple[int, ...]]]:
        """The batches of an epoch, and their order."""
        if self._batches is None or self._batches[0] != number:
            batches = self.task.batches(number)
            self._batches = number, batches, batches.epoch(number)
        return self._batches[1:]

    def planned(self, state: TrainingState) -> int | None:
        """Of how many updates the whole training is; None where nothing but time limits it.

        As if all epochs had as many batches as the one at hand: with subword sampling, about so.
        """
        _, _, order = self._batches or (state.epoch, *self.epoch(state.epoch))
        return planned(self.task.recipe.training, len(order))

    def _shares(self, batches: Bucketed[Any], group: Sequence[Sequence[int]]) -> list[list[Any]]:
        """The batches of each share that is computed in this process; None: no row was left."""
        crew, fleet = self.learner.crew, self.learner.fleet
        parts = crew.size * fleet.size
        places = range(fleet.rank * crew.size, (fleet.rank + 1) * crew.size)
        dealt = ([rows[place::parts] for rows in group] for place in places)
        return [[batches.batch(rows) if rows else None for rows in share] for share in dealt]
