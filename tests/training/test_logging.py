"""The numbers that a training tells: those of its updates, its limits and its clock."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attlas.runs import Checkpoint, CheckpointStore, Run, numbered
from attlas.training import Event, Trained, train
from attlas.training.checkpointing import TrainingState
from attlas.training.config import TrainingConfig
from attlas.training.events import Started
from attlas.training.learner import Learner, Update
from attlas.training.logging import Clock
from attlas.training.trainer import fraction_done
from support.killed_trainings import recipe


def trained(reported: list[Event]) -> list[Trained]:
    return [event for event in reported if isinstance(event, Trained)]


def test_what_is_reported_of_a_training_is_what_its_updates_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_mask, made, reported = Learner.update, list[Update](), list[Event]()

    def recorded(self: Learner[Any, Any], shares: Any, number: int) -> Update:
        made.append(token_mask(self, shares, number))
        return made[-1]

    ticks = iter(range(1000))
    monkeypatch.setattr(Learner, "update", recorded)
    monkeypatch.setattr(  # looked at when an update begins and when it is over: one second each
        "attlas.training.epoch_loop.time", SimpleNamespace(monotonic=lambda: float(next(ticks)))
    )
    scheduled_sampling = {"kind": "linear", "start": 0.9, "slope": 0.1, "floor": 0.55}
    begun = recipe(
        6, log_every=2, scheduled_sampling=scheduled_sampling, validation={"translate": False}
    )
    train(begun, tmp_path, report=reported.append)
    events = trained(reported)
    assert [event.update for event in events] == [2, 4, 6]
    assert len({update.tokens for update in made}) > 1  # or a mean of means would do as well
    for event, first, second in zip(events, made[::2], made[1::2], strict=True):
        tokens = first.tokens + second.tokens
        assert event.loss == pytest.approx((first.loss + second.loss) / tokens)
        assert event.tokens_per_second == pytest.approx(tokens / 2)
        assert event.grad_norm == second.grad_norm
    # The second, fourth and sixth update; feeding counts from 0.
    assert [event.teacher_forcing for event in events] == pytest.approx([0.8, 0.6, 0.55])
    assert [event.learning_rate for event in events] == pytest.approx(
        [4e-4, 8e-4, 1e-3 * (5 / 6) ** 0.5]
    )
    assert [event.done for event in events] == pytest.approx([1 / 3, 2 / 3, 1.0])


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        ({"max_epochs": 4}, 0.375),  # an epoch and a half
        ({"max_epochs": 2}, 0.75),
        ({"max_steps": 60}, 0.25),
        ({"max_minutes": 10.0}, 0.2),
        ({"max_epochs": 4, "max_steps": 60, "max_minutes": 10.0}, 0.375),
        ({"max_epochs": 4, "max_steps": 20, "max_minutes": 10.0}, 0.75),
        ({"max_epochs": 4, "max_steps": 60, "max_minutes": 2.5}, 0.8),
        ({"max_epochs": 1}, 1.0),
        ({"max_steps": 15}, 1.0),
        ({"max_steps": 1, "max_minutes": 10.0}, 1.0),
        ({"max_minutes": 1.0}, 1.0),
    ],
    ids=str,
)
def test_the_part_that_is_done_is_that_of_the_way_to_the_nearest_limit(
    limits: dict[str, Any], part: float
) -> None:
    state = TrainingState(update=15, epoch=1, position=5)
    assert fraction_done(TrainingConfig(**limits), state, 120.0, 10) == pytest.approx(part)


def test_a_clock_goes_on_from_the_seconds_of_earlier_sittings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("attlas.training.logging.time", SimpleNamespace(monotonic=lambda: now))
    clock = Clock(3600.0)
    assert clock.seconds() == 3600.0
    now += 1.23456
    assert clock.seconds() == pytest.approx(3601.23456)
    moment = {"update": 7, "epoch": 2, "seconds": 3601.235}
    assert clock.moment(TrainingState(update=7, epoch=2)) == moment


def test_the_minutes_of_a_training_are_those_of_all_its_sittings(tmp_path: Path) -> None:
    def die(event: Event) -> None:
        if isinstance(event, Trained) and event.update == 4:
            raise SystemExit

    with pytest.raises(SystemExit):
        train(recipe(9, save_every=3), tmp_path, report=die)
    store = Run(tmp_path).store
    last = store.read("last")
    assert last.facts["update"] == 3
    assert 0.0 < last.facts["seconds"] < 3000.0
    store.write(numbered(3), replace(last, facts={**last.facts, "seconds": 3600.0}))
    reported: list[Event] = []
    outcome = train(recipe(9, save_every=3, max_minutes=59.0), tmp_path, report=reported.append)
    assert (outcome.reason, outcome.update) == ("max_minutes", 3)
    assert outcome.seconds >= 3600.0
    assert [event.seconds >= 3600.0 for event in reported if isinstance(event, Started)] == [True]
    assert not trained(reported)
    assert train(recipe(5, save_every=3, max_minutes=100.0), tmp_path).update == 5
    assert store.read("last").facts["seconds"] >= 3600.0


def test_a_training_whose_time_ran_out_while_it_saved_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours, write, seconds = [0.0], CheckpointStore.write, Clock.seconds

    def slowly(self: CheckpointStore, name: str, checkpoint: Checkpoint) -> None:
        write(self, name, checkpoint)
        hours.append(1.0)

    monkeypatch.setattr(CheckpointStore, "write", slowly)
    monkeypatch.setattr(Clock, "seconds", lambda self: seconds(self) + 3600 * sum(hours))
    timed = recipe(9, save_every=3, max_minutes=59.0)
    outcome = train(timed, tmp_path)
    assert (outcome.reason, outcome.update) == ("max_minutes", 3)
    monkeypatch.setattr(Clock, "seconds", seconds)  # a machine that is quick again
    reported: list[Event] = []
    again = train(timed, tmp_path, report=reported.append)
    assert (again.reason, again.update) == ("max_minutes", 3)
    assert not trained(reported)
