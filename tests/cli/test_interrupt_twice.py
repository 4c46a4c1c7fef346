"""Ctrl-C twice, shortly one after the other: what was announced is done all the same."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from typer.testing import CliRunner

from attlas._signals import GRACE
from attlas.cli.main import app
from attlas.inference import Translator
from attlas.runs import CheckpointStore, Run
from attlas.training import Progress
from attlas.training.checkpointing import CheckpointManager
from attlas.training.events import Event, Trained
from attlas.training.logging import EventLogger
from support.command_line import called
from support.warm_processes import WarmProcess

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of POSIX")
SAID = "attlas: interrupted; update {} is saved: the same command continues from it"


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_twice(gap: float) -> None:
    """Press Ctrl-C now, and again after so many seconds."""
    again = threading.Timer(gap, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()
    os.kill(os.getpid(), signal.SIGINT)


def train(*arguments: object) -> tuple[int, list[str]]:
    done = CliRunner().invoke(app, ["train", *map(str, arguments)])
    time.sleep(0.1)  # until the second one has come, wherever the command is
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return done.exit_code, done.stderr.splitlines()


@pytest.mark.parametrize("where", ["update", "save", "close"])
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_the_update_that_was_announced_is_saved_and_gone_on_from(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, gap: float
) -> None:
    command = (recipe, "--out", tmp_path / "run", "--set", "training.log_every=1")

    class Pressing(Progress):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, Trained) and event.update == 2:
                press_twice(gap)
                time.sleep(0.1 if where == "update" else 0.0)

    def slow(real: Any) -> Any:
        def slowed(*arguments: Any) -> Any:
            time.sleep(0.1)
            return real(*arguments)

        return slowed

    with monkeypatch.context() as patched:
        patched.setattr("attlas.training.Progress", Pressing)
        if where == "save":
            patched.setattr(CheckpointManager, "save", slow(CheckpointManager.save))
        if where == "close":
            patched.setattr(EventLogger, "__exit__", slow(EventLogger.__exit__))
        code, lines = train(*command)
    assert code == 130
    assert lines[-1] == SAID.format(2)
    assert not any("Traceback" in line for line in lines)
    assert Run(tmp_path / "run").store.named("last") == "00000002"
    assert train(*command)[0] == 0
    assert train(recipe, "--out", tmp_path / "undisturbed")[0] == 0
    ours, theirs = (Run(tmp_path / name).store.read("last") for name in ("run", "undisturbed"))
    assert all(ours.model[key].equal(theirs.model[key]) for key in theirs.model)


def test_after_a_while_the_second_one_stops_at_once(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pressing(Progress):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, Trained) and event.update == 2:
                press_twice(GRACE + 0.1)
                time.sleep(GRACE + 5.0)

    monkeypatch.setattr("attlas.training.Progress", Pressing)
    begin = time.monotonic()
    code, lines = train(
        *(recipe, "--out", tmp_path / "run"),
        *("--set", "training.log_every=1", "--set", "training.save_every=1"),
    )
    assert code == 130
    assert lines[-1] == SAID.format(1)
    assert time.monotonic() - begin < 60


def test_files_that_are_translated_are_whole_or_not_there(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1 2\n" * 5, encoding="utf-8")
    out, real = tmp_path / "out", Translator.stream
    command = ("translate", run, tmp_path / "a", tmp_path / "b", "--into", out)

    def pressed(self: Translator, texts: Any, **options: Any) -> Any:
        found = real(self, texts, **options)
        if (out / "a").exists():
            press_twice(0.05)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Translator, "stream", pressed)
        code, _, reported = called(*command)
    time.sleep(0.1)
    assert code == 130
    said = f"attlas: interrupted; the same command goes on with what is not yet in {out}"
    assert reported.splitlines()[-1] == said
    assert "Traceback" not in reported
    assert (out / "a").read_bytes().count(b"\n") == 5
    assert not (out / "b").exists()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert called(*command)[0] == 0
    assert (out / "b").read_bytes() == (out / "a").read_bytes()


def test_translations_that_are_evaluated_are_kept(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"

    def pressed(*_: object) -> None:
        press_twice(0.05)

    monkeypatch.setattr("attlas.jobs.evaluation.corpus_score", pressed)
    code, out, reported = called("evaluate", run, "--output", kept)
    time.sleep(0.1)
    assert (code, out) == (130, "")
    assert reported.splitlines()[-1] == "attlas: interrupted"
    assert "Traceback" not in reported
    assert kept.read_bytes().count(b"\n") == 30


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_process_that_gets_ctrl_c_twice_ends_with_130_and_one_line(
    recipe: Path, tmp_path: Path, delay: float
) -> None:
    command = ["train", recipe, "--out", tmp_path / "run"]
    endless = ["--set", "training.max_steps=1000000", "--set", "training.validation.every=1000000"]
    with WarmProcess(*command, *endless, stderr=PIPE, start_new_session=True) as process:
        for line in process.stderr:
            if "parameters on" in line:  # the training begins
                break
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in rest
    store = CheckpointStore(tmp_path / "run")
    if "stopping after this update and saving" not in rest:  # it came before the first update
        assert rest.splitlines()[-1] == "attlas: interrupted"
        assert store.named("last") is None
        return
    last = store.named("last")
    assert last is not None
    assert rest.splitlines()[-1] == SAID.format(f"{int(last):,}")
    assert Run(tmp_path / "run").checkpoints()[-1] == last
