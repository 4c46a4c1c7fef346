"""`attlas translate` on several cores: the same lines, and nobody left behind by Ctrl-C."""

import os
import signal
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from attlas._parallel import POSSIBLE
from support.warm_processes import WarmProcess

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="children are only used on Linux")
LINES = "".join(f"s{n % 7} s{n % 5} s3\n" * (n % 3) + "\n" for n in range(400)).encode()


def with_threads(count: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(count)}


def children_of(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text(encoding="ascii").split()]


def translated(run: Path, folder: Path, threads: int, options: list[str]) -> bytes:
    """What so many processes write for `LINES`."""
    source, output = folder / "lines", folder / f"by-{threads}"
    source.write_bytes(LINES)
    with (
        source.open() as lines,
        output.open("w") as written,
        WarmProcess(
            *("translate", run, *options),
            stdin=lines.fileno(),
            stdout=written.fileno(),
            env=with_threads(threads),
        ) as process,
    ):
        assert process.wait() == 0
    return output.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--n-best", "2"], ["--window", "7"]])
def test_two_processes_write_what_one_writes(run: Path, tmp_path: Path, options: list[str]) -> None:
    one, two = (translated(run, tmp_path, threads, options) for threads in (1, 2))
    assert two == one
    assert two.count(b"\n") >= LINES.count(b"\n")


@pytest.mark.slow
def test_ctrl_c_ends_the_children_too(run: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_bytes(LINES * 500)
    command = ("translate", run, "--input", text, "--output", tmp_path / "out")
    with WarmProcess(*command, env=with_threads(2), stderr=PIPE) as process:
        until = time.monotonic() + 120
        while not (children := children_of(process.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said == "attlas: interrupted\n"
    assert children
    # Who was not yet at work when it came ends as it finds its pipe closed.
    until = time.monotonic() + 60
    while left := [child for child in children if Path(f"/proc/{child}").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
