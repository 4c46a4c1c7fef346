"""When a training ends."""

import math

from attlas.training.settings import TrainingConfig
from attlas.training.state import TrainingState


def reached(settings: TrainingConfig, state: TrainingState, seconds: float) -> str | None:
    """Which limit is reached, `seconds` into the training; None: go on."""
    patience = settings.validation.patience
    if settings.epochs is not None and state.epoch >= settings.epochs:
        return "epochs"
    if settings.updates is not None and state.update >= settings.updates:
        return "updates"
    if patience is not None and state.stale >= patience:
        return "patience"
    if settings.minutes is not None and seconds >= 60 * settings.minutes:
        return "minutes"
    return None


def planned(settings: TrainingConfig, batches: int) -> int | None:
    """How many updates `epochs` and `updates` allow, with so many batches an epoch; None: any."""
    limits = []
    if settings.epochs is not None:
        limits.append(settings.epochs * math.ceil(batches / settings.accumulate))
    if settings.updates is not None:
        limits.append(settings.updates)
    return min(limits, default=None)


def part_done(
    settings: TrainingConfig, state: TrainingState, seconds: float, batches: int
) -> float:
    """The part of the way to the nearest limit, 0 … 1; `batches` are those of this epoch."""
    parts = []
    if settings.epochs is not None:
        parts.append((state.epoch + state.position / batches) / settings.epochs)
    if settings.updates is not None:
        parts.append(state.update / settings.updates)
    if settings.minutes is not None:
        parts.append(seconds / (60 * settings.minutes))
    return min(1.0, max(parts))
