"""scripts/own_text.py: parts of a table to train on, and a test beside them."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from attlas.data import Pair

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "own_text.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_no_sentence_of_the_test_is_trained_on(script: dict[str, Any]) -> None:
    pairs = [Pair(f"Sentence {n // 3}{'.!?'[n % 3]}", f"Satz {n % 3_500}.") for n in range(6_000)]
    pairs += [Pair(pair.source.upper(), pair.target) for pair in pairs[:900]]
    test, parts = script["split"](pairs, [100, 1_000])
    key = script["key"]
    assert len(test) == len({key(pair.source) for pair in test}) == 1_000
    assert parts[1_000][:100] == parts[100]
    for part in parts.values():
        assert not {key(pair.source) for pair in test} & {key(pair.source) for pair in part}
        assert not {key(pair.target) for pair in test} & {key(pair.target) for pair in part}


def test_the_files_are_written(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.tsv"
    lines = [f"Sentence {n}.\tSatz {n}.\n" for n in range(1_200)]
    table.write_text("".join(lines), encoding="utf-8")
    out = tmp_path / "out"
    arguments = [str(table), "--sizes", "50", "150", "--out", str(out), "--only-write"]
    monkeypatch.setattr(sys, "argv", ["own_text.py", *arguments])
    script["main"]()
    written = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert {name: text.count("\n") for name, text in written.items()} == {
        "test.tsv": 1_000,
        "50.tsv": 50,
        "150.tsv": 150,
    }
    assert all(line in lines for text in written.values() for line in text.splitlines(True))
