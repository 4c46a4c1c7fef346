"""With which settings of the process attlas trains beside its peers."""

import runpy
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import attlas._hardware
import attlas.training
from attlas.training import Recipe
from attlas.training.learner import Learner

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CONTENDERS = BENCHMARKS / "contenders"
sys.path += [str(BENCHMARKS), str(CONTENDERS)]

import options  # noqa: E402
import run  # noqa: E402
import training_speed  # noqa: E402

FREEING = "attlas, glibc's defaults"
HALF = {"attlas, bfloat16", "attlas, no input feeding, bfloat16"}
OURS = [one for _, every in training_speed.MODELS.values() for one in every if one.peer is None]


@pytest.mark.parametrize("name", sorted({one.name for one in OURS if "attlas" in one.name}))
def test_attlas_trains_as_its_command_does_but_for_the_row_that_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    done: list[str] = []
    trained: list[Recipe] = []
    (script,) = {one.script for one in OURS if one.name == name}
    model = next(one.model for one in OURS if one.name == name)
    reported = Namespace(
        model=model, corpus=tmp_path, folder=tmp_path, tokens=4096, threads=1, seconds=0.0
    )
    monkeypatch.setattr(options, "read", lambda: (reported, None))
    monkeypatch.setattr(attlas._hardware, "disable_malloc_trim", lambda: done.append("kept"))

    def train(recipe: Recipe, folder: Path) -> None:
        done.append("trained")
        trained.append(recipe)

    monkeypatch.setattr(attlas.training, "train", train)
    monkeypatch.setattr(Learner, "update", Learner.update)  # which the script puts another for
    monkeypatch.delitem(sys.modules, "attlas_training", raising=False)
    runpy.run_path(str(CONTENDERS / f"{script}.py"))
    sys.modules.pop("attlas_training", None)
    assert done == (["trained"] if name == FREEING else ["kept", "trained"])
    assert trained[0].training.autocast == ("bf16" if name in HALF else "none")


def taking_part(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, list[str]]:
    """The contenders of each measurement."""
    seen: dict[str, list[str]] = {}

    def contest(suite: str, title: str, unit: str, contenders: Any, *given: Any) -> dict[str, Any]:
        seen[title] = [one.name for one in contenders]
        return {}

    monkeypatch.setattr(training_speed, "contest", contest)
    monkeypatch.setattr(sys, "argv", ["training_speed.py", *words])
    training_speed.main()
    return seen


def test_glibc_and_bfloat16_have_rows_of_their_own_but_in_the_quick_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full, quick = (
        taking_part(monkeypatch, *reported)
        for reported in (
            run.suites(Path("multi30k"), Path("runs"), quick)["training"][1:]
            for quick in (False, True)
        )
    )
    apart = {FREEING, *HALF}
    assert FREEING in full["Transformer"]
    assert all("attlas, bfloat16" in names for names in full.values())
    assert set(full["RNN, Luong"]) >= HALF
    assert full["Transformer"][0] == quick["Transformer"][0] == "attlas"
    assert {
        title: [name for name in names if name not in apart] for title, names in full.items()
    } == quick


def test_the_first_whom_all_are_compared_with_cannot_be_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        taking_part(monkeypatch, "--data", "a", "b", "--without", "attlas")
    assert ended.value.code == 2
    assert "--without" in capsys.readouterr().err
