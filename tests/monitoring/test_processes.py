"""Processes that train one model are read as one."""

import json
from pathlib import Path

import pytest

import attlas
from attlas.monitoring import read_history
from support import watched_processes
from support.warm_processes import ranks


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["ddp", "fsdp"])
def test_two_processes_have_the_reading_of_one_large_batch(tmp_path: Path, spread: str) -> None:
    script = Path(watched_processes.__file__).read_text(encoding="utf-8")
    codes, printed = ranks(2, tmp_path, spread, code=script)
    assert codes == [0, 0], printed[-3000:]
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
    for found, expected in zip(first["heads"], alone.record()["heads"], strict=True):
        for name in ("layer", "mask_diagonal", "context_error"):
            assert found.pop(name) == expected.pop(name)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_where_one_process_fails_all_say_so_and_none_waits(tmp_path: Path) -> None:
    script = Path(watched_processes.__file__).read_text(encoding="utf-8")
    codes, printed = ranks(2, tmp_path, "failing", code=script)
    assert codes == [0, 0], printed[-3000:]
    first, second = (json.loads((tmp_path / f"rank-{n}.json").read_text()) for n in (0, 1))
    assert second.startswith("expected maps of one kind")
    assert "an error of rank 1" in first
    assert "maps of one kind" in first
