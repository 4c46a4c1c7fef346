"""Trainings of shipped recipes on a GPU, by the command, to a translation: parts of `gpu.py`.

They read Multi30k from the folder that `--multi30k` names, and are left out without it.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attlas

HOME = str(Path(attlas.__file__).resolve().parents[1])
"""Where attlas is imported from, whatever folder a command runs in."""

WAYS: dict[str, tuple[str, ...]] = {
    "bfloat16, CUDA graphs": ("training.autocast=bf16", "training.cuda_graphs=true"),
    "float32, CUDA graphs": ("training.cuda_graphs=true",),
    "as it is": (),
}
GOAL = 35.0  # BLEU of the validation


def tiny(machine: Any) -> dict[str, Any]:
    """`attlas train tiny` from its start to 35 BLEU: goal, 30 s."""
    return trained(machine, "tiny")


def base(machine: Any) -> dict[str, Any]:
    """`attlas train base` to its end; asked for by name."""
    return trained(machine, "base")


def trained(machine: Any, recipe: str) -> dict[str, Any]:
    """Seconds of wall time, from the start of the command, to each validation and its BLEU.

    Raises:
        RuntimeError: If the command fails.
    """
    if machine.device.type == "cpu":
        return {"left out": "a dry run trains no recipe"}
    data: Path = machine.multi30k.resolve()
    if not data.is_dir():
        return {"left out": f"there is no folder {machine.multi30k}: name it by --multi30k"}
    found: dict[str, Any] = {}
    for way in machine.cases(WAYS, found):
        with TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            (Path(folder) / "multi30k").symlink_to(data)  # where the recipe looks for it
            command = [sys.executable, "-m", "attlas", "train", recipe, "--out", run]
            for setting in ("training.device=cuda", *WAYS[way]):
                command += ["--set", setting]
            begun = time.time()
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    check=False,
                    cwd=folder,
                    env={**os.environ, "PYTHONPATH": HOME},
                    timeout=machine.seconds_left,
                )
            except subprocess.TimeoutExpired:
                found[way] = {"left out": "the time was over before its end"}
                continue
            seconds = time.time() - begun
            if done.returncode:
                raise RuntimeError(f"attlas train {recipe}, {way}: {done.stderr[-2000:]}")
            found[way] = {"seconds": seconds} | validations(run / "metrics.jsonl", seconds)
    return found


def validations(metrics: Path, seconds: float) -> dict[str, Any]:
    """What the record of a run says of its validations.

    Args:
        seconds: Of the whole command; what it took before and after the training counts as before.
    """
    lines = metrics.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    around = seconds - events[-1]["seconds"]
    scores = [
        (around + event["seconds"], event["bleu"])
        for event in events
        if event["event"] == "validated"
    ]
    reached = [when for when, bleu in scores if bleu >= GOAL]
    return {
        "BLEU of validations by seconds": scores,
        f"seconds to {GOAL:.0f} BLEU": reached[0] if reached else None,
    }
