"""Trainings in child processes that die; run as a script by tests/training/test_resume.py.

`python killed_trainings.py moments|operations FOLDER` prints a JSON object: how many were killed,
what went wrong. Children are forks of this process, which spares each of them the import of
torch.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import Recipe, train

_OPERATIONS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "ftruncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_NOT_OF_THE_WAY = (  # of clocks, limits and the machine
    "seconds", "tokens_per_second", "done", "folder", "peak_memory", "peak_gpu_memory",
)  # fmt: skip


def recipe(updates: int, **training: Any) -> Recipe:
    """A tiny model with something of everything that a checkpoint has to carry."""
    return Recipe.read(
        {
            "seed": 3,
            "data": {
                "kind": "toy",
                "length": [1, 5],
                "symbols": 6,
                "train": 90,
                "valid": 8,
                "test": 1,
            },
            "vocabulary": {"kind": "words", "size": 16},
            "batching": {"max_tokens": 64, "max_length": 16},
            "model": {
                "kind": "recurrent",
                "embed_dim": 8,
                "hidden_dim": 8,
                "encoder_hidden_dim": 8,
                "dropout": 0.2,
            },
            "training": {
                "max_steps": updates,
                "device": "cpu",
                "threads": 1,
                "gradient_accumulation_steps": 2,
                "keep_last": 2,
                "log_every": 2,
                "schedule": {"kind": "inverse-square-root", "warmup": 5},
                "scheduled_sampling": {"kind": "constant", "p": 0.8},
                "averaging": {"kind": "ema"},
                "validation": {"criterion": "accuracy", "decoding": {"max_len_a": 1.0}},
                **training,
            },
        },
        "the test",
    )


def forked(work: Callable[[], None]) -> int:
    """Start `work` in a child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a child; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def whole(folder: Path, expected: Recipe) -> dict[str, Any]:
    """Train to the end and return everything that a run consists of, without times."""
    train(expected, folder)
    run = Run(folder)
    last = run.store.read("last")
    facts = {k: v for k, v in last.facts.items() if k not in ("seconds", "journal", "window")}
    events = [
        {k: v for k, v in event.items() if k not in _NOT_OF_THE_WAY}
        for event in run.events()
        if event["event"] != "started"
    ]
    return {
        "last": bits(last.model) | bits(last.training),
        "best": bits(run.store.read("best").model),
        "facts": facts,
        "events": events,
        "names": [run.store.named("best"), run.store.named("last"), *run.checkpoints()],
        "files": sorted(path.name for path in folder.iterdir()),
    }


def bits(tensors: Any) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def void(value: object) -> None:
    """Nothing."""


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return [key for key in expected if found[key] != expected[key]]


def at_moments(folder: Path, kills: int) -> dict[str, Any]:
    """Kill by SIGKILL at random moments; twice in the same run where it still trains."""
    long = recipe(16, save_every=2)
    whole(folder / "warm", recipe(2))  # what is imported or set up once does not count
    begin = time.monotonic()
    undisturbed = whole(folder / "undisturbed", long)
    length = time.monotonic() - begin
    chance = random.Random(7)
    wrong, killed, runs = [], 0, 0
    while killed < kills:
        runs += 1
        run = folder / f"run{runs}"
        for _ in range(2):
            child = forked(lambda run=run: void(train(long, run)))
            time.sleep(chance.uniform(0.0, length))
            os.kill(child, signal.SIGKILL)
            killed += ended(child) == -signal.SIGKILL
        wrong += [[runs, key] for key in differences(whole(run, long), undisturbed)]
    return {"killed": killed, "wrong": wrong, "updates": undisturbed["facts"]["update"]}


def after_operations(folder: Path) -> dict[str, Any]:
    """Kill after the n-th file operation of a whole training, for every n until it survives.

    Of a write, only the first half is done when it is the last operation.
    """
    tables = recipe(
        2, save_every=1, keep_last=1, validation={"every": 2, "translate": False}
    ).tables()
    tables["data"] |= {"length": [1, 2], "train": 40, "valid": 2}
    short = Recipe.model_validate(tables)
    undisturbed = whole(folder / "undisturbed", short)
    wrong: list[list[Any]] = []
    names: list[str] = []
    for n in range(1, 1000):
        run = folder / f"run{n}"
        log = folder / f"log{n}"
        child = forked(lambda run=run, n=n, log=log: dying_after(n, run, short, log))
        code = ended(child)
        if code == 0:
            return {"killed": n - 1, "wrong": wrong, "operations": sorted(set(names))}
        if code != 9:
            raise SystemExit(f"the training with {n} operations ended with {code}")
        names.append(log.read_text())
        wrong += [[n, names[-1], what] for what in unreadable(run)]
        wrong += [[n, names[-1], k] for k in differences(whole(run, short), undisturbed)]
    raise SystemExit("a training of two updates takes more than a thousand operations")


def dying_after(n: int, run: Path, expected: Recipe, log: Path) -> None:
    """Train, and die at the n-th operation on files."""
    done = 0
    token_mask = {name: getattr(os, name) for name in _OPERATIONS}

    def counted(name: str) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            if name == "open" and not arguments[1] & _WRITING:  # it changes nothing
                return token_mask[name](*arguments, **options)
            done += 1
            if done == n and name == "write":
                arguments = (arguments[0], arguments[1][: max(1, len(arguments[1]) // 2)])
            try:
                return token_mask[name](*arguments, **options)
            finally:  # also where it failed, as mkdir of a folder that exists does
                if done == n:
                    log.write_text(name)
                    os._exit(9)

        return operation

    for name in _OPERATIONS:
        setattr(os, name, counted(name))
    train(expected, run)


def unreadable(folder: Path) -> list[str]:
    """What of the folder a reader trips over, before anything is mended."""
    if not (folder / "config.toml").exists():
        return []
    wrong = []
    for which in ("best", "last"):
        if (folder / which).exists():
            try:
                Run(folder).model(which)
            except AttlasError as error:
                wrong.append(str(error))
    Run(folder).events()
    return wrong


if __name__ == "__main__":
    torch.set_num_threads(1)
    place = Path(sys.argv[2])
    what = at_moments(place, 20) if sys.argv[1] == "moments" else after_operations(place)
    print(json.dumps(what))
