"""The state of a training, and its checkpoints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attlas.errors import CheckpointError
from attlas.runs import BEST, LAST, Checkpoint, CheckpointStore, numbered
from attlas.runs.checkpoints import under
from attlas.runs.seal import check_sealed, seal_of
from attlas.training.averaging import LastAveraging, MovingAveraging, mean_weights
from attlas.training.config import TrainingConfig
from attlas.training.learner import AVERAGE, Learner, Update

# The state of a training: its numbers besides the tensors.


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """Totals since the last report.

    Args:
        weight: See `Update`.
    """

    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    weight: float = 0.0

    def plus(self, update: Update, seconds: float) -> "RunningTotals":
        """With one update more, which took so long."""
        return RunningTotals(
            self.loss + update.loss,
            self.tokens + update.tokens,
            self.seconds + seconds,
            self.weight + update.weight,
        )


@dataclass(frozen=True, slots=True)
class TrainingState:
    """A frozen value: `update` updates are done, `position` batches of epoch `epoch` are used.

    Only planned events are entered. A validation or a checkpoint at the end of a session is not, so
    the end of a session has no effect on the next.

    Args:
        seconds: Of training over all sessions.
        best: (value of the criterion, loss) of the best validation, made at `best_update` (None:
            its weights are gone).
        stale: How many validations came since.
        epoch_totals: Totals since the epoch began, without times.
        saved: The updates whose checkpoints are kept, newest last.
        journal: The length of `metrics.jsonl` in bytes.
        watched: The length of `watch.jsonl` in bytes.
    """

    update: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    best: tuple[float, float] | None = None
    best_update: int | None = None
    stale: int = 0
    validated: int = 0
    saved: tuple[int, ...] = ()
    window: RunningTotals = RunningTotals()
    epoch_totals: RunningTotals = RunningTotals()
    journal: int = 0
    watched: int = 0

    @property
    def kept(self) -> set[int]:
        """The updates whose checkpoints stay: the newest, the best, and this one."""
        best = set() if self.best_update is None else {self.best_update}
        return {*self.saved, self.update} | best

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "TrainingState":
        """What `facts` gave.

        Raises:
            CheckpointError: For a checkpoint without them, such as an averaged one.
        """
        try:
            # Checkpoints of before epochs were recorded have no totals of theirs; those of before
            # attention was watched have no readings.
            facts = {"epoch_totals": {}, "watched": 0, **facts}
            numbers = {name: facts[name] for name in cls.__dataclass_fields__}
            epoch_totals = RunningTotals(**numbers["epoch_totals"])
            best = numbers["best"] and tuple(numbers["best"])
            # Checkpoints of before predictions had weights have none.
            window = RunningTotals(**{"weight": numbers["window"]["tokens"], **numbers["window"]})
            saved = tuple(numbers["saved"])
        except (KeyError, TypeError) as error:
            raise CheckpointError(
                "a checkpoint that a training can go on from",
                f"one without {error.args[0]!r} in it"
                if isinstance(error, KeyError)
                else f"one with other facts ({error})",
                "write the name of a numbered checkpoint into the file `last`",
            ) from None
        metadata = {"best": best, "window": window, "epoch_totals": epoch_totals, "saved": saved}
        return cls(**{**numbers, **metadata})


class CheckpointManager:
    """Puts a learner and its state into the checkpoint store of a run, and takes them from
    there."""

    def __init__(self, learner: Learner[Any, Any], settings: TrainingConfig, folder: Path) -> None:
        self.learner, self.settings, self.folder = learner, settings, folder
        self.store = CheckpointStore(folder)
        self._seal: Mapping[str, Any] | None = None

    def restore(self) -> TrainingState:
        """Take the last checkpoint; the state of the very beginning where there is none.

        Raises:
            CheckpointError: If there are checkpoints and nothing says which is the last.
        """
        self.store.clean()
        name = self.store.named(LAST)
        if name is None and self.store.begun():
            numbers = ", ".join(map(numbered, self.store.numbered()))
            raise CheckpointError(
                f"the file `last` in {self.folder}, beside its checkpoints",
                "none",
                f"write one of these into it: {numbers}"
                if numbers
                else "an average cannot be trained on: begin in another folder (--out)",
            )
        if name is not None and not name.isdecimal():
            raise CheckpointError(
                "a checkpoint that a training can go on from",
                f"{name!r} in {self.folder / LAST}",
                "write the name of a numbered checkpoint into it",
            )
        return self.restored(self.learner.process_group.broadcast(0 if name is None else int(name)))

    def restored(self, update: int) -> TrainingState:
        """Take the checkpoint of this update, as all processes of a process group do; 0: the
        beginning.

        After a user has gone back to a checkpoint, some that it lists may be gone.

        Raises:
            CheckpointError: Where the files beside it are other ones than when it was saved.
        """
        self._seal = seal_of(self.folder)  # as it is now, before anything can happen to it
        if not update:
            return TrainingState()
        checkpoint = self._read(update)
        self._seal = checkpoint.seal or self._seal
        self.learner.restore(checkpoint, self.folder)
        state, existing = TrainingState.of(checkpoint.facts), set(self.store.numbered())
        return replace(
            state,
            saved=tuple(name for name in state.saved if name in existing),
            best_update=state.best_update if state.best_update in existing else None,
        )

    def roll_back(self, state: TrainingState) -> None:
        """Reset the folder to the checkpoint: later events will happen again."""
        best = state.best_update
        self.store.point(BEST, None if best is None else numbered(best))
        self.store.forget_after(state.update)
        self.store.prune(state.kept)

    def save(self, state: TrainingState) -> None:
        """Save a checkpoint of the present state: the file, then the pointers, then remove old
        ones.
        """
        checkpoint = replace(self.learner.checkpoint(state.facts()), seal=self._seal)
        self.store.write(numbered(state.update), checkpoint)
        self.store.point(LAST, numbered(state.update))
        if state.best_update is not None:  # after the last: a best alone is the user's, to be kept
            self.store.point(BEST, numbered(state.best_update))
        self.store.prune(state.kept)

    def _read(self, update: int) -> Checkpoint:
        """A checkpoint of this run, whose files are as they were when it was saved."""
        checkpoint = self.store.read(numbered(update))
        check_sealed(self.folder, numbered(update), checkpoint.seal)
        return checkpoint

    def listed(self, state: TrainingState) -> TrainingState:
        """The state in which this update is among those whose checkpoints the recipe keeps."""
        return replace(state, saved=(*state.saved, state.update)[-self.settings.keep_last :])

    def averaged(self, state: TrainingState) -> Checkpoint | None:
        """The average that the recipe asks for, of what is saved; None: none, or there is only one
        checkpoint. Its facts say until which update, and of the last checkpoints which.
        """
        facts = {"update": state.update}
        if isinstance(self.settings.averaging, MovingAveraging):
            training = self._read(state.update).training
            return Checkpoint(under(AVERAGE, training), facts=facts, seal=self._seal)
        updates = self.to_average(state)
        if len(updates) < 2:
            return None
        weights = mean_weights(self._read(update).model for update in updates)
        return Checkpoint(weights, facts={**facts, "averaged": updates}, seal=self._seal)

    def to_average(self, state: TrainingState) -> list[int]:
        """The updates whose checkpoints the recipe averages; none where it does not."""
        averaging = self.settings.averaging
        if not isinstance(averaging, LastAveraging):
            return []
        return sorted({*state.saved, state.update})[-averaging.count :]

    def too_few(self, state: TrainingState) -> str | None:
        """What to say where there are fewer of them than the recipe wants."""
        averaging, updates = self.settings.averaging, self.to_average(state)
        if not isinstance(averaging, LastAveraging) or len(updates) == averaging.count:
            return None
        consequence = "they alone are averaged" if len(updates) > 1 else "there is no average"
        return (
            f"WARNING: training.averaging needs the last {averaging.count} checkpoints, and the "
            f"training has saved {len(updates)} (of update {', '.join(map(str, updates))}), so "
            f"{consequence}; a smaller training.save_every or training.validation.every saves more"
        )
