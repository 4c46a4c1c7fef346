"""`train(recipe, folder)`: from a recipe to a run."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from attlas._files import explained, locked
from attlas._hardware import (
    device_called,
    gpu_memory,
    peak_gpu_memory,
    peak_memory,
    tf32_products,
    usable,
)
from attlas._parallel import kernel_threads, open_thread_group
from attlas._signals import Interrupts
from attlas.errors import AttlasError, DataError
from attlas.ops.linear import check_autocast
from attlas.runs import AVERAGED, BEST, LAST, WATCH, CheckpointStore, Run, load_weights, numbered
from attlas.training.checkpointing import CheckpointManager, RunningTotals, TrainingState
from attlas.training.config import TrainingConfig
from attlas.training.cuda_graphs import BatchShapes, GraphLearner, check_capturable
from attlas.training.distributed import (
    Command,
    ProcessGroup,
    device_of_rank,
    is_launched,
    open_process_group,
)
from attlas.training.epoch_loop import EpochLoop
from attlas.training.events import (
    EpochFinished,
    Interrupted,
    Outcome,
    Report,
    Started,
    Trained,
    Validated,
    Watched,
    silent,
)
from attlas.training.initialization import begin_with
from attlas.training.learner import Learner, NotFiniteError, derive_seed
from attlas.training.logging import Clock, EventLogger, summary_writer
from attlas.training.reading import is_opened, read_data
from attlas.training.recipe import Recipe
from attlas.training.setup import check_folder, join_run, prepare_run
from attlas.training.tasks.base import AnyTask
from attlas.training.validation import Validator

# The end of a training.


def finish(
    state: TrainingState,
    reason: str,
    manager: CheckpointManager,
    validator: Validator,
    planned_updates: int | None,
) -> Outcome:
    """Validate what was not yet validated, also the average; let `best` name the best of all.

    `state` is saved. None of this is entered in it: a training that goes on knows nothing of it.
    """
    learner, store, logger = manager.learner, manager.store, validator.logger
    best: tuple[float, float] | None = None
    name: str | None = None
    if state.best_update is not None:  # or nothing was measured, or its weights are gone
        best, name = state.best, numbered(state.best_update)
    if name is None or state.validated != state.update:
        value, better = validator.validate(
            learner.as_whole(validator.task.build), numbered(state.update), state, best
        )
        if better:
            best, name = value, numbered(state.update)
    average = manager.averaged(state)
    if average is not None:
        store.write(AVERAGED, average)
        model = validator.task.build().to(learner.device)
        load_weights(model, average.model, manager.folder)
        value, better = validator.validate(model, AVERAGED, state, best)
        if better:
            best, name = value, AVERAGED
    if name is not None:
        store.point(BEST, name)
    peak, device = peak_gpu_memory(learner.device), learner.device
    max_tokens = validator.task.recipe.batching.max_tokens
    notes = manager.too_few(state), note_unused_memory(peak, gpu_memory(device), max_tokens)
    outcome = Outcome(
        **logger.clock.moment(state),
        reason=reason,
        planned=planned_updates,
        criterion=validator.criterion.criterion,
        best=None if best is None else best[0],
        checkpoint=name,
        folder=str(manager.folder),
        notes=tuple(note for note in notes if note),
        peak_memory=peak_memory(),
        peak_gpu_memory=peak,
    )
    logger.log(outcome)
    logger.journal.sync()
    return outcome


_UNUSED = 4  # so many times the memory of a training leave room for another batch size


def note_unused_memory(peak: int | None, total: int | None, max_tokens: int) -> str | None:
    """What to say where a training used little of a GPU's memory.

    The size of a batch is that of the recipe on every device, so that a recipe is the same training
    everywhere; memory does not choose it.
    """
    if not peak or total is None or total < _UNUSED * peak:
        return None
    return (
        f"the training took {peak / 2**20:,.0f} MiB of the GPU's {total / 2**20:,.0f}: a larger "
        f"batching.max_tokens than {max_tokens:,} would fit, and a GPU computes large batches "
        "faster; the result depends on it"
    )


# When a training ends.


def limit_reached(settings: TrainingConfig, state: TrainingState, seconds: float) -> str | None:
    """Which limit is reached, `seconds` into the training; None: go on."""
    patience = settings.validation.patience
    if settings.max_epochs is not None and state.epoch >= settings.max_epochs:
        return "max_epochs"
    if settings.max_steps is not None and state.update >= settings.max_steps:
        return "max_steps"
    if patience is not None and state.stale >= patience:
        return "patience"
    if settings.max_minutes is not None and seconds >= 60 * settings.max_minutes:
        return "max_minutes"
    return None


def fraction_done(
    settings: TrainingConfig, state: TrainingState, seconds: float, batches: int
) -> float:
    """The part of the way to the nearest limit, 0 … 1; `batches` are those of this epoch."""
    parts = []
    if settings.max_epochs is not None:
        parts.append((state.epoch + state.position / batches) / settings.max_epochs)
    if settings.max_steps is not None:
        parts.append(state.update / settings.max_steps)
    if settings.max_minutes is not None:
        parts.append(seconds / (60 * settings.max_minutes))
    return min(1.0, max(parts))


# A session: the part of a training in one process.


SAFETY = 100  # updates that a kill costs at most, where the recipe says nothing of saving


def run_session(task: AnyTask, learner: Learner[Any, Any], folder: Path, report: Report) -> Outcome:
    """Restore, train, finish."""
    settings = task.recipe.training
    if settings.validation.translate and not task.recipe.classifies:  # now, not after hours
        searched, setting = settings.validation.decoding, "training.validation.decoding.autocast"
        check_autocast(searched.autocast, learner.device, setting)
    manager = CheckpointManager(learner, settings, folder)
    state = manager.restore()
    clock = Clock(state.seconds)
    ended = limit_reached(settings, state, clock.seconds())
    if ended is not None:
        previous_outcome = outcome_at(folder, state.update)
        if (
            previous_outcome is not None and previous_outcome.reason == ended
        ):  # else another limit ends it now
            report(previous_outcome)
            learner.process_group.send(Command.FINISHED)
            return previous_outcome
    manager.roll_back(state)
    watches = settings.watch.every is not None
    with EventLogger(
        folder, state, clock, report, curves=settings.tensorboard, watches=watches
    ) as logger:
        learner.watch_from(state.update, folder / WATCH)
        session = TrainingSession(task, learner, manager, logger, state)
        logger.log(session.started())

        def interrupted() -> None:
            report(Interrupted(**clock.moment(session.state)))

        single_process = learner.process_group.size == 1
        with (
            explain_with_checkpoints(manager.store),
            Interrupts(interrupted, alone=single_process) as interrupts,
        ):
            while (reason := limit_reached(settings, session.state, clock.seconds())) is None:
                if interrupts.requested:
                    interrupts.finish()  # what was announced is saved, whatever is pressed
                    session.save()
                    learner.process_group.send(Command.INTERRUPTED)
                    raise KeyboardInterrupt
                session.advance()
            is_saved = manager.store.named(LAST) == numbered(session.state.update)
            if (
                not is_saved
                or limit_reached(settings, session.state, session.state.seconds) is None
            ):
                session.save()  # also where the time ran out while the checkpoint was written
            with learner.thread_group.resting():
                num_updates = session.loop.planned(session.state)
                outcome = finish(session.state, reason, manager, session.validator, num_updates)
    learner.process_group.send(Command.FINISHED)
    return outcome


@contextmanager
def explain_with_checkpoints(store: CheckpointStore) -> Iterator[None]:
    """Of what is not finite in the block, say whether there is a checkpoint of before it."""
    try:
        yield
    except NotFiniteError as error:
        last = store.named(LAST)
        checkpoint_text = (
            "no checkpoint was saved" if last is None else f"checkpoint {last} is from"
        )
        advice = f"{error.hint}; {checkpoint_text} before it"
        raise NotFiniteError(error.expected, error.got, advice) from None


class TrainingSession:
    """`state` and the learner move on together, update by update."""

    def __init__(
        self,
        task: AnyTask,
        learner: Learner[Any, Any],
        manager: CheckpointManager,
        logger: EventLogger,
        state: TrainingState,
    ) -> None:
        self.task, self.learner, self.manager, self.logger = task, learner, manager, logger
        self.settings = task.recipe.training
        self.validator = Validator(task, logger, last_validation(manager.folder, state.update))
        self.state = state
        self.loop = EpochLoop(task, learner)

    def advance(self) -> None:
        """One update, and what the recipe plans after it."""
        previous = self.state
        self.learner.process_group.send(Command.UPDATE)
        is_read = self.learner.reads_next
        self.state = self.loop.advance(previous)
        if is_read and self.loop.last is not None and self.loop.last.reading is not None:
            moment = {**self.logger.clock.moment(self.state), "epoch": previous.epoch}
            self.logger.log(Watched(**moment, reading=self.loop.last.reading))
        batches = len(self.loop.epoch(previous.epoch)[1])
        interval = self.settings.validation.every
        ended = self.state.epoch > previous.epoch
        is_logged = self._every(self.settings.log_every)
        validate = ended if interval is None else self._every(interval)
        if is_logged or validate or ended:
            self.state = self.loop.settled(self.state)
        if is_logged:
            window, update = self.state.window, self.loop.last
            assert update is not None
            self.state = replace(self.state, window=RunningTotals())
            clock = self.logger.clock
            self.logger.log(
                Trained(
                    # The epoch that this update was made in, also where it is now over.
                    **{**clock.moment(self.state), "epoch": previous.epoch},
                    loss=window.loss / window.weight,
                    tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                    learning_rate=update.learning_rate,
                    grad_norm=update.grad_norm,
                    teacher_forcing=self.task.teacher_forcing(self.state.update),
                    done=fraction_done(self.settings, self.state, clock.seconds(), batches),
                )
            )
        if validate:
            self._validate()
        if ended:
            self._finish_epoch(previous.epoch)
        if validate or self._every(self.settings.save_every):
            self.state = self.manager.listed(self.state)
            self.save()
        elif self.settings.save_every is None and self._every(SAFETY):
            self.save()

    def save(self) -> None:
        """A checkpoint of this very moment, unless an update before it was not finite."""
        self.state = self.logger.stamped(self.loop.settled(self.state))
        self.manager.save(self.state)

    def started(self) -> Started:
        """What this session begins with."""
        task, journal, settings = self.task, self.logger.journal, self.settings
        batches, order = self.loop.epoch(self.state.epoch)
        notes = task.notes(batches)
        num_updates = self.loop.planned(self.state)
        misfits = (
            settings.schedule.misfit(num_updates),
            settings.too_late(num_updates),
            self.learner.precision.slower,
            self._note_tf32(),
            self._note_graphs(),
        )
        notes.extend(note for note in misfits if note)
        if journal.missing:
            notes.append(
                f"{journal.path} had lost its last {journal.missing:,} bytes: those lines are "
                "lost, the training is not affected"
            )
        return Started(
            **self.logger.clock.moment(self.state),
            parameters=sum(p.numel() for p in self.learner.parameters),
            pairs=batches.report.kept,
            batches=len(order),
            device=str(self.learner.device),
            notes=tuple(notes),
            example=task.example,
            counted=task.counted,
            numbers=self.learner.precision.numbers,
        )

    def _note_tf32(self) -> str | None:
        """What to say where a GPU rounds what it multiplies."""
        is_rounded = self.learner.device.type == "cuda" and self.settings.tf32
        if not is_rounded or self.learner.precision.name != "none":
            return None
        return (
            "products are of TF32, 10 bits of each factor, where the GPU has it; "
            "training.tf32 = false multiplies all bits"
        )

    def _note_graphs(self) -> str | None:
        """What to say of an update that is replayed."""
        if not self.settings.cuda_graphs:
            return None
        return (
            "updates run as CUDA graphs: batches are padded to few shapes, and the first update "
            "of each shape takes longer"
        )

    def _finish_epoch(self, epoch: int) -> None:
        """Report the finished epoch."""
        totals, device = self.state.epoch_totals, self.learner.device
        self.state = replace(self.state, epoch_totals=RunningTotals())
        last = self.validator.last
        names = self.task.epoch_scores
        self.logger.log(
            EpochFinished(
                **{**self.logger.clock.moment(self.state), "epoch": epoch},
                training_loss=totals.loss / totals.weight if totals.weight else math.nan,
                validated=last.get("update"),
                scores={
                    name: last[key] for key, name in names.items() if last.get(key) is not None
                },
                peak_memory=peak_memory(),
                peak_gpu_memory=peak_gpu_memory(device),
            )
        )

    def _validate(self) -> None:
        """Measure, and enter it in the state."""
        state = self.state
        name = numbered(state.update)
        model = self.learner.as_whole(self.task.build)
        with self.learner.thread_group.resting():
            value, better = self.validator.validate(model, name, state, state.best)
        self.state = replace(
            state,
            validated=state.update,
            best=value if better else state.best,
            best_update=state.update if better else state.best_update,
            stale=0 if better else state.stale + 1,
        )

    def _every(self, updates: int | None) -> bool:
        return updates is not None and self.state.update % updates == 0


def last_validation(folder: Path, update: int) -> dict[str, Any]:
    """The last validation up to this update in `metrics.jsonl`; {} if there is none, or if the file
    was edited, which must not stop a training.
    """
    try:
        events = Run(folder).events()
    except AttlasError:
        return {}
    validations = [event for event in events if event.get("event") == Validated.kind]
    with_update = [event for event in validations if isinstance(event.get("update"), int)]
    return next((event for event in reversed(with_update) if event["update"] <= update), {})


def outcome_at(folder: Path, update: int) -> Outcome | None:
    """The outcome that is written down for the state after just this update; None also where the
    line does not have all of it: then the training ends anew.
    """
    events = Run(folder).events()
    last = events[-1] if events else {}
    if last.pop("event", None) != Outcome.kind or last.get("update") != update:
        return None
    try:
        return TypeAdapter(Outcome).validate_python({**last, "folder": str(folder)})
    except ValidationError:
        return None


# The other processes of a process group.


def follow_main_process(task: AnyTask, learner: Learner[Any, Any], folder: Path) -> Outcome:
    """Take the checkpoint that the first process has taken, and do what it says until the end.

    The outcome is the one that the first process wrote down. `KeyboardInterrupt` where it was
    interrupted: Ctrl-C reaches every process, and the first one decides when they stop.
    """
    state = CheckpointManager(learner, task.recipe.training, folder).restored(
        learner.process_group.broadcast(0)
    )
    learner.watch_from(state.update)
    loop = EpochLoop(task, learner)
    with Interrupts(lambda: None):
        while (command := learner.process_group.receive()) is not Command.FINISHED:
            match command:
                case Command.UPDATE:
                    state = loop.advance(state)
                case Command.GATHER_WEIGHTS:
                    learner.gather_weights()
                case Command.GATHER_ALL:
                    learner.gather_all()
                case Command.INTERRUPTED:
                    raise KeyboardInterrupt
    outcome = outcome_at(folder, state.update)
    assert outcome is not None  # it was written down before the word was said
    return outcome


def train(recipe: Recipe, folder: Path | str, *, report: Report = silent) -> Outcome:
    """Train until a limit of the recipe is reached; continue if an earlier session has ended early.

    A run that was stopped or killed at any moment and continues ends with the weights, to the bit,
    of an undisturbed run: on the CPU with the same number of threads; on a GPU as far as its
    kernels are deterministic. A finished run whose limits are not raised does not change, and its
    outcome is returned again. Started by torchrun, many processes train one model, and the first
    one reports. `attlas train` on a CPU first calls `attlas.disable_malloc_trim()`. It affects the
    whole process, so this function leaves it to you.

    Args:
        report: Called with every `Event` of the training, as it happens; `Progress` shows them to
            people.

    Raises:
        DataError: If the folder holds another run or is in use, if the data or a checkpoint has
            changed, if a loss is not finite, or if the disk refuses.
        KeyboardInterrupt: On Ctrl-C, after the current update is done and saved; on SIGTERM, too,
            if one process trains.
    """
    folder = Path(folder)
    if is_launched() and recipe.data.passing:
        raise DataError(
            "data that every process of this training can read",
            "the standard input, which comes once",
            "name files instead",
        )
    device = usable(device_of_rank(device_called(recipe.training.device)))
    with open_process_group(device, recipe.training.distribution) as process_group:
        if recipe.training.cuda_graphs:
            check_capturable(recipe, device, process_group)
        return _train_in_group(recipe, folder, report, device, process_group)


def _train_in_group(
    recipe: Recipe, folder: Path, report: Report, device: torch.device, process_group: ProcessGroup
) -> Outcome:
    """The same, in a frame whose learner is gone before the process group is."""
    graphics = [device] if device.type == "cuda" else []
    with ExitStack() as stack:
        if process_group.is_main:
            if recipe.training.tensorboard and not CheckpointStore(folder).begun():
                summary_writer()  # before hours of reading, not after
            # If reading fails, there is no new folder.
            loaded = None if folder.exists() else read_data(recipe, report)
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
            check_folder(folder)
            stack.enter_context(locked(folder))
            task = prepare_run(recipe, folder, report, loaded)
        # The folder is there, and the first process has compared what is in it.
        opened = process_group.broadcast(int(process_group.is_main and is_opened(task.splits)))
        if not process_group.is_main:
            task = join_run(recipe, folder, opened=bool(opened))
        stack.enter_context(torch.random.fork_rng(graphics))
        torch.manual_seed(derive_seed(recipe.seed, "weights"))
        with kernel_threads(1):  # orthogonal matrices are rounded differently by two
            model = task.build()
        if not CheckpointStore(folder).begun():
            begin_with(model, folder, report)
        threads = recipe.training.threads
        thread_group = stack.enter_context(
            open_thread_group(threads, device, model, in_order=process_group.size > 1)
        )
        if recipe.training.cuda_graphs:
            shapes = BatchShapes(recipe.batching, getattr(model, "max_positions", None))
            learner: Learner[Any, Any] = GraphLearner(
                model, recipe.training, recipe.seed, device, task.loss, shapes
            )
        else:
            learner = Learner(
                model, recipe.training, recipe.seed, device, task.loss, thread_group, process_group
            )
        if device.type == "cuda":
            stack.enter_context(tf32_products(recipe.training.tf32))
        if process_group.is_main:
            return run_session(task, learner, folder, report)
        return follow_main_process(task, learner, folder)
