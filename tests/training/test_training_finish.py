"""The end of a training: the best of all that was measured is what `best` names."""

from pathlib import Path
from typing import Any

import pytest
import torch
from killing import recipe

from attlas.runs import Run
from attlas.training import Event, Validated, train


@pytest.mark.parametrize("averaging", [{"kind": "last", "count": 3}, {"kind": "ema"}])
def test_an_average_that_is_better_than_every_checkpoint_is_the_best(
    tmp_path: Path, averaging: dict[str, Any]
) -> None:
    # At a rate this high the weights leap about the place that their average is near.
    begun = recipe(
        8, rate=0.3, schedule={"kind": "constant"}, averaging=averaging, save_every=2, keep=4,
        validation={"every": 100, "translate": False},
    )  # fmt: skip
    told: list[Event] = []
    outcome = train(begun, tmp_path, report=told.append)
    last, average = (event for event in told if isinstance(event, Validated))
    assert average.checkpoint == "averaged"
    assert average.loss < last.loss
    assert (last.best, average.best) == (True, True)
    assert (outcome.best, outcome.checkpoint) == (average.loss, "averaged")
    run = Run(tmp_path)
    assert run.shelf.named("best") == "averaged"
    best, wanted = run.model("best").state_dict(), run.model("averaged").state_dict()
    assert all(torch.equal(best[name], wanted[name]) for name in wanted)
