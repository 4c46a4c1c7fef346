"""The end of a training: the best of all that was measured is what `best` names."""

from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.runs import Run
from attlas.training import Event, Validated, train
from support.killed_trainings import recipe


@pytest.mark.parametrize("averaging", [{"kind": "last", "count": 3}, {"kind": "ema"}])
def test_an_average_that_is_better_than_every_checkpoint_is_the_best(
    tmp_path: Path, averaging: dict[str, Any]
) -> None:
    # At a rate this high the weights leap about the place that their average is near.
    begun = recipe(
        8,
        learning_rate=0.3,
        schedule={"kind": "constant"},
        averaging=averaging,
        save_every=2,
        keep_last=4,
        validation={"every": 100, "translate": False},
    )
    reported: list[Event] = []
    outcome = train(begun, tmp_path, report=reported.append)
    last, average = (event for event in reported if isinstance(event, Validated))
    assert average.checkpoint == "averaged"
    assert average.loss < last.loss
    assert (last.best, average.best) == (True, True)
    assert (outcome.best, outcome.checkpoint) == (average.loss, "averaged")
    run = Run(tmp_path)
    assert run.store.named("best") == "averaged"
    best, expected = run.model("best").state_dict(), run.model("averaged").state_dict()
    assert all(torch.equal(best[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("updates", "saved", "what"),
    [(6, [2, 4, 6], None), (4, [2, 4], "alone are averaged"), (2, [2], "there is no average")],
)
def test_an_average_says_of_which_checkpoints_it_is_and_is_reported_where_they_are_too_few(
    tmp_path: Path, updates: int, saved: list[int], what: str | None
) -> None:
    begun = recipe(
        updates, averaging={"kind": "last", "count": 3}, save_every=2, keep_last=3,
        validation={"every": 100, "translate": False},
    )  # fmt: skip
    outcome = train(begun, tmp_path)
    if len(saved) > 1:
        facts = Run(tmp_path).store.read("averaged").facts
        assert facts == {"update": updates, "averaged": saved}
    else:
        assert "averaged" not in Run(tmp_path).checkpoints()
    if what is None:
        assert outcome.notes == ()
    else:
        (note,) = outcome.notes
        assert f"saved {len(saved)} (of update {', '.join(map(str, saved))}), so " in note
        assert what in note
    assert train(begun, tmp_path) == outcome  # as it was written down
