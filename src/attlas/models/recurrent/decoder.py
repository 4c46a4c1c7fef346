"""What every recurrent decoder answers."""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.encoder import Encoded
from attlas.models.recurrent.recurrence import Recurrence
from attlas.models.recurrent.state import RecurrentState


class Decoder(nn.Module, ABC):
    """Embedded target tokens in, features before the vocabulary layer out.

    `step` and `features` are twins: one token, or a whole target from a state. `width` is that of
    the features.
    """

    width: int

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__()
        self.bridge = bridge
        self.recurrence = recurrence

    @abstractmethod
    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        """The state before the first target token."""

    @abstractmethod
    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        """The features of one token, and the state that follows."""

    @abstractmethod
    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        """The features of every token of a target."""
