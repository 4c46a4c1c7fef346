"""A line for each epoch: what it came to, what the last validation measured, and memory."""

import io
import math
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

from attlas._hardware import peak_memory
from attlas.data.vocabulary import PAD
from attlas.inference import Translator
from attlas.runs import Run
from attlas.training import EpochFinished, Event, Progress, Validated, train
from attlas.training.events import Started
from attlas.training.learner import Learner, Update
from attlas.training.tasks.translation import TranslationTask
from attlas.training.validation import free_running_loss
from support.killed_trainings import recipe
from support.labelled_runs import trained


def epochs(folder: Path) -> list[dict[str, Any]]:
    return [event for event in Run(folder).events() if event["event"] == "epoch"]


def test_an_epoch_tells_the_mean_loss_of_its_updates_and_the_scores_of_its_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, made, reported = Learner.update, list[Update](), list[Event]()

    def recorded(self: Learner[Any, Any], shares: Any, number: int) -> Update:
        made.append(plain(self, shares, number))
        return made[-1]

    monkeypatch.setattr(Learner, "update", recorded)
    train(recipe(11, log_every=3, averaging={"kind": "none"}), tmp_path, report=reported.append)
    found = epochs(tmp_path)
    assert [event["epoch"] for event in found] == list(range(len(found)))
    assert len(found) >= 2
    start = 0
    validated = {event.update: event for event in reported if isinstance(event, Validated)}
    for event in found:
        part = made[start : event["update"]]
        start = event["update"]
        mean = sum(one.loss for one in part) / sum(one.tokens for one in part)
        assert event["training_loss"] == pytest.approx(mean)
        scores: Any = validated[event["update"]]
        assert event["validated"] == event["update"]
        assert event["validation_loss"] == scores.loss
        assert event["sequence_accuracy"] == scores.accuracy
        assert event["free_running_loss"] == scores.free_running_loss
        assert event["token_accuracy"] == scores.token_accuracy
        assert event["average_length"] == scores.average_length
        assert event["peak_memory"] > 2**20
        assert event["peak_gpu_memory"] is None


def test_where_no_validation_ends_an_epoch_the_last_one_is_reported_with_its_update(
    tmp_path: Path,
) -> None:
    every = {"validation": {"every": 3, "decoding": {"max_len_a": 1.0}}}
    train(recipe(5, **every), tmp_path / "parts")
    train(recipe(11, **every), tmp_path / "parts")  # it goes on: the last one is in the journal
    train(recipe(11, **every), tmp_path / "whole")
    found = epochs(tmp_path / "parts")
    assert {event["validated"] for event in found if event["update"] > 3} <= {3, 6, 9}
    for event, other in zip(found, epochs(tmp_path / "whole"), strict=True):
        own = ("seconds", "peak_memory")
        assert {k: v for k, v in event.items() if k not in own} == {
            k: v for k, v in other.items() if k not in own
        }


def test_what_is_measured_without_forcing_is_what_the_model_does_alone(tmp_path: Path) -> None:
    begun = recipe(8, averaging={"kind": "none"})
    train(begun, tmp_path)
    model, task = Run(tmp_path).model("last"), None
    task = TranslationTask(begun, begun.data.load(), Run(tmp_path).vocabularies())
    measured = task.measure(model)
    batch = task.valid_batches.batch(range(8))
    with torch.no_grad():
        state, fed, logits = (
            model.encode(batch.source, batch.source_mask),
            batch.decoder_input[:, 0],
            [],
        )
        for _ in range(batch.decoder_input.shape[1]):
            scores, state = model.step(fed, state)
            fed = scores.argmax(1)
            logits.append(scores)
    expected = batch.expected.masked_fill(~batch.expected_mask, PAD)
    loss = F.cross_entropy(torch.stack(logits, 2), expected, ignore_index=PAD)
    assert measured.free_running_loss == pytest.approx(loss.item())
    assert free_running_loss(model, task.valid_batches, 0) is None
    decoding = begun.training.validation.decoding
    translator = Translator.of(model, task.vocabularies, decoding)
    written = [[*one.tokens][: -1 if one.finished else None] for one in map(
        translator, task.splits.valid.sources
    )]  # fmt: skip
    references = [text.split() for text in task.splits.valid.targets]  # a symbol is a word
    assert measured.average_length == pytest.approx(sum(map(len, written)) / 8)
    assert measured.reference_length == pytest.approx(sum(map(len, references)) / 8)
    right = sum(
        a == b for x, y in zip(written, references, strict=True) for a, b in zip(x, y, strict=False)
    )
    longer = sum(max(len(x), len(y)) for x, y in zip(written, references, strict=True))
    assert measured.token_accuracy == pytest.approx(right / longer)


def finished() -> EpochFinished:
    scores = {
        "validation_loss": 1.5, "free_running_loss": 2.25, "token_accuracy": 0.5,
        "sequence_accuracy": 0.125, "average_length": 7.0, "reference_length": 8.5,
    }  # fmt: skip
    return EpochFinished(
        update=40, epoch=1, seconds=1.0, training_loss=1.25, validated=30, scores=scores,
        peak_memory=300 * 2**20, peak_gpu_memory=None,
    )  # fmt: skip


@pytest.mark.parametrize("terminal", [True, False])
def test_in_a_pipe_an_epoch_is_one_line(terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=terminal)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        report(finished())
    shown = console.file.getvalue()
    if terminal:
        assert "epoch 2" not in shown
        return
    assert shown == (
        "epoch 2: training loss 1.2500 · validation loss 1.5000 · free-running loss 2.2500 · token "
        "accuracy 50.0% · sequence accuracy 12.5% · average length 7.0 of 8.5 · validated at "
        "update 30 · peak memory 300 MiB\n"
    )


def test_an_epoch_without_a_validation_tells_its_loss_alone() -> None:
    console = Console(file=io.StringIO(), width=60)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        report(replace(finished(), scores={}, validated=None, peak_memory=None))
    assert console.file.getvalue() == "epoch 2: training loss 1.2500\n"


def test_a_classifier_tells_its_epochs_too(tmp_path: Path) -> None:
    found = epochs(trained(tmp_path, 40, max_epochs=2))
    assert len(found) == 2
    for event in found:
        assert 0.0 <= event["accuracy"] <= 1.0
        assert math.isfinite(event["training_loss"])
        assert "free_running_loss" not in event


def test_the_peak_of_memory_is_that_of_the_system() -> None:
    code = (
        "from attlas._hardware import peak_memory; before = peak_memory();"
        "block = bytearray(b'x' * 2**27); del block; print(before, peak_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert 2**27 <= after - before < 2**29
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "linux":
        assert peak_memory() == pytest.approx(own * 1024, rel=0.2)


def test_the_journal_tells_the_memory_of_a_whole_run(tmp_path: Path) -> None:
    reported: list[Any] = []
    train(recipe(2), tmp_path, report=reported.append)
    assert Run(tmp_path).peak_memory() == {"cpu": reported[-1].peak_memory}
    assert "peak memory" in _told(reported[-1])


def _told(event: Event) -> str:
    console = Console(file=io.StringIO(), width=60)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        report(event)
    return console.file.getvalue()


def test_after_a_resume_an_earlier_validation_is_not_reported_again() -> None:
    console = Console(file=io.StringIO(), width=60)
    assert isinstance(console.file, io.StringIO)
    with Progress(console) as report:
        report(Started(
            update=30, epoch=1, seconds=0.0, parameters=1, pairs=1, batches=1, device="cpu",
            notes=(),
        ))  # fmt: skip
        report(finished())
        report(replace(finished(), update=80, epoch=2, validated=60))
    first, second = console.file.getvalue().splitlines()[1:]
    assert first == "epoch 2: training loss 1.2500 · peak memory 300 MiB"
    assert "validation loss 1.5000" in second
    assert second.endswith("validated at update 60 · peak memory 300 MiB")
