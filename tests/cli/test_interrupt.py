"""Ctrl-C, from the first moment to the last."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from attlas._signals import leave_in_order, loading, stay
from attlas.cli.main import app
from attlas.inference import Translator
from attlas.training import Progress
from attlas.training.events import Event, Preparing, Started, Trained
from support.command_line import COMMANDS, called

ATTLAS = [sys.executable, "-m", "attlas"]
# It goes on whatever happens, as a module does that tries to import another and can do without. It
# sleeps in short parts: a signal that comes just before a sleep is seen after it.
STUBBORN = """
import time
print("loading", flush=True)
try:
    for _ in range(6000):
        time.sleep(0.1)
except BaseException:
    pass
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of POSIX")
@pytest.mark.parametrize("module", ["typer", "torch"])
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_modules_are_loaded_ends_it_at_once(
    tmp_path: Path, module: str, command: str
) -> None:
    (tmp_path / f"{module}.py").write_text(STUBBORN, encoding="utf-8")
    if command == "stats":  # it looks at what it is given first
        (tmp_path / "texts.txt").write_text("A line.\n", encoding="utf-8")
        (tmp_path / "nonsense").mkdir()
        (tmp_path / "nonsense" / "config.json").write_text("{}", encoding="utf-8")
    needed = {
        "export": ["nonsense", "--to", "onnx"],
        "stats": ["nonsense", "texts.txt", "-o", "stats.csv"],
        **{f"lab {name}": [] for name in ("list", "report", "figures")},
    }
    with subprocess.Popen(
        [*ATTLAS, *command.split(), *needed.get(command, ["nonsense"])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == b"attlas: interrupted\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of POSIX")
def test_ctrl_c_after_the_last_word_changes_nothing() -> None:
    code = """
import atexit, os, signal
from attlas.__main__ import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from attlas.cli import main as application
def interrupted():
    raise KeyboardInterrupt
application.app.command("wait", cls=application.Guarded)(interrupted)
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "wait"], capture_output=True)
    assert done.returncode == 130
    assert done.stderr == b"attlas: interrupted\n"


@pytest.fixture
def ignoring() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ignoring")
def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    with loading():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    leave_in_order()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    stay()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_after_loading_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with loading():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


class Pressing(Progress):
    """Presses Ctrl-C at each event of one kind."""

    at: ClassVar[type[Event]]

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, self.at):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also where the whole suite ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(at: type[Event], *arguments: object) -> str:
    """What `attlas train` says when Ctrl-C comes at such an event."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Pressing, "at", at, raising=False)
        patched.setattr("attlas.training.Progress", Pressing)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        result = CliRunner().invoke(app, ["train", *map(str, arguments)])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert result.exit_code == 130
    return result.stderr.splitlines()[-1]


@pytest.mark.usefixtures("heard")
def test_an_interrupted_training_says_that_the_same_command_goes_on(
    recipe: Path, tmp_path: Path
) -> None:
    command = (recipe, "--out", tmp_path / "run", "--set", "training.log_every=1")
    said = "attlas: interrupted; update {} is saved: the same command continues from it"
    assert interrupted(Trained, *command) == said.format(1)
    assert interrupted(Trained, *command) == said.format(2)
    done = CliRunner().invoke(app, ["train", *map(str, command)])
    assert done.exit_code == 0
    assert "continuing after update 2" in done.stderr


@pytest.mark.usefixtures("heard")
def test_ctrl_c_in_the_middle_of_a_line_stops_a_training_as_ever(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, writing = Progress._line, threading.RLock()
    depth = 0

    def line(self: Progress, text: str) -> None:
        nonlocal depth
        with writing:  # as the buffer of a stream: others wait, and its own thread may not return
            if depth:
                raise RuntimeError("reentrant call inside <_io.BufferedWriter name=2>")
            depth += 1
            if "· loss" in text:
                os.kill(os.getpid(), signal.SIGINT)
            real(self, text)
            depth -= 1

    monkeypatch.setattr(Progress, "_line", line)
    monkeypatch.setattr("attlas.training.progress._PAUSE", 0.0)
    command = (recipe, "--out", tmp_path / "run", "--set", "training.log_every=1")
    done = CliRunner().invoke(app, ["train", *map(str, command)])
    assert done.exit_code == 130
    assert "stopping after this update" in done.stderr
    assert "update 1 is saved" in done.stderr


@pytest.mark.usefixtures("heard")
def test_of_a_training_that_saved_nothing_nothing_is_said(recipe: Path, tmp_path: Path) -> None:
    for at in (Preparing, Started):
        assert interrupted(at, recipe, "--out", tmp_path / "run") == "attlas: interrupted"


@pytest.mark.usefixtures("heard")
def test_what_was_saved_before_a_training_began_is_not_spoken_of(
    recipe: Path, tmp_path: Path
) -> None:
    command = (recipe, "--out", tmp_path / "run")
    assert CliRunner().invoke(app, ["train", *map(str, command)]).exit_code == 0
    assert interrupted(Preparing, *command) == "attlas: interrupted"


@pytest.mark.usefixtures("heard")
def test_an_interrupted_translation_of_files_says_that_the_same_command_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("1 2\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(Translator, "stream", pressed)
        code, _, error = called("translate", run, text, "--into", out)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert code == 130
    said = f"attlas: interrupted; the same command goes on with what is not yet in {out}"
    assert error.splitlines()[-1] == said
    assert called("translate", run, text, "--into", out)[0] == 0
