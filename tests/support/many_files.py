"""Many files to translate, and processes that do it, for the tests."""

import json
import os
import random
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from attlas.jobs import checkpointed_output as part
from support.command_line import called
from support.warm_processes import WarmProcess

DRAWN = ("--set", "decoding.method=sample")  # of a model that knows nothing yet, the most to see
PATIENCE = 300.0  # seconds; only a failure waits so long
THREADS = pytest.mark.parametrize("threads", [1, 2])


def translate(*arguments: object, text: str | None = None) -> tuple[int, str, str]:
    return called("translate", *arguments, *DRAWN, text=text)


def started(*arguments: object, threads: int = 1) -> WarmProcess:
    """A process group of its own; with several threads, as many children search for it."""
    return WarmProcess(
        *("translate", *arguments, *DRAWN),
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stderr=PIPE,
        start_new_session=True,
    )


def written(folder: Path, seed: int = 0, **lines: int) -> list[Path]:
    """Files of so many lines, some of them empty."""
    chance, found = random.Random(seed), []
    for name, count in lines.items():
        rows = (" ".join(chance.choices("0123456", k=chance.randrange(6))) for _ in range(count))
        found.append(folder / f"{name}.txt")
        found[-1].write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        aged(found[-1])
    return found


def aged(path: Path, seconds: float = 1e5) -> None:
    """As if it had been written so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def progress(output: Path) -> int:
    """How many lines of it are done."""
    try:
        return int(json.loads((part.progress_dir(output) / "progress.json").read_bytes())["lines"])
    except FileNotFoundError:
        return 0


def until_there_are(lines: int, output: Path) -> None:
    end = time.monotonic() + PATIENCE
    while progress(output) < lines:
        assert time.monotonic() < end
        time.sleep(0.005)
