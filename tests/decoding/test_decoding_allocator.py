"""Memory that is freed and asked for again stays with the process."""

import os
import platform
import subprocess
import sys

import pytest

from attlas.decoding.allocator import keep_freed_memory

GLIBC = platform.libc_ver()[0] == "glibc"

# Four blocks of 8 MiB, taken, written and given back again and again.
FAULTS = """
import resource, sys
import torch
from attlas.decoding.allocator import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()

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
    assert keep_freed_memory() == GLIBC


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attlas.decoding.allocator.ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()


@pytest.mark.skipif(not GLIBC, reason="only glibc gives freed memory back at once")
def test_kept_memory_is_not_asked_of_the_system_again() -> None:
    assert 5 * faults("kept") < faults("given back")
