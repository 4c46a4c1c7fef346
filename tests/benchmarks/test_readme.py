"""The README's table of benchmarks is made from results."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import run  # noqa: E402
from readme import BEGIN, END, tables, with_table  # noqa: E402

SUITES = ("training",)


def contender(name: str, median: float, ratio: float, version: str | None = None) -> dict[str, Any]:
    return {"name": name, "median": median, "ratio": ratio, "version": version}


@pytest.fixture
def results() -> dict[str, Any]:
    def one(name: str, threads: int, *contenders: dict[str, Any]) -> dict[str, Any]:
        return {
            "suite": "training", "name": name, "unit": "tokens/s", "threads": threads,
            "contenders": list(contenders),
        }  # fmt: skip

    return {
        "training": {
            "date": "2001-02-03",
            "machine": {
                "processor": "Abacus", "cores": 2, "packages": {"torch": "9.9"},
                "commit": "abc1234",
            },
            "failed": None,
            "measurements": [
                one(
                    "RNN", 1, contender("attlas", 3000, 1), contender("Peer", 1200, 2.5, "1.0"),
                    {"name": "Other", "lost": "does not install: no wheel"},
                ),
                one("RNN", 2, contender("attlas", 4000, 1), contender("Peer", 2000, 2, "1.0")),
            ],
        }
    }  # fmt: skip


def rows(text: str) -> dict[str, list[str]]:
    """The cells of a table's lines, by the first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in split}


def test_a_table_shows_every_contender_of_every_measurement(results: dict[str, Any]) -> None:
    found = rows(tables(results, SUITES))
    assert found["training, tokens/s"] == ["RNN, 1 thread", "RNN, 2 threads"]
    assert found["attlas"] == ["3,000", "4,000"]
    assert found["Peer (1.0)"] == ["1,200 (2.50 ×)", "2,000 (2.00 ×)"]


def test_a_peer_that_does_not_install_is_in_the_table_and_reported_why(
    results: dict[str, Any],
) -> None:
    text = tables(results, SUITES)
    assert rows(text)["Other"] == ["does not run", "–"]
    assert "Other: does not install: no wheel" in text


def test_a_suite_that_failed_is_reported(results: dict[str, Any]) -> None:
    results["training"]["failed"] = "exit code 1"
    assert "training failed: exit code 1" in tables(results, SUITES)


def test_a_table_says_where_and_when(results: dict[str, Any]) -> None:
    for fact in ("Abacus", "2 cores", "torch 9.9", "commit abc1234", "2001-02-03"):
        assert fact in tables(results, SUITES)


def test_a_table_says_that_the_source_was_not_that_of_a_commit(results: dict[str, Any]) -> None:
    results["training"]["machine"]["commit"] = "abc1234+"
    assert "commit abc1234+ (changed since), 2001-02-03" in tables(results, SUITES)
    results["training"]["machine"]["commit"] = None
    assert "no commit, 2001-02-03" in tables(results, SUITES)


def test_suites_of_different_days_each_say_when_and_the_machine_once(
    results: dict[str, Any],
) -> None:
    results["layers"] = {**results["training"], "date": "2001-02-04"}
    text = tables(results, ("training", "layers"))
    assert text.endswith(
        "Abacus, 2 cores; torch 9.9; training: commit abc1234, 2001-02-03; "
        "layers: commit abc1234, 2001-02-04."
    )
    results["layers"]["date"] = "2001-02-03"
    assert tables(results, ("training", "layers")).endswith(
        "Abacus, 2 cores; torch 9.9; commit abc1234, 2001-02-03."
    )


def test_a_contender_of_another_day_and_machine_says_so(results: dict[str, Any]) -> None:
    other = {"system": "Other OS", "packages": {"torch": "8.8"}, "commit": "fff0000"}
    own = {"date": "2001-01-01", "machine": other}
    results["training"]["measurements"][1]["contenders"][1]["conditions"] = own
    text = tables(results, SUITES)
    assert "Abacus, 2 cores; torch 9.9; training: commit abc1234, 2001-02-03." in text
    assert text.endswith("Other OS; torch 8.8; Peer in RNN: commit fff0000, 2001-01-01.")


def test_a_table_says_which_batches_each_took(results: dict[str, Any]) -> None:
    for one, taken in zip(results["training"]["measurements"], ("8 rows", "9 rows"), strict=True):
        one["contenders"][1]["taken"] = taken
    assert "from left to right. Peer: 8 rows; 9 rows." in tables(results, SUITES)


def test_a_table_says_how_many_lines_of_each_are_ours(results: dict[str, Any]) -> None:
    measurements = results["training"]["measurements"]
    assert "Lines that are" not in tables(results, SUITES)
    measurements[0]["agreeing"] = {"attlas": 1.0, "Peer": 0.9876}
    measurements[1]["agreeing"] = {"attlas": 1.0, "Peer": 0.5, "Other": 0.25}
    lines = tables(results, SUITES).splitlines()
    expected = "those of attlas, from left to right. Peer: 98.8%, 50.0%; Other: –, 25.0%."
    assert f"Lines that are {expected}" in lines
    results["training"]["measurements"] = measurements * 5
    expected = "attlas: 4,000 | Peer: 2,000 (2.00 ×), 50.0% of its lines those of attlas |"
    assert tables(results, SUITES).count(expected) == 5


def test_the_table_replaces_what_is_between_the_markers_and_nothing_else(
    results: dict[str, Any],
) -> None:
    once = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", results, SUITES)
    assert once.startswith(f"before\n{BEGIN}\n| training")
    assert once.endswith(f"\n{END}\nafter\n")
    assert "old" not in once
    assert with_table(once, results, SUITES) == once


def test_a_readme_without_markers_is_left_alone(results: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="benchmarks"):
        with_table("no markers", results, SUITES)


def test_many_measurements_go_down_instead_of_across(results: dict[str, Any]) -> None:
    results["training"]["measurements"] *= 5
    found = tables(results, SUITES).splitlines()
    assert found[0] == "| training | first | others |"
    expected = "| RNN, 2 threads, tokens/s | attlas: 4,000 | Peer: 2,000 (2.00 ×) |"
    assert found.count(expected) == 5


def test_memory_is_reported_where_it_was_measured(results: dict[str, Any]) -> None:
    results["training"]["measurements"] *= 5
    results["training"]["measurements"][1]["contenders"][1]["peak_mib"] = 1234.5
    assert "attlas: 4,000 | Peer: 2,000 (2.00 ×), 1,234 MiB |" in tables(results, SUITES)


def curves(*contenders: dict[str, Any]) -> dict[str, Any]:
    return {
        "suite": "training", "name": "`tiny`, 20 min", "unit": "BLEU", "threads": 1,
        "moments": [600.0, 1200.0], "contenders": list(contenders),
    }  # fmt: skip


def test_a_curve_shows_how_good_each_was_by_then_and_in_the_end(results: dict[str, Any]) -> None:
    points = [{"seconds": s, "bleu": b} for s, b in ((300, 3.14), (590, 5.0), (900, 30.0))]
    results["training"]["measurements"] = [
        curves(
            {"name": "attlas", "points": points, "paper_bleu": 31.25},
            {"name": "Peer", "version": "1.0", "points": [{"seconds": 1201, "bleu": 7.0}]},
            {"name": "Slow", "points": [{"seconds": 1500, "bleu": 8.0}]},
            {"name": "Other", "lost": "no wheel"},
        )
    ]
    text = tables(results, SUITES)
    found = rows(text)
    heads = ["10 min", "20 min", "in the end", "papers' measure"]
    assert found["`tiny`, 20 min, BLEU, 1 thread"] == heads
    assert found["attlas"] == ["5.0", "30.0", "30.0 after 15 min", "31.2"]
    assert found["Peer (1.0)"] == ["–", "7.0", "7.0 after 20 min", "–"]
    assert found["Slow"] == ["–", "–", "8.0 after 25 min, late", "–"]
    assert "Other: no wheel" in text
    assert "13a" in text


def test_a_curve_tells_in_which_numbers_it_was_trained_but_float32(
    results: dict[str, Any],
) -> None:
    points = [{"seconds": 600, "bleu": 1.0}]
    results["training"]["measurements"] = [
        curves(
            {"name": "attlas", "points": points, "numbers": "bfloat16"},
            {"name": "plain", "points": points, "numbers": "float32"},
            {"name": "Peer", "version": "1.0", "points": points},
        )
    ]
    found = rows(tables(results, SUITES))
    assert {"attlas, bfloat16", "plain", "Peer (1.0)"} <= found.keys()


def test_curves_without_the_papers_measure_have_no_column_of_it(results: dict[str, Any]) -> None:
    one = curves({"name": "attlas", "points": [{"seconds": 600, "bleu": 1.0}]})
    results["training"]["measurements"] = [one]
    assert rows(tables(results, SUITES))["attlas"] == ["1.0", "1.0", "1.0 after 10 min"]


def test_suites_that_a_page_does_not_ask_for_are_not_on_it(results: dict[str, Any]) -> None:
    assert "RNN" not in tables(results, ("layers",))


def test_what_was_not_measured_says_so_and_how_to_instead_of_a_caption_alone(
    results: dict[str, Any],
) -> None:
    expected = 'Not measured yet: `make bench SUITES="search layers"`.'
    assert tables(results, ("search", "layers")) == expected
    both = tables(results, ("training", "layers"))
    assert rows(both)["attlas"] == ["3,000", "4,000"]
    assert both.endswith("2001-02-03.\n\nNot measured yet: `make bench SUITES=layers`.")
    assert "Not measured" not in tables(results, SUITES)


@pytest.mark.parametrize("times", [1, 5], ids=["wide", "long"])
def test_where_the_first_is_lost_nobody_is_compared_with_the_next(
    results: dict[str, Any], times: int
) -> None:
    peer = {"name": "Peer", "median": 1200}
    one = results["training"]["measurements"][0]
    one["contenders"] = [{"name": "attlas", "lost": "it broke"}, peer]
    results["training"]["measurements"] = [one] * 2 * times
    text = tables(results, SUITES)
    assert "1,200 (–)" in text
    assert "×)" not in text
    assert "attlas: it broke" in text


@pytest.mark.parametrize("page", run.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_pages_show_the_results_that_are_kept(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    if run.RESULTS.is_file():
        results = json.loads(run.RESULTS.read_text(encoding="utf-8"))
        assert with_table(text, results, run.PAGES[page]) == text
