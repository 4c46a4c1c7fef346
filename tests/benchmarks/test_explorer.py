"""The goals of the explorer: the traces that they are measured with, and the table of them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from explorer_table import BEGIN, END, GOALS, PAGE, RECORD, reported, with_goals  # noqa: E402
from explorer_trace import trace, words  # noqa: E402


@pytest.fixture
def record() -> dict[str, Any]:
    machine = {"processor": "Abacus", "cores": 2, "packages": {"torch": "9.9"}, "commit": "abc1234"}
    return {
        "date": "2001-02-03",
        "machine": machine,
        "load": 0.25,
        "browser": "Chrome/1.2",
        "figures": {
            "512.first.total": [990.0, 980.0, 1200.0],
            "1024.frames.pan": [49.0, 48.0, 60.0],
            "512.nodes.all": [1501.0],
            "512.hover.script": [1.0, 2.0],
        },
        "peers": [],
    }


def rows(text: str) -> dict[str, list[str]]:
    """The cells of a table's lines, by the first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in split}


def test_a_goal_is_met_or_missed_by_the_median_of_its_figures(record: dict[str, Any]) -> None:
    found = rows(reported(record))
    first = found["144 heads × 512 tokens: first picture of all heads"]
    assert first == ["≤ 1.00 s", "0.99 s (0.98 s to 1.20 s)", "met"]
    pan = found["panning in its map, frames"]
    assert pan == ["≥ 50 a second", "49 a second (48 a second to 60 a second)", "**missed**"]
    assert found["DOM nodes at 512 tokens"] == ["≤ 1,500", "1,501", "**missed**"]
    assert found["of it, the page's script"] == ["–", "1.5 ms (1.0 ms to 2.0 ms)", ""]


def test_peers_stand_below_and_one_that_does_not_run_says_why(record: dict[str, Any]) -> None:
    common = {"heads": 144, "tokens": 82}
    record["peers"] = [
        common | {"name": "attlas", "bytes": 1_000_000, "nodes": 1_000, "seconds": [0.5]},
        common | {"name": "peer", "version": "1.0", "lost": "no wheel"},
    ]
    found = rows(reported(record))
    assert found["attlas"] == ["1,000 kB", "1,000", "0.50 s"]
    assert found["peer (1.0)"] == ["does not run: no wheel", "", ""]


def test_the_table_says_where_and_when(record: dict[str, Any]) -> None:
    facts = ("Abacus", "2 cores", "Load 0.2 before", "Chrome/1.2", "commit abc1234", "2001-02-03")
    for fact in facts:
        assert fact in reported(record)


def test_the_maps_of_a_real_model_have_a_table_of_their_own(record: dict[str, Any]) -> None:
    without = reported(record)
    own = [{"name": "attlas", "heads": 72, "tokens": 31, "bytes": 5, "nodes": 6, "seconds": [0.5]}]
    where = {"date": record["date"], "machine": record["machine"]}
    found = reported(record | {"model": {"name": "MiniLM", "peers": own, **where}})
    assert found.startswith(without)
    assert "| 72 heads × 31 tokens, as one file |" in found
    assert "\nMiniLM; " in found


def test_the_table_replaces_what_is_between_its_markers(record: dict[str, Any]) -> None:
    once = with_goals(f"before\n{BEGIN}\nold\n{END}\nafter\n", record)
    assert "old" not in once
    assert once.startswith(f"before\n{BEGIN}\n| what")
    assert with_goals(once, record) == once
    with pytest.raises(SystemExit, match="explorer"):
        with_goals("no markers", record)


def test_the_page_shows_the_record_that_is_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert with_goals(text, record) == text
    assert {goal.figure for goal in GOALS} - set(record["figures"]) <= {"doubt.answer"}  # of a run


def test_a_trace_has_sharp_heads_and_diffuse_ones_and_the_same_each_time() -> None:
    made = trace(3, 12, 60)
    assert len(words(60)) == 60
    largest = []
    for layer in made:
        weights = made[layer].weights()[0]
        assert weights.shape == (12, 60, 60)
        largest += weights.amax(-1).mean(-1).tolist()
        assert bool((weights == trace(3, 12, 60)[layer].weights()[0]).all())
    assert min(largest) < 0.15
    assert max(largest) > 0.6
