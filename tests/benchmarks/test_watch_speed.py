"""What `attlas.watch` costs: the table, and what is counted as the cost of statistics."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import watch_speed

from attlas.monitoring import reader


def small() -> tuple[nn.Module, watch_speed.Loss]:
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def loss(model: nn.Module) -> Tensor:
        return model(torch.randn(2, 5, 8)).square().mean()

    return model, loss


def ticking(step: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += step


def test_statistics_are_timed_apart_from_what_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ticking(1.0)  # each look at the clock is a second
    monkeypatch.setattr(watch_speed.time, "process_time", lambda: next(clock))
    found = watch_speed.measure(small, turns=3)
    # A plain update looks twice, an unread one four times, and statistics of two layers four times.
    assert found == {
        "not read": [3.0] * 3,
        "read": [7.0] * 3,
        "read, without statistics": [5.0] * 3,
    }
    assert reader.totals_of.__module__ == "attlas.monitoring.statistics"  # it is put back


def test_the_table_has_medians_and_the_mean_over_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ratios = {
        "not read": [1.0, 1.0, 1.0],
        "read": [1.5, 2.0, 2.5],
        "read, without statistics": [1.1, 1.1, 1.1],
    }
    monkeypatch.setattr(watch_speed, "MODELS", {"small": small})
    monkeypatch.setattr(watch_speed, "measure", lambda make, turns: ratios)
    monkeypatch.setattr(watch_speed, "disable_malloc_trim", lambda: None)
    monkeypatch.setattr(sys, "argv", ["watch_speed.py", "--every", "10"])
    watch_speed.main()
    row = capsys.readouterr().out.splitlines()[-1]
    assert row == (
        "| small | 1.000 (1.000 to 1.000) | 2.000 (1.500 to 2.500) | 1.100 (1.100 to 1.100) "
        "| 1.100 |"
    )
