"""The curves of a training that went on from an earlier update."""

from pathlib import Path

import pytest

from attlas.training import Trained
from attlas.training.logging import TensorBoard


def trained(update: int, loss: float) -> Trained:
    return Trained(
        update=update,
        epoch=0,
        seconds=0.0,
        loss=loss,
        tokens_per_second=1.0,
        learning_rate=0.1,
        grad_norm=1.0,
        teacher_forcing=1.0,
        done=0.5,
    )


def test_what_an_earlier_sitting_drew_after_the_checkpoint_is_hidden(tmp_path: Path) -> None:
    accumulating = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    with TensorBoard(tmp_path, 0) as board:
        for update in (1, 2, 3, 4):
            board.write(trained(update, 8.0))
    with TensorBoard(tmp_path, 2) as board:
        board.write(trained(3, 5.0))
    curves = accumulating(str(tmp_path / "tensorboard")).Reload()
    points = [(point.step, point.value) for point in curves.Scalars("trained/loss")]
    assert points == [(1, 8.0), (2, 8.0), (3, 5.0)]
