"""How a recurrent training slows down with the length of its texts."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import length_speed

from attlas.models import RecurrentModel
from attlas.ops import deferred_reads


def test_each_way_has_a_row_for_each_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ways: list[tuple[int, int]] = []
    rates = iter([1.0] * 4 + [400.0, 100.0, 200.0, 40.0] * 2)  # the first of each is not counted

    def update(model: RecurrentModel, optimizer: object, length: int, at: int) -> float:
        assert at == 256
        ways.append((length, deferred_reads.LONG))
        return next(rates)

    monkeypatch.setattr(length_speed, "update", update)
    monkeypatch.setattr(deferred_reads, "LONG", deferred_reads.LONG)
    monkeypatch.setattr(length_speed, "disable_malloc_trim", lambda: None)
    reported = ["length_speed.py", "--lengths", "2", "5", "--tokens", "256", "--blocks", "2"]
    monkeypatch.setattr(sys, "argv", reported)
    length_speed.main()
    least, none = length_speed.WAYS.values()
    assert ways == [(2, least), (2, none), (5, least), (5, none)] * 3
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "| recomputed | 2 | 400 | 1.00 | 4.00 |",
        "| kept | 2 | 100 | 1.00 | 1.00 |",
        "| recomputed | 5 | 200 | 0.50 | 5.00 |",
        "| kept | 5 | 40 | 0.40 | 1.00 |",
    ]


def test_an_update_counts_the_target_tokens_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from attlas.models import RecurrentConfig, build

    model = build(RecurrentConfig(embed_dim=4, hidden_dim=4), length_speed.VOCABULARY)
    assert isinstance(model, RecurrentModel)
    clock = iter([1.0, 3.0])
    monkeypatch.setattr(length_speed.time, "process_time", lambda: next(clock))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    assert length_speed.update(model, optimizer, length=3, at=10) == 3 * 3 / 2
    after = list(model.parameters())
    assert not all(map(torch.equal, before, after))
