"""Processes that train one model are read as one."""

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import attlas
from attlas.monitoring import read_history
from attlas.monitoring.processes import quantiles_of_parts
from attlas.monitoring.reader import recorded_statistics
from attlas.monitoring.statistics import QUANTILES, Array
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


def test_quantiles_of_parts_are_those_of_all_values_to_the_bit() -> None:
    """Places that only exchange counts; a thread is a place. Ties, no value, signs and NaN."""
    generator = np.random.default_rng(0)
    sizes = [(0, 0, 0), (1, 0, 0), (0, 1, 1), (2, 3, 0), (40, 7, 11), (100, 100, 100)]
    drawn: list[list[Array]] = [
        [np.asarray(draw(size), np.float32) for size in shape]
        for shape in sizes
        for draw in (
            lambda n: generator.normal(1.0, 3.0, n),
            lambda n: generator.choice([-1.5, 0.0, 0.25, 2.0], n),
        )
    ]
    drawn.append(
        [np.array([0.5, np.nan], np.float32), np.zeros(1, np.float32), np.ones(3, np.float32)]
    )
    barrier = threading.Barrier(3)
    boxes: list[Array] = [np.zeros(0, np.int64)] * 3

    def of_place(place: int) -> list[tuple[float, ...]]:
        def added(counts: Array) -> Array:
            boxes[place] = counts
            barrier.wait()
            total = np.sum(boxes, 0)
            barrier.wait()
            return total

        return quantiles_of_parts([head[place] for head in drawn], added)

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(of_place, range(3)))
    for number, head in enumerate(drawn):
        values = np.concatenate(head).astype(np.float64)
        if len(values):
            expected = np.quantile(values, QUANTILES)
            for place in found:
                np.testing.assert_array_equal(place[number], expected)


def test_what_processes_hold_of_each_other_does_not_grow_with_the_queries() -> None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    sizes = []
    for queries in (20, 2000):
        with recorded_statistics(layer) as recorder:
            x = torch.randn(1, queries, 8)
            layer(x, x[:, :5], x[:, :5], need_weights=False)
        (totals,) = recorder.totals().values()
        assert [len(entropies) for entropies in totals.entropies] == [queries] * 2
        sizes.append(len(pickle.dumps(totals.without_entropies())))
    assert sizes[1] <= sizes[0] + 8
