"""Progress of a training: a bar on a terminal, plain lines elsewhere."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from attlas._text import count_noun, describe_memory
from attlas.monitoring.alarms import messages_of
from attlas.training.events import (
    EpochFinished,
    Event,
    Interrupted,
    Outcome,
    Preparing,
    Started,
    Trained,
    Validated,
    Watched,
)

_PAUSE = 10.0  # seconds between plain lines


class Progress:
    """`with Progress() as report: train(recipe, folder, report=report)`.

    Writes to the standard error: epoch, loss, tokens per second, time left, and each validation.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[numbers]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task: TaskID | None = None
        self._begun: tuple[float, float] | None = None  # clock and part done at the first news
        self._spoken = float("-inf")
        self._counted = "token"
        self._shown: int | None = None  # the validation in the line of the last epoch
        self._continued_after = 0  # the last update of an earlier call

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Preparing():
                self._line(event.what)
            case Started():
                self._started(event)
            case Trained():
                self._trained(event)
            case Validated():
                self._line(_validated(event))
            case Watched():
                for message in messages_of(event.reading.alarms):
                    self._line(f"WARNING: {message}")
            case EpochFinished() if not self.console.is_terminal:
                self._line(_epoch(event, again=event.validated == self._shown or self._old(event)))
                self._shown = event.validated
            case Interrupted():
                self._line("stopping after this update and saving; Ctrl-C again stops at once")
            case Outcome():
                for note in event.notes:
                    self._line(note)
                again = bool(event.update) and event.update == self._continued_after
                self._line(f"{'already ' if again else ''}{_finished(event)}")

    def _old(self, event: EpochFinished) -> bool:
        """Whether its validation was shown before the training was continued."""
        return event.validated is not None and event.validated <= self._continued_after

    def _started(self, event: Started) -> None:
        self._continued_after = event.update
        self._counted = event.counted
        for note in event.notes:
            self._line(note)
        numbers = "" if event.numbers == "float32" else f" in {event.numbers}"
        self._line(
            f"{count_noun(event.parameters, 'parameter')} on {event.device}{numbers}; "
            f"{count_noun(event.pairs, event.example)} in "
            f"{count_noun(event.batches, 'batch', 'batches')}"
            + (f"; continuing after update {event.update:,}" if event.update else "")
        )
        if self.console.is_terminal:
            self._task = self._bar.add_task("training", total=1.0, numbers="")

    def _trained(self, event: Trained) -> None:
        time_now = time.monotonic()
        self._begun = self._begun or (time_now, event.done)
        start, updates_before = self._begun
        numbers = f"loss {event.loss:.3f} · {event.tokens_per_second:,.0f} {self._counted}s/s"
        if event.done > updates_before:
            seconds_left = (time_now - start) / (event.done - updates_before) * (1.0 - event.done)
            numbers += f" · {duration(seconds_left)} left"
        position = f"epoch {event.epoch + 1} · update {event.update:,}"
        if self._task is not None:
            self._bar.update(
                self._task, completed=event.done, description=position, numbers=numbers
            )
        elif time_now - self._spoken >= _PAUSE:
            self._spoken = time_now
            self._line(f"{position} · {event.done:.0%} · {numbers}")

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """As a person says it: 9 s, 1:05 min, 2:03 h."""
    total = max(0, round(seconds))
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60}:{total % 60:02d} min"
    return f"{total // 3600}:{total // 60 % 60:02d} h"


def _validated(event: Validated) -> str:
    parts = [f"update {event.update:,}: validation loss {event.loss:.4f}", *event.scores()]
    if event.checkpoint == "averaged":
        parts.append("of the averaged weights")
    return " · ".join(parts) + (" · best so far" if event.best else "")


def _epoch(event: EpochFinished, again: bool) -> str:
    """One line, with the results of the last validation, unless the line before has them."""
    scores = {} if again else event.scores
    parts = [f"epoch {event.epoch + 1}: training loss {event.training_loss:.4f}"]
    parts += [
        f"{name} {scores[key]:{form}}" for key, (name, form) in _SCORES.items() if key in scores
    ]
    if "average_length" in scores and "reference_length" in scores:
        parts.append(
            f"average length {scores['average_length']:.1f} of {scores['reference_length']:.1f}"
        )
    if not again and event.validated not in (None, event.update):
        parts.append(f"validated at update {event.validated:,}")
    parts.append(describe_memory(event.peak_memory, event.peak_gpu_memory))
    return " · ".join(filter(None, parts))


_SCORES = {
    "validation_loss": ("validation loss", ".4f"),
    "free_running_loss": ("free-running loss", ".4f"),
    "token_accuracy": ("token accuracy", ".1%"),
    "sequence_accuracy": ("sequence accuracy", ".1%"),
    "accuracy": ("accuracy", ".2%"),
    "macro_f1": ("macro-F1", ".2%"),
}


def _finished(event: Outcome) -> str:
    best, memory = "", describe_memory(event.peak_memory, event.peak_gpu_memory)
    if event.best is not None:
        best = f"; best {event.criterion} {event.best:.4g} in checkpoint {event.checkpoint}"
    return (
        f"finished after {count_noun(event.update, 'update')} in {duration(event.seconds)} "
        f"({_reason(event)}){best}" + (f"; {memory}" if memory else "")
    )


def _reason(event: Outcome) -> str:
    if event.reason != "max_minutes":
        return _REASONS.get(event.reason, event.reason)
    remark = ""
    if event.planned is not None:
        remark = f": {event.update:,} of {count_noun(event.planned, 'planned update')} made"
    return f"the time is over{remark}; to go on, raise training.max_minutes"


_REASONS = {
    "max_epochs": "all epochs are done",
    "max_steps": "all updates are done",
    "patience": "no better validation for some time",
}
