"""Trains by two processes again and again beside a busy core, and counts how the processes end.

    python scripts/stress_distributed.py 50

A training that has finished and does not end with 0 is a fault: of its end, not of its learning.
"""

import multiprocessing
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SETTINGS = (
    "data.train=40", "data.length=[3, 5]", "model.embed_dim=8", "model.hidden_dim=8",
    "model.encoder_hidden_dim=8", "training.max_steps=2", "training.device=cpu",
)  # fmt: skip


def busy() -> None:
    """Keep a core from everybody else."""
    while True:
        pass


def main(times: int) -> int:
    """Train so often; how often it did not end with 0."""
    others = [multiprocessing.Process(target=busy, daemon=True) for _ in range(2)]
    for other in others:
        other.start()
    ends: Counter[int] = Counter()
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    for number in range(times):
        spread = ("ddp", "fsdp")[number % 2]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m",
                 "attlas", "train", "reverse", "--out", str(Path(folder, "run")), *settings,
                 "--set", f"training.distribution={spread}"],
                capture_output=True, text=True,
            )  # fmt: skip
        ends[done.returncode] += 1
        if done.returncode:
            print(done.stderr[-3000:])
        print(f"{number + 1} of {times}: exit codes {dict(ends)}", flush=True)
    for other in others:
        other.kill()
    return times - ends[0]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50) > 0)
