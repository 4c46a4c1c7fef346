"""A run that began before may go on as a course, if it is the recipe's."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attlas.config import write_toml
from attlas.data import FilesData, Splits
from attlas.errors import AttlasError
from attlas.runs import CONFIG, METRICS, PROVENANCE
from attlas.training import Recipe, read_recipe

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from time_to_bleu import multi30k  # noqa: E402
from trained_run import begun, conditions, numbers  # noqa: E402

EPOCHS = read_recipe("tiny").training.max_epochs
NAMES = {"train": 60, "val": 8, "test_2016_flickr": 6}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A corpus under the names of Multi30k's files."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for stem, lines in NAMES.items():
        for language in ("en", "de"):
            text = "".join(f"{language} says {n % 7} and {n % 5} .\n" for n in range(lines))
            (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.fixture
def files(data: Path) -> FilesData:
    return multi30k(data)


def recipe(files: FilesData, *assignments: str) -> Recipe:
    return read_recipe("tiny", assignments).model_copy(update={"data": files})


def written(folder: Path, recipe: Recipe, splits: Splits, commit: str | None = "a" * 40) -> Path:
    """The folder of a run, as far as it is asked."""
    folder.mkdir()
    (folder / CONFIG).write_text(write_toml(recipe.tables()), encoding="utf-8")
    facts = {
        "attlas": "9.9", "torch": "8.8", "machine": "Abacus OS", "commit": commit,
        "data": {"train": {"sha256": splits.train.checksum}},
    }  # fmt: skip
    (folder / PROVENANCE).write_text(json.dumps(facts), encoding="utf-8")
    (folder / METRICS).touch()
    return folder


def test_a_run_of_the_recipe_goes_on_with_its_own_settings(
    tmp_path: Path, files: FilesData
) -> None:
    splits = files.load()
    own = recipe(files, "training.threads=2", "training.keep_last=40")
    run = written(tmp_path / "run", own, splits)
    assert begun(run, recipe(files), splits, threads=2) == own


@pytest.mark.parametrize(
    ("own", "threads", "named"),
    [
        (["training.threads=2", "model.embed_dim=64"], 2, "model.embed_dim = 192 instead of 64"),
        (
            ["training.threads=2", "training.max_epochs=1"],
            2,
            f"max_epochs = {EPOCHS}; got max_epochs = 1",
        ),
        (["training.threads=1"], 2, "threads: 2; got 1"),
    ],
    ids=["another model", "another end", "other threads"],
)
def test_a_run_of_another_training_is_refused_by_what_differs(
    tmp_path: Path, files: FilesData, own: list[str], threads: int, named: str
) -> None:
    splits = files.load()
    run = written(tmp_path / "run", recipe(files, *own), splits)
    with pytest.raises(AttlasError) as refused:
        begun(run, recipe(files), splits, threads)
    assert named in str(refused.value)
    assert str(run) in str(refused.value)


def test_a_run_of_other_data_is_refused(tmp_path: Path, data: Path, files: FilesData) -> None:
    own = recipe(files, "training.threads=2")
    run = written(tmp_path / "run", own, files.load())
    (data / "train.en.gz").write_bytes(gzip.compress(b"another line\n" * NAMES["train"]))
    with pytest.raises(AttlasError, match="training data"):
        begun(run, recipe(files), files.load(), threads=2)


@pytest.mark.parametrize(
    ("commit", "short"), [("a" * 40, "a" * 7), ("b" * 40 + "+", "bbbbbbb+"), (None, None)]
)
def test_a_run_tells_where_and_when_it_was_trained(
    tmp_path: Path, files: FilesData, commit: str | None, short: str | None
) -> None:
    run = written(tmp_path / "run", recipe(files), files.load(), commit)
    found: dict[str, Any] = conditions(run)
    assert found["machine"]["commit"] == short
    assert found["machine"]["system"] == "Abacus OS"
    assert found["machine"]["processor"] is None  # a run of before does not know it
    assert found["machine"]["packages"] == {"attlas": "9.9", "torch": "8.8"}
    assert len(found["date"]) == len("2001-02-03")
    facts = json.loads((run / PROVENANCE).read_text(encoding="utf-8"))
    (run / PROVENANCE).write_text(json.dumps({**facts, "processor": "Abacus"}), encoding="utf-8")
    assert conditions(run)["machine"]["processor"] == "Abacus"


@pytest.mark.parametrize("reported", ["bfloat16", None])
def test_a_run_tells_in_which_numbers_it_was_computed(
    tmp_path: Path, files: FilesData, reported: str | None
) -> None:
    run = written(tmp_path / "run", recipe(files), files.load())
    events = [
        {"event": "preparing"},
        {"event": "started"} | ({"numbers": reported} if reported else {}),
    ]
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    (run / METRICS).write_text(lines, encoding="utf-8")
    assert numbers(run) == (reported or "float32")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_course_trains_to_its_end_and_a_finished_run_is_only_translated(
    tmp_path: Path, data: Path
) -> None:
    small = [
        "vocabulary.size=300", "model.embed_dim=16", "model.ffn_dim=16", "model.encoder_layers=1",
        "model.decoder_layers=1", "training.max_epochs=2", "training.validation.every=2",
        "batching.max_tokens=256", "training.schedule.total_steps=8", "training.schedule.warmup=1",
    ]  # fmt: skip
    run, found = tmp_path / "run", tmp_path / "found.json"
    command = [
        sys.executable, str(BENCHMARKS / "time_to_bleu.py"), "--data", str(data), "--courses",
        "tiny:10", "--points", "2", "--threads", "1", "--contenders", "attlas", "--set", *small,
        "--trained", f"tiny={run}", "--json", str(found),
    ]  # fmt: skip
    curves = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        (measurement,) = json.loads(found.read_text(encoding="utf-8"))
        curves.append(measurement["contenders"][0])
        journal = (run / METRICS).read_bytes()
    assert journal.count(b'"finished"') == 1
    first, again = curves
    assert first["points"] == again["points"]
    assert [curve["numbers"] for curve in curves] == ["float32"] * 2
    assert "conditions" not in first
    assert "conditions" in again
    events = [json.loads(line) for line in journal.splitlines()]
    assert first["points"][-1]["seconds"] == round(events[-1]["seconds"], 1)
    assert first["points"][-1]["updates"] == events[-1]["update"]
    kept = {path.stem for path in (run / "checkpoints").iterdir()}
    assert {e["checkpoint"] for e in events if e["event"] == "validated"} <= kept
    wrong = [*command, "--set", *small, "model.num_heads=2"]
    refused = subprocess.run(wrong, capture_output=True, encoding="utf-8", check=False)
    assert refused.returncode == 1
    assert "model.num_heads" in refused.stderr
    assert "Traceback" not in refused.stderr
