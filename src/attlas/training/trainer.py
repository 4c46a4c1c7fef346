"""`train(recipe, folder)`: from a recipe to a run."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from attlas._files import explained, locked
from attlas._hardware import device_called, usable
from attlas._parallel import crew_of, kernels_of
from attlas._signals import Interrupts
from attlas.data import Bucketed
from attlas.errors import AttlasError
from attlas.ops.linear import check_autocast
from attlas.runs import AVERAGED, BEST, LAST, Run, Shelf, load_weights, numbered
from attlas.training.checkpointing import Saver, TrainingState, Window
from attlas.training.config import TrainingConfig
from attlas.training.distributed import Fleet, Word, device_of_rank, fleet_of, launched
from attlas.training.events import Interrupted, Outcome, Report, Started, Trained, silent
from attlas.training.initialization import begin_with
from attlas.training.learner import Learner, NotFiniteError, Update, seed_of
from attlas.training.logging import Clock, Teller, summary_writer
from attlas.training.recipe import Recipe
from attlas.training.setup import check_folder, joined, prepared
from attlas.training.tasks.base import AnyTask
from attlas.training.validation import Judge

# The end of a training.


def finish(
    state: TrainingState, reason: str, saver: Saver, judge: Judge, planned: int | None
) -> Outcome:
    """Measure what was not yet measured, the average too; point `best` at the best of all.

    `state` is saved. None of this is entered in it: a training that goes on knows nothing of it.
    """
    learner, shelf, teller = saver.learner, saver.shelf, judge.teller
    best: tuple[float, float] | None = None
    name: str | None = None
    if state.best_update is not None:  # or nothing was measured, or its weights are gone
        best, name = state.best, numbered(state.best_update)
    if name is None or state.validated != state.update:
        value, better = judge.judged(
            learner.as_whole(judge.task.build), numbered(state.update), state, best
        )
        if better:
            best, name = value, numbered(state.update)
    average = saver.averaged(state)
    if average is not None:
        shelf.write(AVERAGED, average)
        model = judge.task.build().to(learner.device)
        load_weights(model, average.model, saver.folder)
        value, better = judge.judged(model, AVERAGED, state, best)
        if better:
            best, name = value, AVERAGED
    if name is not None:
        shelf.point(BEST, name)
    note = saver.too_few(state)
    outcome = Outcome(
        **teller.clock.moment(state),
        reason=reason,
        planned=planned,
        criterion=judge.criterion.criterion,
        best=None if best is None else best[0],
        checkpoint=name,
        folder=str(saver.folder),
        notes=(note,) if note else (),
    )
    teller.tell(outcome)
    teller.journal.sync()
    return outcome


# When a training ends.


def reached(settings: TrainingConfig, state: TrainingState, seconds: float) -> str | None:
    """Which limit is reached, `seconds` into the training; None: go on."""
    patience = settings.validation.patience
    if settings.epochs is not None and state.epoch >= settings.epochs:
        return "epochs"
    if settings.updates is not None and state.update >= settings.updates:
        return "updates"
    if patience is not None and state.stale >= patience:
        return "patience"
    if settings.minutes is not None and seconds >= 60 * settings.minutes:
        return "minutes"
    return None


def planned(settings: TrainingConfig, batches: int) -> int | None:
    """How many updates `epochs` and `updates` allow, with so many batches an epoch; None: any."""
    limits = []
    if settings.epochs is not None:
        limits.append(settings.epochs * math.ceil(batches / settings.accumulate))
    if settings.updates is not None:
        limits.append(settings.updates)
    return min(limits, default=None)


def part_done(
    settings: TrainingConfig, state: TrainingState, seconds: float, batches: int
) -> float:
    """The part of the way to the nearest limit, 0 … 1; `batches` are those of this epoch."""
    parts = []
    if settings.epochs is not None:
        parts.append((state.epoch + state.position / batches) / settings.epochs)
    if settings.updates is not None:
        parts.append(state.update / settings.updates)
    if settings.minutes is not None:
        parts.append(seconds / (60 * settings.minutes))
    return min(1.0, max(parts))


# The course of a training: which examples each update learns from, and where it is then.


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


# A sitting: what one process does of a training.


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


# What the processes of a fleet do that do not lead it.


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


def train(recipe: Recipe, folder: Path | str, *, report: Report = silent) -> Outcome:
    """Train until a limit of the recipe is reached; go on where an earlier sitting ended.

    A run that was stopped or killed at any moment and goes on ends with the weights, to the bit,
    of one that was never disturbed: on the CPU with the same number of threads; on a GPU as far as
    its kernels repeat themselves. A finished run whose limits are not raised is left as it is, and
    its outcome is told again. Started by torchrun, many processes train one model, and the first of
    them reports. On a CPU `attlas train` begins with `attlas.keep_freed_memory()`, which is for
    the whole process, and so for you to call.

    report: is told every `Event` of the training, as it happens; `Progress` shows them to people.

    Errors: `AttlasError` where the folder holds another run or is in use, where the data or a
    checkpoint is not what it was, where a loss is not finite, or where the disk refuses.
    `KeyboardInterrupt` on Ctrl-C, after the update under way is done and saved; on SIGTERM, too,
    where one process trains.
    """
    folder = Path(folder)
    if launched() and recipe.data.passing:
        raise AttlasError(
            "data that every process of this training can read",
            "the standard input, which comes once",
            "name files instead",
        )
    device = usable(device_of_rank(device_called(recipe.training.device)))
    with fleet_of(device) as fleet:
        return _trained(recipe, folder, report, device, fleet)


def _trained(
    recipe: Recipe, folder: Path, report: Report, device: torch.device, fleet: Fleet
) -> Outcome:
    """The same, in a frame whose learner is gone before the fleet is."""
    graphics = [device] if device.type == "cuda" else []
    with ExitStack() as held:
        if fleet.leads:
            if recipe.training.tensorboard and not Shelf(folder).begun():
                summary_writer()  # before hours of reading, not after
            splits = None if folder.exists() else recipe.data.load()  # if that fails, no new folder
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
            check_folder(folder)
            held.enter_context(locked(folder))
            task = prepared(recipe, folder, report, splits)
        fleet.agreed(0)  # the folder is there
        if not fleet.leads:
            task = joined(recipe, folder)
        held.enter_context(torch.random.fork_rng(graphics))
        torch.manual_seed(seed_of(recipe.seed, "weights"))
        with kernels_of(1):  # orthogonal matrices are rounded differently by two
            model = task.build()
        if not Shelf(folder).begun():
            begin_with(model, folder, report)
        threads = recipe.training.threads
        crew = held.enter_context(crew_of(threads, device, model, alone=fleet.size > 1))
        learner = Learner(model, recipe.training, recipe.seed, device, task.loss, crew, fleet)
        if fleet.leads:
            return sit(task, learner, folder, report)
        return follow(task, learner, folder)
