"""A sitting: what one process does of a training."""

import time
from dataclasses import replace
from pathlib import Path

from attlas.data import Batches
from attlas.runs import LAST, Run, numbered
from attlas.training.events import Interrupted, Outcome, Report, Started, Trained
from attlas.training.finish import finish
from attlas.training.interrupts import Interrupts
from attlas.training.judge import Judge
from attlas.training.learner import Learner
from attlas.training.limits import part_done, reached
from attlas.training.material import Material
from attlas.training.saver import Saver
from attlas.training.state import TrainingState, Window
from attlas.training.teller import Clock, Teller

SAFETY = 100  # updates that a kill costs at most, where the recipe says nothing of saving


def sit(material: Material, learner: Learner, folder: Path, report: Report) -> Outcome:
    """Restore, train, finish."""
    settings = material.recipe.training
    saver = Saver(learner, settings, folder)
    state = saver.restore()
    clock = Clock(state.seconds)
    if reached(settings, state, clock.seconds()) is not None:
        done = _finished_before(folder, state)
        if done is not None:
            report(done)
            return done
    saver.put_back(state)
    with Teller(folder, state, clock, report, curves=settings.tensorboard) as teller:
        sitting = Sitting(material, learner, saver, teller, state)
        teller.tell(sitting.started())

        def interrupted() -> None:
            report(Interrupted(**clock.moment(sitting.state)))

        with Interrupts(interrupted) as interrupts:
            while (reason := reached(settings, sitting.state, clock.seconds())) is None:
                if interrupts.asked:
                    sitting.save()
                    raise KeyboardInterrupt
                sitting.advance()
            if saver.shelf.named(LAST) != numbered(sitting.state.update):
                sitting.save()
            return finish(sitting.state, reason, saver, sitting.judge, material.planned())


class Sitting:
    """`state` and the learner move on together, update by update."""

    def __init__(
        self,
        material: Material,
        learner: Learner,
        saver: Saver,
        teller: Teller,
        state: TrainingState,
    ) -> None:
        self.material, self.learner, self.saver, self.teller = material, learner, saver, teller
        self.settings = material.recipe.training
        self.judge = Judge(material, teller)
        self.state = state
        self._batches: tuple[int, Batches, list[tuple[int, ...]]] | None = None

    def advance(self) -> None:
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
            clock = self.teller.clock
            self.teller.tell(
                Trained(
                    # The epoch that this update was made in, also where it is now over.
                    **{**clock.moment(self.state), "epoch": state.epoch},
                    loss=window.loss / window.tokens,
                    tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                    rate=update.rate,
                    norm=update.norm,
                    teacher_forcing=update.teacher_forcing,
                    done=part_done(self.settings, self.state, clock.seconds(), len(order)),
                )
            )
        every = self.settings.validation.every
        validate = ended if every is None else self._every(every)
        if validate:
            self._validate()
        if validate or self._every(self.settings.save_every):
            self.state = self.saver.listed(self.state)
            self.save()
        elif self.settings.save_every is None and self._every(SAFETY):
            self.save()

    def save(self) -> None:
        """A checkpoint of this very moment."""
        self.state = self.teller.stamped(self.state)
        self.saver.save(self.state)

    def started(self) -> Started:
        """What this sitting begins with."""
        material, journal, settings = self.material, self.teller.journal, self.settings
        batches, order = self._of_epoch(self.state.epoch)
        reports = [material.splits.train.report, material.splits.valid.report]
        reports += [one.report for one in (batches, material.valid_batches) if one.report.skipped]
        notes = [str(report) for report in reports]
        warning = settings.schedule.too_long(material.planned())
        if warning:
            notes.append(warning)
        if journal.missing:
            notes.append(
                f"{journal.path} had lost its last {journal.missing:,} bytes: what they "
                "told is gone, the training is not affected"
            )
        return Started(
            **self.teller.clock.moment(self.state),
            parameters=sum(p.numel() for p in self.learner.parameters),
            pairs=len(material.splits.train),
            batches=len(order),
            device=str(self.learner.device),
            notes=tuple(notes),
        )

    def _validate(self) -> None:
        """Measure, and enter it in the state."""
        state = self.state
        name = numbered(state.update)
        value, better = self.judge.judged(self.learner.model, name, state, state.best)
        self.state = replace(
            state,
            validated=state.update,
            best=value if better else state.best,
            best_update=state.update if better else state.best_update,
            stale=0 if better else state.stale + 1,
        )

    def _of_epoch(self, epoch: int) -> tuple[Batches, list[tuple[int, ...]]]:
        if self._batches is None or self._batches[0] != epoch:
            batches = self.material.batches(epoch)
            self._batches = epoch, batches, batches.epoch(epoch)
        return self._batches[1:]

    def _every(self, updates: int | None) -> bool:
        return updates is not None and self.state.update % updates == 0


def _finished_before(folder: Path, state: TrainingState) -> Outcome | None:
    """The outcome that is written down for just this state."""
    events = Run(folder).events()
    last = events[-1] if events else {}
    if last.pop("event", None) != Outcome.kind or last["update"] != state.update:
        return None
    return Outcome(**{**last, "folder": str(folder)})
