"""Memory that is freed and asked for again stays with the process."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import attlas.training.trainer  # noqa: F401  # before what it takes from elsewhere is replaced
from attlas._hardware import disable_malloc_trim, malloc_trim
from support.command_line import called

GLIBC = platform.libc_ver()[0] == "glibc"

# Four blocks of 8 MiB, taken, written and given back again and again.
FAULTS = """
import resource, sys
import torch
from attlas._hardware import disable_malloc_trim

if sys.argv[1] == "kept":
    assert disable_malloc_trim()

def use():
    blocks = [torch.ones(2**21) for _ in range(4)]

for _ in range(5):
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """How many pages a process had to be given while it used the same memory over and over."""
    # Without it glibc raises the threshold above which blocks are taken afresh, sometimes so far
    # that nothing is given back to begin with.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return int(done.stdout)


def test_it_says_whether_the_c_library_has_the_setting() -> None:
    assert disable_malloc_trim() == GLIBC


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attlas._hardware.ctypes.CDLL", lambda name: object())
    assert not disable_malloc_trim()


@pytest.mark.slow
@pytest.mark.skipif(not GLIBC, reason="only glibc gives freed memory back at once")
def test_kept_memory_is_not_asked_of_the_system_again() -> None:
    assert 5 * faults("kept") < faults("given back")


@pytest.mark.parametrize(("kind", "kept"), [("cpu", True), ("cuda", False)])
def test_a_training_keeps_the_memory_that_it_frees_where_it_computes_on_a_cpu(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, kept: bool
) -> None:
    requested: list[bool] = []
    monkeypatch.setattr("attlas._hardware.disable_malloc_trim", lambda: requested.append(True))
    monkeypatch.setattr("attlas._hardware.device_called", lambda name: torch.device(kind))
    code, _, error = called("train", recipe, "--out", tmp_path / "run")
    assert code == 0, error
    assert bool(requested) == kept


# A block that is kept stands behind half a gigabyte of small ones that are freed.
HELD = """
import sys
import torch
from attlas._hardware import malloc_trim

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) // 256  # MiB

blocks = [torch.ones(2**14) for _ in range(2**13)]
kept = blocks.pop()
del blocks
before = resident()
gave = malloc_trim()
print(gave, before - resident())
"""


@pytest.mark.slow
@pytest.mark.skipif(not GLIBC, reason="only glibc keeps freed memory")
def test_freed_memory_is_given_back_on_request() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD], capture_output=True, text=True, timeout=600, check=True
    )
    gave, mebibytes = done.stdout.split()
    assert gave == "True"
    assert int(mebibytes) > 400


def test_a_c_library_that_gives_nothing_back_on_request_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attlas._hardware.ctypes.CDLL", lambda name: object())
    assert not malloc_trim()
