"""The events as TensorBoard curves."""

from pathlib import Path
from typing import Any, Self

from attlas.errors import missing_extra
from attlas.training.events import Event, Trained, Validated

_NAMES = ("update", "epoch", "seconds")


def summary_writer() -> Any:
    """The class of torch that writes curves. Errors: `AttlasError` without TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise missing_extra("TensorBoard curves", "tensorboard") from None
    return SummaryWriter


class TensorBoard:
    """Writes `folder/tensorboard`; what an earlier sitting wrote after `update` is hidden.

    Errors: `AttlasError` where TensorBoard is not installed.
    """

    def __init__(self, folder: Path, update: int) -> None:
        self._writer = summary_writer()(str(folder / "tensorboard"), purge_step=update + 1)

    def write(self, event: Event) -> None:
        """The numbers of an event, if it has any to draw."""
        if not isinstance(event, Trained | Validated):
            return
        for name, value in event.record().items():
            if isinstance(value, int | float) and name not in _NAMES:
                self._writer.add_scalar(f"{event.kind}/{name}", value, event.update)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
