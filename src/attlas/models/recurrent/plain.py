"""The decoder without attention."""

from dataclasses import replace

from jaxtyping import Bool, Float
from torch import Tensor

from attlas.models.recurrent.bridge import Bridge
from attlas.models.recurrent.decoder import Decoder
from attlas.models.recurrent.encoder import Encoded
from attlas.models.recurrent.recurrence import Recurrence
from attlas.models.recurrent.state import RecurrentState


class PlainDecoder(Decoder):
    """s_t = RNN(y_{t−1}, s_{t−1})    Sutskever, Vinyals & Le, 2014: a decoder that cannot look.

    The source reaches it through its initial state alone (Cho et al., 2014, pass a summary of the
    source to every step as well). A whole target is one RNN call.
    """

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__(bridge, recurrence)
        self.width = recurrence.rnn.hidden_size

    def start(self, encoded: Encoded, real: Bool[Tensor, "batch slots"] | None) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.final))

    def step(
        self, embedded: Float[Tensor, "batch embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width"], RecurrentState]:
        top, hidden = self.recurrence.step(embedded, state.hidden)
        return top, replace(state, hidden=hidden, position=state.position + 1)

    def features(
        self, embedded: Float[Tensor, "batch queries embedding"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        outputs: Tensor = self.recurrence(embedded, state.hidden)
        return outputs
