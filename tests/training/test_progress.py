"""How far a training is, in words."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from attlas.training import Event, Progress, Trained
from attlas.training.events import Outcome, Preparing, Started


def started() -> Started:
    return Started(
        update=0, epoch=0, seconds=0.0, parameters=10, pairs=20, batches=5, device="cpu", notes=()
    )


def trained(update: int, done: float, loss: float, speed: float) -> Trained:
    return Trained(
        update=update, epoch=1, seconds=0.0, loss=loss, tokens_per_second=speed, learning_rate=0.1,
        grad_norm=1.0, teacher_forcing=1.0, done=done,
    )  # fmt: skip


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_tells_loss_speed_and_the_time_left(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("attlas.training.progress.time.monotonic", lambda: now)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=150, color_system=None)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        report(started())
        report(trained(25, 0.25, 9.0, 1.0))
        first = console.file.getvalue()
        now += 30.0  # a quarter of the way
        report(trained(50, 0.5, 1.2345, 6789.4))
    shown = console.file.getvalue()
    assert " left" not in first
    assert "epoch 2 · update 50" in shown
    assert "loss 1.234 · 6,789 tokens/s · 1:00 min left" in shown
    assert ("50 %" if terminal else "50%") in shown


def shown(*events: Event) -> str:
    console = Console(file=io.StringIO(), width=150)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        for event in events:
            report(event)
    return console.file.getvalue()


def test_a_text_is_reported_as_it_is() -> None:
    text = ":x: /a:b:c.tsv [bold]"
    assert shown(Preparing(update=0, epoch=0, seconds=0.0, what=text)) == f"{text}\n"
    assert shown(replace(started(), notes=(text,))).startswith(f"{text}\n")
    assert shown(replace(finished(1, "max_steps", 1), notes=(text,))).startswith(f"{text}\n")


def finished(update: int, reason: str, planned: int | None) -> Outcome:
    return Outcome(
        update=update, epoch=0, seconds=0.0, reason=reason, criterion="loss", best=None,
        checkpoint=None, folder="there", planned=planned,
    )  # fmt: skip


def test_one_of_a_thing_is_not_reported_as_many() -> None:
    one = replace(started(), parameters=1, pairs=1, batches=1)
    assert shown(one) == "1 parameter on cpu; 1 pair in 1 batch\n"
    half = replace(one, numbers="bfloat16")
    assert shown(half) == "1 parameter on cpu in bfloat16; 1 pair in 1 batch\n"
    assert "5 batches" in shown(started())
    assert "finished after 1 update in 0 s" in shown(finished(1, "max_steps", 1))


def test_a_training_that_had_finished_before_says_so() -> None:
    output = shown(replace(started(), update=24), finished(24, "max_steps", 24))
    assert "already finished after 24 updates" in output
    assert "already" not in shown(replace(started(), update=12), finished(24, "max_steps", 24))


def test_a_training_that_the_time_ends_says_how_far_it_came_and_how_to_go_on() -> None:
    reported = shown(finished(56, "max_minutes", 1000))
    assert "the time is over: 56 of 1,000 planned updates made" in reported
    assert "to go on, raise training.max_minutes" in reported
    assert "(the time is over; to go on, raise training.max_minutes)" in shown(
        finished(56, "max_minutes", None)
    )
    assert "minutes" not in shown(finished(56, "max_epochs", 56))
