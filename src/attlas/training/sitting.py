"""A sitting: what one process does of a training."""

import time
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from attlas.data import Batches
from attlas.errors import AttlasError
from attlas.models import SequenceToSequence
from attlas.runs import (
    AVERAGED,
    BEST,
    LAST,
    METRICS,
    Checkpoint,
    Run,
    Shelf,
    load_weights,
    numbered,
)
from attlas.training.averaging import LastAveraging, mean_weights
from attlas.training.evaluation import measure
from attlas.training.events import (
    Event,
    Interrupted,
    Outcome,
    Report,
    Started,
    Trained,
    Validated,
)
from attlas.training.interrupts import Interrupts
from attlas.training.journal import Journal
from attlas.training.learner import Learner
from attlas.training.limits import part_done, reached
from attlas.training.material import Material
from attlas.training.state import TrainingState, Window
from attlas.training.tensorboard import TensorBoard


class Sitting:
    """One process's part of a training: `state` and `learner` move on together."""

    def __init__(self, material: Material, learner: Learner, folder: Path, report: Report) -> None:
        self.material, self.learner, self.folder, self.report = material, learner, folder, report
        self.settings = material.recipe.training
        self.criterion = self.settings.validation
        self.shelf = Shelf(folder)
        self.state = TrainingState()
        self._begun = time.monotonic()  # of the training, were it one sitting
        self._batches: tuple[int, Batches, list[tuple[int, ...]]] | None = None

    def sit(self) -> Outcome:
        """Restore, train, finish."""
        self.shelf.clean()
        self._restore()
        done = self._finished_before()
        if done is not None:
            self.report(done)
            return done
        self._put_back()
        with ExitStack() as open_files:
            self.journal = open_files.enter_context(
                Journal(self.folder / METRICS, self.state.journal)
            )
            self.boards = [
                open_files.enter_context(TensorBoard(self.folder, self.state.update))
                for _ in range(self.settings.tensorboard)
            ]
            self._tell(self._started())
            with Interrupts(lambda: self.report(Interrupted(**self._now()))) as interrupts:
                while (reason := reached(self.settings, self.state, self._seconds())) is None:
                    if interrupts.asked:
                        self._save(planned=False)
                        raise KeyboardInterrupt
                    self._advance()
                return self._finish(reason)

    def _restore(self) -> None:
        if self.shelf.named(LAST) is None:
            if len(self.shelf.numbered()) > 1:  # more than one killed save can leave
                raise AttlasError(
                    f"the file `last` in {self.folder}, beside its checkpoints",
                    "none",
                    f"write one of these into it: {', '.join(self.shelf.names())}",
                )
            return
        checkpoint = self.shelf.read(LAST)
        self.state = TrainingState.of(checkpoint.facts)
        self.learner.restore(checkpoint, self.folder)
        self._begun -= self.state.seconds

    def _put_back(self) -> None:
        """Make the folder what it was at the checkpoint: what came after will come again."""
        best = self.state.best_update
        self.shelf.point(BEST, None if best is None else numbered(best))
        self.shelf.forget_after(self.state.update)
        self.shelf.prune(self.state.kept)

    def _finished_before(self) -> Outcome | None:
        """The outcome that is written down for just this state, if its limit still holds."""
        if reached(self.settings, self.state, self._seconds()) is None:
            return None
        events = Run(self.folder).events()
        last = events[-1] if events else {}
        if last.pop("event", None) != Outcome.kind or last["update"] != self.state.update:
            return None
        return Outcome(**{**last, "folder": str(self.folder)})

    def _advance(self) -> None:
        """One update, and what the recipe plans after it."""
        start, state = time.monotonic(), self.state
        batches, order = self._of_epoch(state.epoch)
        group = order[state.position : state.position + self.settings.accumulate]
        update = self.learner.update([batches.batch(rows) for rows in group], state.update + 1)
        position = state.position + len(group)
        ended = position == len(order)
        window = Window(
            state.window.loss + update.loss,
            state.window.tokens + update.tokens,
            state.window.seconds + time.monotonic() - start,
        )
        self.state = replace(
            state,
            update=state.update + 1,
            epoch=state.epoch + ended,
            position=0 if ended else position,
            window=window,
        )
        if self._every(self.settings.log_every):
            self.state = replace(self.state, window=Window())
            self._tell(
                Trained(
                    **self._now(),
                    loss=window.loss / window.tokens,
                    tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                    rate=update.rate,
                    norm=update.norm,
                    teacher_forcing=update.teacher_forcing,
                    done=part_done(self.settings, self.state, self._seconds(), len(order)),
                )
            )
        validate = ended if self.criterion.every is None else self._every(self.criterion.every)
        if validate:
            self._validate()
        if validate or self._every(self.settings.save_every):
            self._save(planned=True)

    def _validate(self) -> None:
        """Measure, and enter it in the state."""
        name, state = numbered(self.state.update), self.state
        value, better = self._measured(self.learner.model, name, state.best)
        self.state = replace(
            state,
            validated=state.update,
            best=value if better else state.best,
            best_update=state.update if better else state.best_update,
            stale=0 if better else state.stale + 1,
        )

    def _measured(
        self, model: SequenceToSequence[Any], checkpoint: str, best: tuple[float, float] | None
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
        self._tell(Validated(**self._now(), checkpoint=checkpoint, best=better, **asdict(found)))
        return value, better

    def _save(self, *, planned: bool) -> None:
        """A checkpoint of this very moment: the file, then the pointers, then the tidying."""
        saved = self.state.saved
        if planned:
            saved = (*saved, self.state.update)[-self.settings.keep :]
        self.state = state = replace(
            self.state, saved=saved, seconds=self._seconds(), journal=self.journal.sync()
        )
        self.shelf.write(numbered(state.update), self.learner.checkpoint(state.facts()))
        if state.best_update is not None:
            self.shelf.point(BEST, numbered(state.best_update))
        self.shelf.point(LAST, numbered(state.update))
        self.shelf.prune(self.state.kept)

    def _finish(self, reason: str) -> Outcome:
        """Measure what was not yet measured, the average too; point `best` at the best of all."""
        state, learner = self.state, self.learner
        if self.shelf.named(LAST) != numbered(state.update):
            self._save(planned=False)
        best = state.best
        name = None if state.best_update is None else numbered(state.best_update)
        if state.validated != state.update:
            value, better = self._measured(learner.model, numbered(state.update), best)
            if better:
                best, name = value, numbered(state.update)
        weights = self._averaged()
        if weights is not None:
            self.shelf.write(AVERAGED, Checkpoint(weights, facts={"update": state.update}))
            model = deepcopy(learner.model)
            load_weights(model, weights, self.folder)
            value, better = self._measured(model, AVERAGED, best)
            if better:
                best, name = value, AVERAGED
        if name is not None:
            self.shelf.point(BEST, name)
        outcome = Outcome(
            **self._now(),
            reason=reason,
            criterion=self.criterion.criterion,
            best=None if best is None else best[0],
            checkpoint=name,
            folder=str(self.folder),
        )
        self._tell(outcome)
        self.journal.sync()
        return outcome

    def _averaged(self) -> dict[str, Tensor] | None:
        """The average that the recipe asks for; None: none, or there is only one checkpoint."""
        if self.learner.average is not None:
            return self.learner.average
        averaging, state = self.settings.averaging, self.state
        if not isinstance(averaging, LastAveraging):
            return None
        updates = sorted({*state.saved, state.update})[-averaging.count :]
        if len(updates) == 1:
            return None
        return mean_weights(self.shelf.read(numbered(update)).model for update in updates)

    def _of_epoch(self, epoch: int) -> tuple[Batches, list[tuple[int, ...]]]:
        if self._batches is None or self._batches[0] != epoch:
            batches = self.material.batches(epoch)
            self._batches = epoch, batches, batches.epoch(epoch)
        return self._batches[1:]

    def _every(self, updates: int | None) -> bool:
        return updates is not None and self.state.update % updates == 0

    def _seconds(self) -> float:
        return time.monotonic() - self._begun

    def _now(self) -> dict[str, Any]:
        return {
            "update": self.state.update,
            "epoch": self.state.epoch,
            "seconds": round(self._seconds(), 3),
        }

    def _tell(self, event: Event) -> None:
        self.journal.write(event)
        for board in self.boards:
            board.write(event)
        self.report(event)

    def _started(self) -> Started:
        material = self.material
        batches, order = self._of_epoch(self.state.epoch)
        reports = [material.splits.train.report, material.splits.valid.report]
        reports += [one.report for one in (batches, material.valid_batches) if one.report.skipped]
        notes = [str(report) for report in reports]
        if self.journal.missing:
            notes.append(
                f"{self.journal.path} had lost its last {self.journal.missing:,} bytes: what they "
                "told is gone, the training is not affected"
            )
        return Started(
            **self._now(),
            parameters=sum(p.numel() for p in self.learner.parameters),
            pairs=len(material.splits.train),
            batches=len(order),
            device=str(self.learner.device),
            notes=tuple(notes),
        )
