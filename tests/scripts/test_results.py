"""The script that records results."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "results.py"


@pytest.fixture(scope="module")
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "folder"), [("README.md", "docs/results"), ("docs/benchmarks.md", "results")]
)
def test_a_page_has_the_tables_of_what_is_recorded(
    results: ModuleType, page: str, folder: str
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert results.with_tables(ROOT / page) == text
    for path in (ROOT / "docs" / "results").glob("*.json"):
        assert f"[{path.stem}]({folder}/{path.name})" in text


def test_translations_and_classifiers_have_a_table_each(results: ModuleType) -> None:
    recorded = [
        json.loads(path.read_text()) for path in sorted((ROOT / "docs" / "results").glob("*.json"))
    ]
    one = {
        "run": "films",
        "accuracy": 0.875,
        "interval": {"low": 0.8594, "high": 0.8891, "method": "Wilson"},
        "data": {"name": "films.csv", "texts": 2000},
        "training": {
            "parameters": 250_000, "seconds": 90.2, "threads": None, "machine": "Abacus OS",
            "texts_per_second": 1234,
        },
        "recorded_on": {"machine": "Other OS", "processor": "P", "cores": 4},
    }  # fmt: skip
    found = results.tables([*recorded, one])
    row = (
        "| [films](results/films.json) | 0.2 M | 90 s | all | 1,234 | 87.5%"
        " | 85.9%–88.9% | 2,000 texts: films.csv |"
    )
    assert row in found
    assert found.count("| run |") == 2
    assert results.tables([one]).endswith(
        f"{row}\n\nOn what the last column names; intervals: Wilson. "
        "Recorded on P, 4 cores; trained on Abacus OS."
    )
    assert results.tables([one]).startswith("| run | parameters | trained in | threads | texts/s |")


def test_a_run_that_is_not_there_is_reported_as_attlas_tells_it(tmp_path: Path) -> None:
    run = tmp_path / "nothere"
    command = [sys.executable, str(SCRIPT), "record", str(run)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("attlas: expected")
    assert "Traceback" not in done.stderr
    assert str(run) in done.stderr


def test_runs_of_several_machines_say_which_is_of_which(results: ModuleType) -> None:
    old = {"run": "old", "training": {"processor": "P", "cores": 2, "threads": 2}}
    on = {"machine": "Other OS", "processor": "Q", "cores": 8}
    one, two = (
        {"run": run, "training": {"threads": 1, "machine": "Abacus OS"}, "recorded_on": on}
        for run in ("one", "two")
    )
    assert results.machines([old, one, two]) == (
        "Recorded on P, 2 cores; Q, 8 cores; the machine of the training was not noted (old); "
        "trained on Abacus OS (one, two)."
    )
    two["training"]["processor"] = "R-1"
    assert results.machines([two]) == "Recorded on Q, 8 cores; trained on R-1."


def test_a_training_says_what_the_run_knows_of_it_and_no_more(
    results: ModuleType, tmp_path: Path
) -> None:
    events = [
        {"event": "started", "parameters": 9, "device": "cpu"},
        *({"event": "trained", "tokens_per_second": rate} for rate in (10.0, 30.0, 20.0)),
        {"event": "finished", "seconds": 1.5, "update": 3},
    ]
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    (tmp_path / "metrics.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "provenance.json").write_text('{"machine": "Abacus OS"}', encoding="utf-8")
    found = results.trained(tmp_path, {"training": {}}, "target_tokens")
    assert found == {
        "seconds": 1.5, "updates": 3, "target_tokens_per_second": 20, "parameters": 9,
        "device": "cpu", "machine": "Abacus OS", "threads": None,
    }  # fmt: skip
    facts = '{"machine": "Abacus OS", "processor": "R-1"}'
    (tmp_path / "provenance.json").write_text(facts, encoding="utf-8")
    assert results.trained(tmp_path, {"training": {}}, "texts")["processor"] == "R-1"
    settings = {"training": {"threads": 3}}
    assert results.trained(tmp_path, settings, "texts")["threads"] == 3


def test_every_row_says_how_was_searched(results: ModuleType) -> None:
    found = results.tables(
        [
            {
                "run": run,
                "training": {
                    "parameters": 1e6, "seconds": 60.0, "threads": 1, "cores": 1,
                    "target_tokens_per_second": 1, "processor": "P",
                },
                "scores": {
                    "BLEU": {"value": 1.0, "signature": "S"}, "chrF2": {"value": 1.0},
                },
                "exactly_right": 0.0,
                "decoding": decoding,
            }
            for run, decoding in {
                "wide": {"method": "beam", "num_beams": 7, "length_penalty": 1.0},
                "quick": {"method": "greedy", "num_beams": 4, "length_penalty": 0.6},
            }.items()
        ]
    )  # fmt: skip
    heads, _, wide, quick, *_ = ([c.strip() for c in row.split("|")] for row in found.split("\n"))
    place = heads.index("search")
    assert (wide[place], quick[place]) == ("beam 7, α 1.0", "greedy")
    assert len(heads) == len(wide) == len(quick)
    assert found.endswith(
        "On test sets; BLEU `S`; right: translations that are the reference, token for token; "
        "α: length penalty. Recorded on P, 1 cores; the machine of the training was not noted."
    )
