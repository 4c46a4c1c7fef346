"""scripts/same_weights.py: whether two trainings have the same weights."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "same_weights.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def saved(run: Path, weights: dict[str, torch.Tensor]) -> Path:
    (run / "checkpoints").mkdir(parents=True)
    safetensors.torch.save_file(weights, run / "checkpoints" / "00000002.safetensors")
    return run


def test_names_make_no_difference_and_a_bit_does(script: dict[str, Any], tmp_path: Path) -> None:
    first, second = torch.arange(6.0).reshape(2, 3), torch.ones(3)
    weights_of = script["weights_of"]
    a = saved(tmp_path / "a", {"model.x": first, "model.y": second, "training.z": torch.zeros(1)})
    b = saved(tmp_path / "b", {"model.y": first, "model.w": second.clone()})
    assert weights_of(a) == weights_of(b)
    changed = second.clone()
    changed[0] = torch.nextafter(changed[0], torch.tensor(2.0))
    c = saved(tmp_path / "c", {"model.x": first, "model.y": changed})
    assert (weights_of(a) - weights_of(c)).total() == 1
    d = saved(tmp_path / "d", {"model.x": first.reshape(3, 2), "model.y": second})
    assert weights_of(a) != weights_of(d)


def test_the_number_of_updates_is_called_as_the_version_calls_it(
    script: dict[str, Any], tmp_path: Path
) -> None:
    recipes = tmp_path / "attlas" / "recipes"
    recipes.mkdir(parents=True)
    (recipes / "old.toml").write_text("[training]\nupdates = 3\n", encoding="utf-8")
    assert script["steps_setting"](tmp_path, "old") == "updates"
    assert script["steps_setting"](SCRIPT.parents[1] / "src", "demo") == "max_steps"
