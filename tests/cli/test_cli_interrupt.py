"""Ctrl-C, from the first moment to the last."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.cli.interrupt import leave_in_order, loading, stay

ATTLAS = [sys.executable, "-m", "attlas"]
# It goes on whatever happens, as a module does that tries to import another and can do without.
STUBBORN = """
import time
print("loading", flush=True)
try:
    time.sleep(600)
except BaseException:
    pass
"""


@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
@pytest.mark.parametrize("module", ["typer", "torch"])
@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "figure", "look", "inspect"])
def test_ctrl_c_while_modules_are_loaded_ends_it_at_once(
    tmp_path: Path, module: str, command: str
) -> None:
    (tmp_path / f"{module}.py").write_text(STUBBORN, encoding="utf-8")
    with subprocess.Popen(
        [*ATTLAS, command, "nonsense"],
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


@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
def test_ctrl_c_after_the_last_word_changes_nothing() -> None:
    code = """
import atexit, os, signal
from attlas.__main__ import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from attlas.cli import application
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
