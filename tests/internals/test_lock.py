"""A file that one holds at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from attlas._files import held
from attlas.errors import AttlasError

HOLDER = """
import sys, time
from pathlib import Path
from attlas._files import held
with held(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    time.sleep(600)
"""


def test_who_comes_second_is_reported_and_who_comes_after_it_holds_it(tmp_path: Path) -> None:
    for _ in range(2):
        with held(tmp_path / "lock") as first, held(tmp_path / "lock") as second:
            assert (first, second) == (True, False)


def test_an_error_inside_lets_go_of_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), held(tmp_path / "lock"):
        raise ValueError("inside")
    with held(tmp_path / "lock") as ours:
        assert ours


def test_who_waits_gets_it_when_the_holder_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, tmp_path / "lock"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "True\n"
        with held(tmp_path / "lock") as ours:
            assert not ours
        holder.kill()
        with held(tmp_path / "lock", wait=True) as ours:
            assert ours


FORKED = """
import os, signal, sys, time
from pathlib import Path
from attlas._files import held
with held(Path(sys.argv[1])) as ours:
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
with held(Path(sys.argv[1])) as again:
    print(ours, again)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def test_who_leaves_it_lets_go_of_it_though_a_child_holds_a_copy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, tmp_path / "lock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "True True\n"


def test_a_folder_that_does_not_exist_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(AttlasError, match=r"to write .*nowhere/lock"),
        held(tmp_path / "nowhere/lock"),
    ):
        pass
