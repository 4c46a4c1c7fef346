"""`attlas lab`: experiments from the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from attlas.jobs.lab import differences_from_full
from attlas.lab.ledger import all_experiments, entry_of, find_experiment
from support.command_line import called


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ATTLAS_LAB_DATA", raising=False)


def test_the_list_names_every_experiment_and_claim() -> None:
    code, out, error = called("lab", "list")
    assert (code, error) == (0, "")
    for experiment in all_experiments():
        assert experiment.name in out
    claims = sum(len(experiment.claims) for experiment in all_experiments())
    assert claims >= 30


def test_names_of_experiments_are_distinct_and_their_claims_are_complete() -> None:
    experiments = all_experiments()
    names = [experiment.name for experiment in experiments]
    assert len(set(names)) == len(names)
    for experiment in experiments:
        for claim in experiment.claims:
            assert claim.text.endswith(".")
            assert claim.change.endswith(".")
            assert str(claim.rule)


def test_a_run_writes_a_result_for_each_seed_and_prints_verdicts() -> None:
    code, out, error = called("lab", "run", "parameters-of-mechanisms", "--seeds", "2")
    assert code == 0
    assert "seed 2" in error
    assert "holds" in out
    files = sorted(Path("lab/parameters-of-mechanisms/quick").glob("seed-*.json"))
    assert len(files) == 2
    record = json.loads(files[0].read_text())
    values = {m["condition"]["mechanism"]: m["value"] for m in record["measurements"]}
    # additive: W (128 × 64), U (128 × 64), v (64); general: W (128 × 128).
    assert values == {"additive": 2 * 128 * 64 + 64, "general": 128 * 128}
    assert record["facts"]["torch"]
    again = called("lab", "run", "parameters-of-mechanisms", "--seeds", "2")
    assert "already measured" in again[2]
    assert again[1] == out


def test_quick_verdicts_stand_beside_those_at_full_size() -> None:
    entry = entry_of(find_experiment("parameters-of-mechanisms"))
    assert entry.scale == "full"
    assert "with another verdict: none" in differences_from_full([entry])[-1]
    (claim, judgement), *rest = entry.verdicts
    assert judgement.outcome == "holds"
    other = replace(entry, verdicts=((claim, replace(judgement, outcome="undecided")), *rest))
    *_, count, line = differences_from_full([other])
    assert count.endswith("with another verdict: 1")
    assert line == f"  holds (full), undecided (quick): {claim.text}"
    unjudged = replace(entry, verdicts=((claim, replace(judgement, outcome="not judged")), *rest))
    lines = " ".join(differences_from_full([unjudged]))
    assert claim.text not in lines
    assert "not judged at quick sizes: 1 claim" in lines
    assert "attlas lab run parameters-of-mechanisms --full" in lines


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    code, _, error = called("lab", "run", "postions")
    assert code == 2
    assert "did you mean positions" in error


def test_an_experiment_whose_data_is_missing_says_where_it_comes_from() -> None:
    code, _, error = called("lab", "run", "sinks")
    assert code == 2
    assert "ATTLAS_LAB_DATA" in error
    assert "stories260K" in error


def test_the_report_is_written_as_pages() -> None:
    called("lab", "run", "printed-numbers", "--seeds", "2")
    code, out, _ = called("lab", "report", "--html", "pages", "--markdown", "text")
    assert code == 0
    assert "wrote" in out
    page = Path("pages/printed-numbers.html").read_text()
    assert "318692" in page.replace(",", "") or "3.187e+05" in page
    assert "printed-numbers.md" in Path("text/index.md").read_text()


def test_in_a_pipe_each_claim_is_a_line_without_spaces_at_its_end() -> None:
    _, out, _ = called("lab", "list")
    lines = out.splitlines()
    claims = [claim for experiment in all_experiments() for claim in experiment.claims]
    assert len(lines) == 1 + len(claims)
    assert all(line == line.rstrip() for line in lines)
    assert all(line.endswith(claim.text) for line, claim in zip(lines[1:], claims, strict=True))


NAMES = ("scale", "statistics", "permutation")


def measurements(folder: str) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): json.loads(path.read_text())["measurements"]
        for path in Path(folder).glob("*/quick/seed-*.json")
    }


def test_experiments_side_by_side_measure_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code, together, error = called("lab", "run", *NAMES, "--seeds", "2", "-j", "2", "-o", "two")
    assert code == 0, error
    code, alone, error = called("lab", "run", *NAMES, "--seeds", "2", "-j", "1", "-o", "one")
    assert code == 0, error
    assert together == alone
    assert measurements("two") == measurements("one")
    assert len(measurements("one")) == 2 * len(NAMES)


def test_what_fails_side_by_side_is_named_and_the_others_are_measured() -> None:
    folder = Path("lab/scale/quick")
    folder.mkdir(parents=True)
    (folder / "seed-1.json").write_text("{")
    code, _, error = called("lab", "run", *NAMES, "--seeds", "1", "-j", "2")
    assert code == 2
    assert "a failure of scale" in error
    assert {Path(name).parts[0] for name in measurements_but("scale")} == {*NAMES} - {"scale"}


def measurements_but(name: str) -> list[str]:
    return [
        str(path.relative_to("lab"))
        for path in Path("lab").glob("*/quick/seed-*.json")
        if path.relative_to("lab").parts[0] != name
    ]


def test_only_one_experiment_that_measures_time_runs_at_once() -> None:
    assert {one.name for one in all_experiments() if one.alone} == {
        "rnn-vs-attention",
        "crossing-length",
        "cost-of-heads",
        "mechanisms-cost",
        "sparse-cost",
    }


def waited_for(happened: Callable[[], bool], seconds: float = 120) -> bool:
    """Whether it happens in that time."""
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)
    return happened()


def is_running(group: int) -> bool:
    """Whether a process of this group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups to be interrupted")
def test_ctrl_c_ends_all_jobs_and_the_same_command_goes_on() -> None:
    # The shorter one ends before the other is interrupted.
    command = ["lab", "run", "statistics", "length-penalty", "--seeds", "2", "-j", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its group is that of a terminal's command
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    trainings = Path("lab/length-penalty/quick")
    finished = Path("lab/statistics/quick/seed-2.json")
    assert waited_for(
        lambda: finished.is_file() and any(trainings.glob("seed-1-*/*/metrics.jsonl"))
    )
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches every process
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert waited_for(lambda: not is_running(process.pid), 10)
    assert not (trainings / "seed-2.json").exists()

    before = finished.stat().st_mtime_ns
    code, _, error = called(*command)
    assert code == 0, error
    assert "length-penalty is measured; 2 of 2 experiments have ended" in error
    assert finished.stat().st_mtime_ns == before
    assert len(list(trainings.glob("seed-*.json"))) == 2
    # The training of the first seed is the one that was begun.
    assert len(list(trainings.glob("seed-1-*"))) == 1


# A shell without job control lets its children ignore Ctrl-C.
INTERRUPTIBLE = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('attlas', run_name='__main__')"
)
