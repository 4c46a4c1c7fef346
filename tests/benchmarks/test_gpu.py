"""The script that measures statistics on a GPU, on a machine without one."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"

pytest.importorskip("triton", reason="Triton has no wheel for this machine")


def test_a_dry_run_goes_through_every_part_with_the_kernels(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = [sys.executable, SCRIPT, "--dry-run", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text(encoding="utf-8"))
    assert results["of"]["dry_run"] is True
    parts = results["parts"]
    of_kernels = ["agreement", "rows", "long", "million", "overview", "blocks"]
    others = ["observing", "translation", "training", "tiny", "watching"]
    assert [*parts] == [*of_kernels[:-1], *others, "blocks"]
    assert {case["engine"] for part in of_kernels for case in parts[part].values()} == {"kernels"}
    for case in parts["agreement"].values():
        differences = [*case["from blocks"].values(), case["entropy from float64"]]
        assert max(*differences, case["received from float64"]) < 1e-5
    for case in parts["rows"].values():
        assert [*case["ratio"]] == ["entropy", "rows", "received"]
    kinds = ["float32", "TF32", "bfloat16"]
    assert [*parts["training"]] == [f"256 tokens, {kind}" for kind in kinds]
    for case in parts["training"].values():
        contenders = ["attlas", "attlas, CUDA graphs", "loop", "loop, CUDA graphs"]
        assert [*case["tokens a second"]] == contenders
        assert min(case["positions a token"].values()) >= 1.0
    for case in parts["observing"].values():
        assert [*case["ratio"]] == ["observed", "entropy of a layer", "summary of a layer"]
    assert [*parts["watching"]] == ["toy"]
    for case in parts["watching"].values():
        assert [*case["ratio"]] == ["not read", "read"]
    assert [*parts["translation"]] == ["greedy", "beam 5"]
    for case in parts["translation"].values():
        assert [*case["ratio"]] == ["attlas, CUDA graphs", "Hugging Face"]
        assert case["texts that are the same with CUDA graphs"] == 1.0


def test_what_the_minutes_do_not_suffice_for_is_written_down(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = [sys.executable, SCRIPT, "--dry-run", "--minutes", "0", "--out", out]
    done = subprocess.run(
        [*command, "--parts", "rows", "training"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    parts = json.loads(out.read_text(encoding="utf-8"))["parts"]
    assert [*parts] == ["rows", "training"]
    assert all([*part] == ["left out"] for part in parts.values())
    assert "--minutes" in parts["rows"]["left out"]


_PARTS_OF_NO_TIME = """
import json, sys
sys.argv[1:] = ["--dry-run", "--out", sys.argv[1]]
sys.path.insert(0, {folder!r})
import gpu
assert [*gpu.SECONDS, 'base'] == [*gpu.PARTS] and sum(gpu.SECONDS.values()) <= 480
gpu.SECONDS = dict.fromkeys(gpu.SECONDS, 0.0) | {{"overview": 0.02}}
sys.exit(gpu.main())
"""


_WITHOUT_KERNELS = """
import json, sys
sys.argv[1:] = ["--dry-run", "--parts", "rows", "long", "million", "overview", "--out", sys.argv[1]]
sys.path.insert(0, {folder!r})
import gpu
gpu.engine = lambda attention_map: "blocks"
sys.exit(gpu.main())
"""


def test_where_the_kernels_do_not_run_what_would_take_minutes_is_left_out(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    code = _WITHOUT_KERNELS.format(folder=str(SCRIPT.parent))
    done = subprocess.run(
        [sys.executable, "-c", code, out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    parts = json.loads(out.read_text(encoding="utf-8"))["parts"]
    cases = [case for part in parts.values() for case in part.values()]
    assert len(cases) == 8
    assert all(case["engine"] == "blocks" and "left out" in case for case in cases)


def test_a_part_that_is_over_its_seconds_stops_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    code = _PARTS_OF_NO_TIME.format(folder=str(SCRIPT.parent))
    done = subprocess.run(
        [sys.executable, "-c", code, out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    parts = json.loads(out.read_text(encoding="utf-8"))["parts"]
    overview = parts.pop("overview")
    assert len(overview.pop("left out, as the time was over")) == 1
    assert len(overview) == 1  # the case that began in time
    assert len(parts) == 10
    assert all([*part] == ["left out"] for part in parts.values())


def test_the_validations_of_a_recipe_are_read_from_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    validations = importlib.import_module("gpu_recipes").validations
    events = [
        {"event": "validated", "seconds": 4.0, "bleu": 34.9},
        {"event": "trained", "seconds": 5.0},
        {"event": "validated", "seconds": 7.0, "bleu": 36.0},
        {"event": "finished", "seconds": 8.0},
    ]
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    found = validations(metrics, 10.5)
    assert found["BLEU of validations by seconds"] == [(6.5, 34.9), (9.5, 36.0)]
    assert found["seconds to 35 BLEU"] == 9.5


def test_a_case_of_training_has_to_be_one() -> None:
    command = [sys.executable, SCRIPT, "--dry-run", "--parts", "training", "--cases", "4096"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'4,096 tokens, bfloat16'" in done.stderr


def test_without_a_card_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, SCRIPT, "--out", out],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no CUDA device: try --dry-run" in done.stderr
    assert not out.exists()
