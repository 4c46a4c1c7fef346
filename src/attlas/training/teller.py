"""Who tells what happens: to the journal, to TensorBoard, to the report."""

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from attlas.runs import METRICS
from attlas.training.events import Event, Report
from attlas.training.journal import Journal
from attlas.training.state import TrainingState
from attlas.training.tensorboard import TensorBoard


class Clock:
    """Seconds of training over all sittings; `before` are those of the earlier ones."""

    def __init__(self, before: float) -> None:
        self._begun = time.monotonic() - before

    def seconds(self) -> float:
        """Until now."""
        return time.monotonic() - self._begun

    def moment(self, state: TrainingState) -> dict[str, Any]:
        """What every event says of when it happened."""
        return {
            "update": state.update,
            "epoch": state.epoch,
            "seconds": round(self.seconds(), 3),
        }


class Teller:
    """`with Teller(…) as teller: teller.tell(event)`; what came after `state` is forgotten."""

    def __init__(
        self, folder: Path, state: TrainingState, clock: Clock, report: Report, *, curves: bool
    ) -> None:
        self.clock, self._report = clock, report
        with ExitStack() as files:
            self.journal = files.enter_context(Journal(folder / METRICS, state.journal))
            self._boards = [
                files.enter_context(TensorBoard(folder, state.update)) for _ in range(curves)
            ]
            self._files = files.pop_all()

    def tell(self, event: Event) -> None:
        """Tell everybody."""
        self.journal.write(event)
        for board in self._boards:
            board.write(event)
        self._report(event)

    def stamped(self, state: TrainingState) -> TrainingState:
        """The state, with the time and the length of a journal that is safely written."""
        return replace(state, seconds=self.clock.seconds(), journal=self.journal.sync())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()
