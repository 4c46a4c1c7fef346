"""Events of a training, for `metrics.jsonl`, TensorBoard and the screen."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from attlas.monitoring import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something after `update` updates, in epoch `epoch` (from 0), `seconds` into the training."""

    kind: ClassVar[str]
    update: int
    epoch: int
    seconds: float

    def record(self) -> dict[str, Any]:
        """As one line of `metrics.jsonl`."""
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """A session begins: at update 0, or from a checkpoint. `notes` are for people to read.

    Args:
        pairs: How many examples there are to learn from.
        example, counted: What such a one is, and what the loss is averaged over, in words.
        numbers: In which most is computed.
    """

    kind: ClassVar[str] = "started"
    parameters: int
    pairs: int
    batches: int
    device: str
    notes: tuple[str, ...]
    example: str = "pair"
    counted: str = "token"
    numbers: str = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing(Event):
    """A slow step before `Started`, in words; not in `metrics.jsonl`."""

    kind: ClassVar[str] = "preparing"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Event):
    """Since the last one: loss in nats per target token, target tokens a second; where no text is
    written, per text and texts a second (see `Started.counted`).

    learning_rate, grad_norm (of the gradient before clipping) and teacher_forcing (None: nothing is
    fed) are those of the last update.

    Args:
        done: The part of the way to the nearest limit, 0 … 1.
    """

    kind: ClassVar[str] = "trained"
    loss: float
    tokens_per_second: float
    learning_rate: float
    grad_norm: float
    teacher_forcing: float | None
    done: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(Event):
    """The attention of an update was read; a line of `watch.jsonl`, not of `metrics.jsonl`."""

    kind: ClassVar[str] = "watched"
    reading: Reading

    def record(self) -> dict[str, Any]:
        """As one line of `watch.jsonl`."""
        return self.reading.record()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """On the validation set: the loss in nats; a task adds what else it measures.

    Args:
        checkpoint: Which weights were measured.
        best: Whether they are the best so far.
    """

    kind: ClassVar[str] = "validated"
    checkpoint: str
    loss: float
    best: bool

    def scores(self) -> list[str]:
        """What was measured beside the loss, in words."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished(Event):
    """All training data was gone through once more, in epoch `epoch` (from 0).

    Args:
        training_loss: The mean over the epoch, in nats, as `Trained` has it.
        scores: What the last validation came to, which was after `validated` updates (None: there
            was none yet); the names are those of `Task.epoch_scores`.
        peak_memory, peak_gpu_memory: Bytes, of this process since it began.
    """

    kind: ClassVar[str] = "epoch"
    training_loss: float
    validated: int | None
    scores: dict[str, float]
    peak_memory: int | None
    peak_gpu_memory: int | None

    def record(self) -> dict[str, Any]:
        """The scores beside the rest."""
        fields = {"event": self.kind, **asdict(self)}
        return {**fields, **fields.pop("scores")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """Ctrl-C was pressed, or SIGTERM sent: the update under way is finished and saved. A second
    time: neither.
    """

    kind: ClassVar[str] = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Event):
    """The end: why, and which checkpoint is the best by which criterion (None: none was measured).

    Args:
        reason: The limit that was reached: "max_epochs", "max_steps", "max_minutes" or "patience".
        planned: About how many updates `max_epochs` and `max_steps` allow (None: any number);
            `notes`: for people to read.
        peak_memory, peak_gpu_memory: See `EpochFinished`.
    """

    kind: ClassVar[str] = "finished"
    reason: str
    criterion: str
    best: float | None
    checkpoint: str | None
    folder: str
    planned: int | None = None
    notes: tuple[str, ...] = ()
    peak_memory: int | None = None
    peak_gpu_memory: int | None = None

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return Path(self.folder)


Report = Callable[[Event], None]


def silent(event: Event) -> None:
    """A report that prints nothing."""
