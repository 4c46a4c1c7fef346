"""How many files of attlas one sentence walks through: who reads the code has to open those."""

import json
import os
import subprocess
import sys

import pytest

from attlas.training import read_recipe, train

WALK = """
import io, json, sys, threading
from pathlib import Path

import attlas
from attlas.cli.main import main

home = str(Path(attlas.__file__).parent)


def walk(work):
    entered = set()

    def enter(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home) and code.co_name != "<module>":
            entered.add(code.co_filename)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(entered)


def command():
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"A dog runs.\\n"))
    sys.stdout, printed = io.TextIOWrapper(io.BytesIO()), sys.stdout
    sys.argv = ["attlas", "translate", run]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    finally:
        sys.stdout = printed


run = sys.argv[1]
translator = attlas.Translator(run)
translator("A dog").trace  # what is imported and kept at the first call is no part of the walk
print(json.dumps({
    "text": walk(lambda: translator("A dog runs.")),
    "trace": walk(lambda: translator("A dog runs.").trace),
    "command": walk(command),
}))
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    run = tmp_path_factory.mktemp("walk") / "run"
    settings = [
        "training.max_steps=1",
        "training.validation.translate=false",
        "training.validation.criterion=loss",
    ]
    train(read_recipe("demo", settings), run)
    done = subprocess.run(
        [sys.executable, "-c", WALK, str(run)],
        capture_output=True, encoding="utf-8", check=False, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(("walk", "most"), [("text", 30), ("trace", 48), ("command", 55)])
def test_a_sentence_walks_through_few_files(walked: dict[str, int], walk: str, most: int) -> None:
    assert 10 < walked[walk] <= most
