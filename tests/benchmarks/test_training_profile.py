"""Where the time of a training goes."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from matrix_products import report
from training_profile import profiled

from attlas.training import Recipe
from attlas.training.learner import Learner


def test_the_updates_after_the_first_are_seen_and_no_more_are_made(tmp_path: Path) -> None:
    for name in ("source", "target"):
        lines = [f"a line of {name} number {number}\n" for number in range(64)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("source", "target")]
    recipe = Recipe.read(
        {
            "data": {"kind": "files", "train": files, "valid": files},
            "vocabulary": {"kind": "characters"},
            "batching": {"max_tokens": 400},
            "model": {"kind": "transformer", "embed_dim": 16, "num_heads": 2, "ffn_dim": 32},
            "training": {"max_steps": 1000, "threads": 1, "validation": {"every": 1000}},
        },
        "a test",
    )
    plain = Learner.update
    found = profiled(recipe, warm=2, updates=3)
    assert Learner.update is plain
    steps = {one.key: one.count for one in found.seen.key_averages()}
    assert sum(count for key, count in steps.items() if "Optimizer.step" in key) == 3
    assert 3 * 100 < found.tokens <= 3 * 400
    assert found.seconds > 0
    reported = report(found.seen, found.weights).splitlines()
    assert any(line.startswith("aten::addmm, < ") for line in reported)
    assert reported[-1].startswith("all of these: ")
