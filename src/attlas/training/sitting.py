"""A sitting: what one process does of a training."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from attlas.layers.autocast import check_autocast
from attlas.runs import LAST, Run, Shelf, numbered
from attlas.training.course import Course
from attlas.training.events import Interrupted, Outcome, Report, Started, Trained
from attlas.training.finish import finish
from attlas.training.fleet import Word
from attlas.training.interrupts import Interrupts
from attlas.training.judge import Judge
from attlas.training.learner import Learner
from attlas.training.limits import part_done, reached
from attlas.training.saver import Saver
from attlas.training.state import TrainingState, Window
from attlas.training.tasks import AnyTask
from attlas.training.teller import Clock, Teller
from attlas.training.update import NotFiniteError

SAFETY = 100  # updates that a kill costs at most, where the recipe says nothing of saving


def sit(task: AnyTask, learner: Learner[Any, Any], folder: Path, report: Report) -> Outcome:
    """Restore, train, finish."""
    settings = task.recipe.training
    if settings.validation.translate and not task.recipe.classifies:  # now, not after hours
        searched, setting = settings.validation.decoding, "training.validation.decoding.autocast"
        check_autocast(searched.autocast, learner.device, setting)
    saver = Saver(learner, settings, folder)
    state = saver.restore()
    clock = Clock(state.seconds)
    ended = reached(settings, state, clock.seconds())
    if ended is not None:
        done = outcome_at(folder, state.update)
        if done is not None and done.reason == ended:  # else another limit ends it now
            report(done)
            learner.fleet.say(Word.FINISHED)
            return done
    saver.put_back(state)
    with Teller(folder, state, clock, report, curves=settings.tensorboard) as teller:
        sitting = Sitting(task, learner, saver, teller, state)
        teller.tell(sitting.started())

        def interrupted() -> None:
            report(Interrupted(**clock.moment(sitting.state)))

        alone = learner.fleet.size == 1
        with told_of_checkpoints(saver.shelf), Interrupts(interrupted, alone=alone) as interrupts:
            while (reason := reached(settings, sitting.state, clock.seconds())) is None:
                if interrupts.asked:
                    sitting.save()
                    learner.fleet.say(Word.INTERRUPTED)
                    raise KeyboardInterrupt
                sitting.advance()
            saved = saver.shelf.named(LAST) == numbered(sitting.state.update)
            if not saved or reached(settings, sitting.state, sitting.state.seconds) is None:
                sitting.save()  # also where the time ran out while the checkpoint was written
            with learner.crew.resting():
                planned = sitting.course.planned(sitting.state)
                outcome = finish(sitting.state, reason, saver, sitting.judge, planned)
    learner.fleet.say(Word.FINISHED)
    return outcome


@contextmanager
def told_of_checkpoints(shelf: Shelf) -> Iterator[None]:
    """Of what is not finite in the block, say whether there is a checkpoint of before it."""
    try:
        yield
    except NotFiniteError as error:
        last = shelf.named(LAST)
        there = "no checkpoint was saved" if last is None else f"checkpoint {last} is from"
        advice = f"{error.do}; {there} before it"
        raise NotFiniteError(error.wanted, error.came, advice) from None


class Sitting:
    """`state` and the learner move on together, update by update."""

    def __init__(
        self,
        task: AnyTask,
        learner: Learner[Any, Any],
        saver: Saver,
        teller: Teller,
        state: TrainingState,
    ) -> None:
        self.task, self.learner, self.saver, self.teller = task, learner, saver, teller
        self.settings = task.recipe.training
        self.judge = Judge(task, teller)
        self.state = state
        self.course = Course(task, learner)

    def advance(self) -> None:
        """One update, and what the recipe plans after it."""
        before = self.state
        self.learner.fleet.say(Word.UPDATE)
        self.state, update = self.course.advance(before)
        window, batches = self.state.window, len(self.course.epoch(before.epoch)[1])
        every = self.settings.validation.every
        ended = self.state.epoch > before.epoch
        if self._every(self.settings.log_every):
            self.state = replace(self.state, window=Window())
            clock = self.teller.clock
            self.teller.tell(
                Trained(
                    # The epoch that this update was made in, also where it is now over.
                    **{**clock.moment(self.state), "epoch": before.epoch},
                    loss=window.loss / window.weight,
                    tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                    rate=update.rate,
                    norm=update.norm,
                    teacher_forcing=self.task.teacher_forcing(self.state.update),
                    done=part_done(self.settings, self.state, clock.seconds(), batches),
                )
            )
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
        task, journal, settings = self.task, self.teller.journal, self.settings
        batches, order = self.course.epoch(self.state.epoch)
        notes = task.notes(batches)
        planned = self.course.planned(self.state)
        misfits = (
            settings.schedule.misfit(planned),
            settings.too_late(planned),
            self.learner.precision.slower,
        )
        notes.extend(told for told in misfits if told)
        if journal.missing:
            notes.append(
                f"{journal.path} had lost its last {journal.missing:,} bytes: what they "
                "told is gone, the training is not affected"
            )
        return Started(
            **self.teller.clock.moment(self.state),
            parameters=sum(p.numel() for p in self.learner.parameters),
            pairs=batches.report.kept,
            batches=len(order),
            device=str(self.learner.device),
            notes=tuple(notes),
            example=task.example,
            counted=task.counted,
            numbers=self.learner.precision.numbers,
        )

    def _validate(self) -> None:
        """Measure, and enter it in the state."""
        state = self.state
        name = numbered(state.update)
        model = self.learner.as_whole(self.task.build)
        with self.learner.crew.resting():
            value, better = self.judge.judged(model, name, state, state.best)
        self.state = replace(
            state,
            validated=state.update,
            best=value if better else state.best,
            best_update=state.update if better else state.best_update,
            stale=0 if better else state.stale + 1,
        )

    def _every(self, updates: int | None) -> bool:
        return updates is not None and self.state.update % updates == 0


def outcome_at(folder: Path, update: int) -> Outcome | None:
    """The outcome that is written down for the state after just this update; None also where the
    line does not tell all of it: then the training ends anew.
    """
    events = Run(folder).events()
    last = events[-1] if events else {}
    if last.pop("event", None) != Outcome.kind or last.get("update") != update:
        return None
    try:
        return TypeAdapter(Outcome).validate_python({**last, "folder": str(folder)})
    except ValidationError:
        return None
