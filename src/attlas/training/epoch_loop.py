"""The course of a training: which examples each update learns from, and where it is then."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attlas.data import Bucketed
from attlas.training.checkpointing import TrainingState
from attlas.training.config import TrainingConfig
from attlas.training.learner import Learner, PendingUpdate, Update
from attlas.training.tasks.base import AnyTask

UNREAD = 16  # updates whose results are not asked for yet


class EpochLoop:
    """The updates of a training, one after another, the same in every process of a process group.

    The results of the last updates may be on their way from a GPU, which is not waited for. Until
    `settled` they are not in the totals of a state, and nothing is known of their losses.

    An update's batches are dealt out row by row to all who share it, the threads of a thread group
    or the processes of a process_group: what an update learns from does not depend on how many they
    are, nor what it comes to beyond the rounding of sums, and the masks of dropout.
    """

    def __init__(self, task: AnyTask, learner: Learner[Any, Any]) -> None:
        self.task, self.learner = task, learner
        self._batches: tuple[int, Bucketed[Any], Sequence[tuple[int, ...]]] | None = None
        self._pending: list[tuple[PendingUpdate, float]] = []
        self.last: Update | None = None  # of those that are settled

    def advance(self, state: TrainingState) -> TrainingState:
        """The state after the next update, which has begun; it is settled if it is done."""
        if self.learner.reads_next:  # a reading is of weights that are known to be good
            state = self.settled(state)
        start = time.monotonic()
        batches, order = self.epoch(state.epoch)
        accumulate = self.task.recipe.training.gradient_accumulation_steps
        group = order[state.position : state.position + accumulate]
        pending = self.learner.submit(self._shares(batches, group), state.update + 1)
        position = state.position + len(group)
        ended = position == len(order)
        self._pending.append((pending, time.monotonic() - start))
        state = replace(
            state,
            update=state.update + 1,
            epoch=state.epoch + ended,
            position=0 if ended else position,
        )
        return self.settled(state, 0 if pending.done else UNREAD)

    def settled(self, state: TrainingState, unread: int = 0) -> TrainingState:
        """The state with the results of all updates in its totals, but for the last `unread`.

        Raises:
            NotFiniteError: For the first update whose loss or gradient is not finite.
        """
        while len(self._pending) > unread:
            update, seconds = self._pending.pop(0)
            self.last = update.done
            if self.last is None:
                start = time.monotonic()
                self.last = update.result()
                seconds += time.monotonic() - start
            state = replace(
                state,
                window=state.window.plus(self.last, seconds),
                epoch_totals=state.epoch_totals.plus(self.last, 0.0),
            )
        return state

    def epoch(self, number: int) -> tuple[Bucketed[Any], Sequence[tuple[int, ...]]]:
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
        return planned_updates(self.task.recipe.training, len(order))

    def _shares(self, batches: Bucketed[Any], group: Sequence[Sequence[int]]) -> list[list[Any]]:
        """The batches of each share that is computed in this process; None: no row was left."""
        thread_group, process_group = self.learner.thread_group, self.learner.process_group
        parts = thread_group.size * process_group.size
        offsets = range(
            process_group.rank * thread_group.size, (process_group.rank + 1) * thread_group.size
        )
        dealt = ([rows[offset::parts] for rows in group] for offset in offsets)
        return [[batches.batch(rows) if rows else None for rows in share] for share in dealt]


def planned_updates(settings: TrainingConfig, batches: int) -> int | None:
    """How many updates `max_epochs` and `max_steps` allow, with so many batches an epoch; None:
    any."""
    limits = []
    if settings.max_epochs is not None:
        limits.append(
            settings.max_epochs * math.ceil(batches / settings.gradient_accumulation_steps)
        )
    if settings.max_steps is not None:
        limits.append(settings.max_steps)
    return min(limits, default=None)
