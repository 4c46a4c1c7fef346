"""What an update saw."""

from dataclasses import dataclass

from attlas.errors import AttlasError


class NotFiniteError(AttlasError):
    """A loss or a gradient is infinite, or not a number."""


@dataclass(frozen=True, slots=True)
class Update:
    """The summed loss in nats, of so many target tokens.

    weight: what the loss is averaged over, the tokens where they all weigh 1.
    norm: of the gradient before clipping; it may be infinite under float16, whose scaler then
    skips the step.
    """

    loss: float
    tokens: int
    rate: float
    norm: float
    weight: float
