"""Processes that train one model are read as one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attlas
from attlas.monitoring import read_history
from support import watched_processes


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["ddp", "fsdp"])
def test_two_processes_have_the_reading_of_one_large_batch(tmp_path: Path, spread: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
         watched_processes.__file__, str(tmp_path), spread],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads((tmp_path / f"rank-{n}.json").read_text()) for n in (0, 1))
    assert first == second
    assert read_history(tmp_path / "watch.jsonl") == [first]  # one process writes
    model = watched_processes.model()
    watch = attlas.watch(model)
    x, padding = watched_processes.batch()
    model(x, src_key_padding_mask=padding)
    alone = watch.step()
    assert alone is not None
    assert alone.heads[0].queries == sum(watched_processes.LENGTHS)
    for found, wanted in zip(first["heads"], alone.record()["heads"], strict=True):
        assert found.pop("layer") == wanted.pop("layer")
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)
